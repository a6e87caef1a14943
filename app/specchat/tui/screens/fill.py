"""A gap in code and what the model fills it with, between the lines around it."""

import asyncio
from contextlib import aclosing
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.complete.place import newlines
from specchat.host import EngineDied
from specchat.tui.background import begin
from specchat.tui.figures import reading
from specchat.tui.fills import Gap
from specchat.tui.options import Engine
from specchat.tui.widgets.key_line import KeyLine
from specengine.errors import EngineError
from specengine.protocol import Chunk, Done, Generate, Notice, Prefilling
from specengine.stats import Stats

_AROUND: Final = 60
"""Lines shown before the gap and after it."""
_FRAME_ROWS: Final = 8
"""Rows of the screen that no code stands on."""
_REST_S: Final = 0.1
"""Time between two updates of the screen."""


class Fill(ModalScreen[str]):
    """Is dismissed with what was filled in; empty if nothing was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "Stop, then close", id="fill.close"),
        Binding("c", "copy", "Copy what was filled in", id="fill.copy"),
        Binding("a", "copy_all", "Copy all, with the text around it", id="fill.copy_all"),
        Binding("up", "scroll(-1)", "Scroll up", show=False, id="fill.up"),
        Binding("down", "scroll(1)", "Scroll down", show=False, id="fill.down"),
        Binding("pageup", "scroll(-10)", "Scroll up a page", show=False, id="fill.page_up"),
        Binding("pagedown", "scroll(10)", "Scroll down a page", show=False, id="fill.page_down"),
    ]

    def __init__(self, engine: Engine, gap: Gap, wanted: Generate) -> None:
        super().__init__()
        self.gap = gap
        self.state = "waits"
        """What goes on, or how it ended, in words."""
        self._engine = engine
        self._wanted = wanted
        self._parts: list[str] = []
        self._writing = True
        self._news = False
        """Whether something came that is not shown yet."""

    @property
    def text(self) -> str:
        """What was filled in so far."""
        return "".join(self._parts)

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Fill in the middle"
            with VerticalScroll(can_focus=False):
                yield Static(classes="code")
            yield Static(classes="state")
            yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(KeyLine).tell("fill.close", "stop")
        self._show()
        self.call_after_refresh(self.query_one(VerticalScroll).scroll_end, animate=False)
        self.set_interval(_REST_S, self._update)
        begin(self, self._run, "fill")

    def action_close(self) -> None:
        if self._writing:
            self._engine.stop(self._wanted.id)
        else:
            self.dismiss(self.text)

    def action_copy(self) -> None:
        self._copy(self.text)

    def action_copy_all(self) -> None:
        self._copy(self.gap.before + self.text + self.gap.after)

    def action_scroll(self, rows: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    def _copy(self, text: str) -> None:
        if text:
            self.app.copy_to_clipboard(text)

    async def _run(self) -> None:
        try:
            await self._fill()
        except (EngineError, EngineDied) as error:
            self.state = str(error)
        self._writing = False
        self.query_one(KeyLine).tell("fill.close", "close")
        await self._colour()

    async def _fill(self) -> None:
        ending = self.gap.ending()
        async with aclosing(self._engine.generate(self._wanted)) as events:
            async for event in events:
                self._news = True
                match event:
                    case Prefilling(_, done, total):
                        self.state = reading(done, total)
                    case Notice(_, text):
                        self.notify(text, markup=False)
                    case Chunk():
                        self._parts.append(newlines(ending.push(event.text)))
                        self.state = _figures(event.stats)
                        if ending.reached:
                            self._engine.stop(self._wanted.id)
                    case Done():
                        stopped = event.reason == "stopped" and not ending.reached
                        said = "" if self.text else "The model has nothing to add there."
                        self.state = said or _figures(event.stats) + (" · stopped" if stopped else "")

    def _update(self) -> None:
        if self._news and self._writing:
            self._news = False
            self._show()

    def _show(self, coloured: tuple[Content, Content, Content] | None = None) -> None:
        before, filled, after = coloured or (Content(self._before), Content(self.text), Content(self._after))
        code = Content.assemble(before, filled.stylize("$foreground on $primary 25%"), after)
        self.query_one(".code", Static).update(code)
        self.set_class(code.plain.count("\n") + _FRAME_ROWS < self.app.size.height, "-short")
        self.query_one(".state", Static).update(Content(self.state))

    async def _colour(self) -> None:
        """Highlights all of it, once nothing more comes; outside the UI's thread."""
        code = self._before + self.text + self._after
        coloured = await asyncio.to_thread(_highlighted, code, self.gap.language)
        start, end = len(self._before), len(self._before) + len(self.text)
        whole = coloured.plain == code
        self._show((coloured[:start], coloured[start:end], coloured[end:]) if whole else None)

    @property
    def _before(self) -> str:
        return "".join(self.gap.before.splitlines(keepends=True)[-_AROUND:])

    @property
    def _after(self) -> str:
        return "".join(self.gap.after.splitlines(keepends=True)[:_AROUND])


def _figures(stats: Stats) -> str:
    rate = f"{stats.tokens_per_s:.1f} tok/s · " if stats.tokens_per_s else ""
    return f"{rate}{stats.emitted:,} tokens in {stats.target_passes:,} passes"


def _highlighted(code: str, language: str) -> Content:
    from textual.highlight import highlight  # Pygments takes a while to import

    return highlight(code, language=language, tab_size=0)
