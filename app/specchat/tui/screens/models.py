"""The list of all models: what is here, what fits, and what to do with it."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specchat.model_facts import ModelFacts
from specchat.tui.background import begin
from specchat.tui.commands import CommandError
from specchat.tui.model_rows import details, matches, row
from specchat.tui.model_switch import ModelSwitch
from specchat.tui.screens.confirm import Confirm
from specchat.tui.screens.draft_choice import DraftChoice
from specchat.tui.widgets.filter import Filter
from specchat.tui.widgets.key_line import KeyLine
from specchat.tui.widgets.pull_line import PullLine
from specengine.errors import EngineError

_LOOKING: Final = "Looking at this machine…"


class Models(ModalScreen[None]):
    """Typing filters, the arrows choose. A pull goes on when this is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Load the model, pulled first if need be", id="models.load"),
        Binding("tab", "draft", "Choose its draft model", id="models.draft"),
        Binding("f5", "measure", "Measure whether drafts leave the loaded model's text identical", id="models.measure"),
        Binding("ctrl+x", "stop", "Stop the pull", id="models.stop"),
        Binding("delete", "remove", "Remove the model from this machine", id="models.remove"),
        Binding("escape,ctrl+o,ctrl+c", "dismiss", "Close", id="models.close"),
        Binding("shift+down,ctrl+down", "read(1)", "More of what is said of a model", show=False, id="models.more"),
        Binding("shift+up,ctrl+up", "read(-1)", "Back to its beginning", show=False, id="models.back"),
        Binding("up", "move('cursor_up')", show=False, id="models.up"),
        Binding("down", "move('cursor_down')", show=False, id="models.down"),
        Binding("pageup", "move('page_up')", show=False, id="models.page_up"),
        Binding("pagedown", "move('page_down')", show=False, id="models.page_down"),
    ]

    VERTICAL_BREAKPOINTS = [(0, "-low"), (24, "-high")]  # noqa: RUF012 - as Screen declares it

    def __init__(
        self, models: ModelSwitch, pulls: PullLine, change: Callable[[str, str | None], None], offline: bool
    ) -> None:
        """`change` loads a model with a draft, or pulls it first; it raises CommandError."""
        super().__init__()
        self._models, self._pulls, self._change, self._offline = models, pulls, change, offline
        self._all: list[ModelFacts] = []
        self._shown: list[ModelFacts] = []
        self._shown_for = ""
        """The words that they match."""
        self._take_for: str | None = None
        """Enter was pressed behind these words before there was a list."""
        self._news = _LOOKING
        self._looks = 0

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Models"
            yield Filter(placeholder="type to filter", compact=True)
            yield OptionList(compact=True)
            with VerticalScroll(classes="about", can_focus=False):
                yield Static(classes="details")
            yield Static(_LOOKING, classes="news")
            yield Static(classes="pull")
            yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()
        self.watch(self._pulls, "news", self._show_pull)
        self.watch(self._pulls, "pulling", self._pull_changed, init=False)
        self._look()

    # What keys do.

    def action_move(self, how: str) -> None:
        getattr(self.query_one(OptionList), f"action_{how}")()
        if self._news != _LOOKING:  # what was said was said of another model
            self._say("")

    def action_read(self, rows: int) -> None:
        self.query_one(".about", VerticalScroll).scroll_relative(y=rows, animate=False)

    def action_take(self) -> None:
        """Loads the model and closes, or starts to pull it."""
        facts = self._chosen
        self._take_for = None if self._all else self.query_one(Input).value
        if facts is None:
            return
        if facts.trouble:
            self._say(facts.trouble)
            return
        pulling = self._pulls.pulling
        if pulling and pulling.name == facts.entry.name:
            self._say(f"{facts.entry.title} is being pulled already.")
            return
        if not facts.path and self._offline:
            self._say(f"{facts.entry.title} is not here and the network is switched off.")
            return
        try:
            self._change(facts.name, None)
        except CommandError as error:
            self._say(str(error))
            return
        if facts.path:
            self.dismiss()

    def action_draft(self) -> None:
        if facts := self._chosen:
            chosen = self._models.drafts.get(facts.name)
            self.app.push_screen(DraftChoice(facts, self._all, chosen), partial(self._take_draft, facts))

    async def action_measure(self) -> None:
        self._say("Measuring whether passes of all widths agree on the loaded model…")
        begin(self, self._measure, "measure", exclusive=True)

    def action_stop(self) -> None:
        if self._pulls.pulling:
            self._pulls.cancel()
        else:
            self._say("Nothing is being pulled.")

    def action_remove(self) -> None:
        facts = self._chosen
        if facts is None:
            return
        if not facts.path and not facts.kept and not facts.entry.path:
            self._say(f"{facts.entry.title} is not here.")
            return
        try:
            self._models.refuse_to_remove(facts)
        except EngineError as error:
            self._say(str(error))
            return
        question = f"Delete {facts.path or f'what was pulled of {facts.entry.title}'}?"
        self.app.push_screen(Confirm(question), partial(self._remove, facts))

    # What comes of it.

    def _take_draft(self, facts: ModelFacts, draft: str | None) -> None:
        if draft is not None:
            self._models.drafts[facts.name] = draft
            self._show_details()

    async def _measure(self) -> None:
        self._say(await self._models.measure())
        self._look()

    def _remove(self, facts: ModelFacts, sure: bool | None) -> None:
        if not sure:
            return
        self._say(f"Removing {facts.entry.title}…")
        self.run_worker(partial(self._removed, facts), thread=True, group="remove")

    def _removed(self, facts: ModelFacts) -> None:
        """Runs in a thread of its own: large files take their time."""
        try:
            said = self._models.remove(facts)
        except EngineError as error:
            said = str(error)
        self.app.call_from_thread(self._say, said)
        self.app.call_from_thread(self._look)

    def _pull_changed(self) -> None:
        self._show_pull()
        if self._pulls.pulling is None:
            self._say(self._pulls.news)
            self._look()
        else:
            self._show()

    def _look(self) -> None:
        """Finds out anew what there is."""
        self._looks += 1
        self.run_worker(partial(self._survey, self._looks), thread=True, group="survey")

    def _survey(self, look: int) -> None:
        """Runs in a thread of its own."""
        try:
            if not self._all:  # all but the speeds is known at once
                self.app.call_from_thread(self._found, self._models.survey(speed=False), look, False)
            self.app.call_from_thread(self._found, self._models.survey(), look, True)
        except EngineError as error:
            self.app.call_from_thread(self._say, str(error))

    def _found(self, found: list[ModelFacts], look: int, whole: bool) -> None:
        if look != self._looks or not self.is_attached:  # a later look is under way, or this is closed
            return
        self._all = found
        if whole and self._news == _LOOKING:
            self._say("")
        self._show()
        if self._take_for == self.query_one(Input).value:
            self.action_take()

    # What is shown.

    @on(Input.Changed)
    @on(Resize)
    def _show(self) -> None:
        """The rows that match, the highlighted one still highlighted."""
        listed, words = self.query_one(OptionList), self.query_one(Input).value
        self._shown_for = words
        before = self._chosen.name if self._chosen else self._models.wanted and self._models.wanted.name
        self._shown = [facts for facts in self._all if matches(facts, words)]
        pulling = self._pulls.pulling.name if self._pulls.pulling else None
        width = max(20, listed.content_region.width - 1)  # room for the scrollbar, shown or not
        listed.clear_options()
        listed.add_options(
            Option(row(facts, self._models.wanted, facts.entry.name == pulling, width), facts.name)
            for facts in self._shown
        )
        names = [facts.name for facts in self._shown]
        listed.highlighted = (names.index(before) if before in names else 0) if names else None
        self._show_details()

    @on(OptionList.OptionHighlighted)
    def _show_details(self) -> None:
        facts = self._chosen
        text = Content("No model matches." if self._all else "")
        if facts:
            text = details(facts, self._models.wanted, self._models.drafts.get(facts.name), self._offline)
        self.query_one(".details", Static).update(text)
        self.query_one(".about", VerticalScroll).scroll_home(animate=False)
        self.call_after_refresh(self._mark_more)

    def _mark_more(self) -> None:
        """Tells the key that shows the rest, where not all of it has room."""
        keys = (key for key, active in self.active_bindings.items() if active.binding.id == "models.more")
        more = self.query_one(".about", VerticalScroll).max_scroll_y > 0
        self.query_one(Vertical).border_subtitle = f"{next(keys, '')} more" if more else ""

    def _show_pull(self) -> None:
        line = self.query_one(".pull", Static)
        line.display = self._pulls.pulling is not None
        line.update(Content(self._pulls.news))
        self.set_class(line.display, "-pulling")

    def _say(self, news: str) -> None:
        self._news = news
        line = self.query_one(".news", Static)
        line.display = bool(news)
        line.update(Content(news))
        self.set_class(bool(news), "-told")

    @property
    def _chosen(self) -> ModelFacts | None:
        if self._shown_for != self.query_one(Input).value:  # a key came right behind what was typed
            self._show()
        at = self.query_one(OptionList).highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None
