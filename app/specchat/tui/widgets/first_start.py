"""What an empty chat without any model offers. It sits in the transcript, so that nobody's typing is swallowed."""

import threading
from collections.abc import Callable
from functools import partial

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import ProgressBar, Static

from specchat.pull_words import progressed
from specchat.tui.offers import Offer, described, fetch, offers
from specchat.tui.options import TuiOptions
from specengine.catalog import Entry
from specengine.errors import EngineError
from specengine.transfer import PullCancelled, PullProgress

KEYS = ("f2", "f3")
"""The key that fetches each offer."""


class FirstStart(Vertical):
    class Fetched(Message):
        """A model is here now."""

        def __init__(self, offer: Offer) -> None:
            super().__init__()
            self.offer = offer

    def __init__(self, options: TuiOptions, find: Callable[[TuiOptions], list[Offer]] | None = None) -> None:
        super().__init__()
        self._options = options
        self._find = find or (lambda options: offers(options.overlays, options.models_dir))
        self._offers: list[Offer] = []
        self._cancel: threading.Event | None = None
        """Set to end the running fetch; None while none runs."""

    @property
    def fetching(self) -> bool:
        return self._cancel is not None

    def compose(self) -> ComposeResult:
        yield Static("There is no model on this machine yet.", classes="title")
        yield Static("Looking at this machine…", classes="offers")
        yield ProgressBar(show_eta=False)
        yield Static(classes="news")

    def on_mount(self) -> None:
        self.query_one(ProgressBar).display = False
        self.run_worker(self._look, thread=True, group="offers")

    def on_unmount(self) -> None:
        self.cancel()

    def fetch(self, number: int) -> None:
        """Starts to fetch an offer, or goes on with it."""
        if self.fetching or number >= len(self._offers):
            return
        self._cancel = threading.Event()
        self.query_one(ProgressBar).display = True
        self._tell("Starting… esc stops, what arrived is kept.")
        self.run_worker(partial(self._fetch, self._offers[number], self._cancel), thread=True, group="fetch")

    def cancel(self) -> None:
        if self._cancel:
            self._cancel.set()

    def _look(self) -> None:
        try:
            found = self._find(self._options)
        except EngineError as error:
            self.app.call_from_thread(self._tell, str(error))
            return
        self.app.call_from_thread(self._show, found)

    def _fetch(self, offer: Offer, cancel: threading.Event) -> None:
        try:
            fetch(offer, self._options.models_dir, self._report, cancel.is_set, self._options.offline)
        except PullCancelled:
            if self.is_attached:
                self.app.call_from_thread(self._ended, "Stopped. What arrived is kept; the same key goes on.")
        except EngineError as error:
            self.app.call_from_thread(self._ended, str(error))
        else:
            self.app.call_from_thread(self._fetched, offer)

    def _report(self, entry: Entry, now: PullProgress) -> None:
        if self._cancel and not self._cancel.is_set():
            self.app.call_from_thread(self._progress, entry, now)

    def _show(self, found: list[Offer]) -> None:
        self._offers = found
        lines = [
            Content.assemble(
                *((key, "$text-accent"), f"  {offer.entry.title}", (f"  {offer.why}", "$foreground 60%")),
                (f"\n    {described(offer)}", "$foreground 60%"),
            )
            for key, offer in zip(KEYS, found, strict=False)
        ]
        self.query_one(".offers", Static).update(Content("\n").join(lines))
        self._tell("Or /model PATH for a file. Type away meanwhile.")

    def _progress(self, entry: Entry, now: PullProgress) -> None:
        self.query_one(ProgressBar).update(total=now.total, progress=now.done)
        self._tell(progressed(entry.title, now))

    def _ended(self, news: str) -> None:
        self._cancel = None
        self.query_one(ProgressBar).display = False
        self._tell(news)

    def _fetched(self, offer: Offer) -> None:
        self._ended("")
        self.post_message(self.Fetched(offer))

    def _tell(self, news: str) -> None:
        self.query_one(".news", Static).update(Content(news))
