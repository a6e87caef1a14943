"""What an empty chat without any model offers. It sits in the transcript, so that nobody's typing is swallowed."""

from collections.abc import Callable
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from specchat.tui import keymap
from specchat.tui.offers import Offer, described, offers
from specchat.tui.options import TuiOptions
from specengine.errors import EngineError

_OFFERS: Final = ("chat.pull", "chat.pull_other")
"""The action that pulls each offer."""


class FirstStart(Vertical):
    class Wanted(Message):
        """The user took an offer."""

        def __init__(self, offer: Offer) -> None:
            super().__init__()
            self.offer = offer

    def __init__(self, options: TuiOptions, find: Callable[[TuiOptions], list[Offer]] | None = None) -> None:
        super().__init__()
        self._options = options
        self._find = find or (lambda options: offers(options.overlays, options.models_dir, options.speed_file))
        self._offers: list[Offer] = []
        self._taken: int | None = None
        """The offer that was taken before it was known."""

    def compose(self) -> ComposeResult:
        yield Static("There is no model on this machine yet.", classes="title")
        yield Static("Looking at this machine…", classes="offers")
        yield Static(classes="news")

    def on_mount(self) -> None:
        if self._options.offline:
            self._say(
                "The network is switched off, so none can be pulled. "
                f"Put a .gguf file into {self._options.models_dir}, or start again without --offline.",
                f"{self._key('chat.models')} shows all models; /model PATH loads a file. Type away meanwhile.",
            )
        else:
            self.run_worker(self._look, thread=True, group="offers")

    def take(self, number: int) -> None:
        """Takes an offer, if there are that many; one that is not known yet, once it is."""
        self._taken = None if self._offers else number
        if number < len(self._offers):
            self.post_message(self.Wanted(self._offers[number]))

    def _look(self) -> None:
        try:
            found = self._find(self._options)
        except EngineError as error:
            self.app.call_from_thread(self._say, str(error), "/model PATH loads a file.")
            return
        self.app.call_from_thread(self._show, found)

    def _show(self, found: list[Offer]) -> None:
        self._offers = found
        lines = [
            Content.assemble(
                *((key, "$text-accent"), f"  {offer.entry.title}", (f"  {offer.why}", "$foreground 60%")),
                (f"\n    {described(offer)}", "$foreground 60%"),
            )
            for key, offer in zip(map(self._key, _OFFERS), found, strict=False)
        ]
        news = (
            f"{self._key('chat.models')} shows all models; /model PATH loads a file; {self._key('chat.stop')} stops a "
            "pull. Type away meanwhile."
        )
        self._say(Content("\n").join(lines), news)
        if self._taken is not None:
            self.take(self._taken)

    def _key(self, action: str) -> str:
        return keymap.key_of(action, self._options.keymap)

    def _say(self, offers: Content | str, news: str) -> None:
        self.query_one(".offers", Static).update(Content(offers) if isinstance(offers, str) else offers)
        self.query_one(".news", Static).update(Content(news))
