"""The same prompt with speculation and without, in turn on the one engine, side by side on the screen."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.chat import Answer
from specchat.compare import Engine, Mode, answered, fork, near_tie, shared_text
from specchat.host import EngineDied
from specchat.tui.background import begin
from specchat.tui.comparison import gain, heading, running, sameness
from specchat.tui.figures import reading
from specchat.tui.widgets.growing_text import GrowingText
from specchat.tui.widgets.key_line import KeyLine
from specengine.errors import EngineError
from specengine.protocol import Generate
from specengine.stats import Stats

_WIDE: Final = 100
"""Columns from which the answers stand side by side."""
_FLUSH_S: Final = 0.1


class Side(Vertical):
    """One of the answers."""

    def __init__(self, mode: Mode, wanted: Generate) -> None:
        super().__init__()
        self.mode = mode
        self.heading = heading(mode, wanted.speculation, wanted.gamma)
        self.words = GrowingText()
        self.state = "waits"
        self.stats: Stats | None = None
        self.live = False

    def compose(self) -> ComposeResult:
        self.border_title = self.heading
        yield Static(classes="figures")
        yield self.words

    def on_mount(self) -> None:
        self.refresh_side()

    def refresh_side(self) -> None:
        """Shows what came since the last time."""
        figures = running(self.stats, self.live) if self.stats else self.state
        self.query_one(".figures", Static).update(Content(figures))
        self.words.flush()


class Compare(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "Stop, then close", id="compare.close"),
        Binding("up", "scroll(-1)", "Scroll both up", show=False, id="compare.up"),
        Binding("down", "scroll(1)", "Scroll both down", show=False, id="compare.down"),
        Binding("pageup", "scroll(-10)", "Scroll both a page up", show=False, id="compare.page_up"),
        Binding("pagedown", "scroll(10)", "Scroll both a page down", show=False, id="compare.page_down"),
    ]

    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-high")]  # noqa: RUF012 - as Screen declares it

    def __init__(
        self,
        engine: Engine,
        wanted: Mapping[Mode, Generate],
        order: tuple[Mode, Mode],
        exact: bool,
    ) -> None:
        """`exact` says whether the model was loaded with --exact."""
        super().__init__()
        self._engine = engine
        self._wanted = wanted
        self._order = order
        self._exact = exact
        self._sides = {mode: Side(mode, wanted[mode]) for mode in order}
        self.answers: dict[Mode, Answer] = {}
        self._answering: Mode | None = None
        self._stopped = False

    def compose(self) -> ComposeResult:
        seed = self._wanted["plain"].sampling.seed
        first = self._sides[self._order[0]].heading
        yield Static(Content(f"Compare, seed {seed}: {first} goes first"), classes="head")
        with VerticalScroll(classes="body", can_focus=False):
            with Container(classes="sides"):
                yield from self._sides.values()
            yield Static(classes="verdict")
        yield KeyLine()

    def on_mount(self) -> None:
        self._body.anchor()
        self.set_interval(_FLUSH_S, self._refresh)
        begin(self, self._run, "compare")

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < _WIDE, "-stacked")

    # What keys do.

    def action_close(self) -> None:
        if self._answering is None:
            self.dismiss()
        else:
            self._stopped = True
            self._engine.stop(self._wanted[self._answering].id)

    def action_scroll(self, rows: int) -> None:
        for part in (self._body, *(side.words for side in self._sides.values())):
            part.scroll_relative(y=rows, animate=False)

    # What the comparison tells.

    def on_reading(self, mode: Mode, done: int, total: int) -> None:
        self._sides[mode].state = reading(done, total)

    def on_text(self, mode: Mode, text: str, stats: Stats) -> None:
        side = self._sides[mode]
        side.live, side.stats = True, stats
        side.words.write(text)

    def on_answered(self, mode: Mode, answer: Answer) -> None:
        side = self._sides[mode]
        side.live, side.stats = False, answer.stats
        side.refresh_side()
        self.answers[mode] = answer

    async def _run(self) -> None:
        try:
            for mode in self._order:
                if self._stopped:
                    break
                self._answer(mode)
                self._sides[mode].state = "is made"
                await answered(self._engine, mode, self._wanted[mode], self)
            self._answer(None)
            await self._judge()
        except (EngineError, EngineDied) as error:
            self._answer(None)
            self._say(str(error))
        finally:
            self._answering = None

    def _answer(self, mode: Mode | None) -> None:
        self._answering = mode
        self.query_one(KeyLine).tell("compare.close", "close" if mode is None else "stop")

    async def _judge(self) -> None:
        if len(self.answers) < 2:
            self._say("Stopped. There is no second answer to compare with.")
            return
        plain, drafted = self.answers["plain"], self.answers["drafted"]
        parted = fork(plain, drafted)
        tie = None
        if parted is not None:
            for side in self._sides.values():
                side.words.mark_from(shared_text(plain.text, drafted.text))
            self._say(f"{gain(self.answers)}\nThe texts part; measuring how close that was…")
            tie = await near_tie(self._engine, self._wanted["plain"], plain, parted)
        self._say(f"{gain(self.answers)}\n{sameness(self.answers, parted, tie, self._exact)}")

    @property
    def _body(self) -> VerticalScroll:
        """Scrolls as a whole where there is no room for both texts and what is said of them."""
        return self.query_one(".body", VerticalScroll)

    def _say(self, text: str) -> None:
        self.query_one(".verdict", Static).update(Content(text))

    def _refresh(self) -> None:
        if self._answering is not None:
            self._sides[self._answering].refresh_side()
