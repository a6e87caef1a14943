"""A block of code that grows cheaply: short runs of lines, each laid out and highlighted on its own."""

import asyncio

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

RUN_LINES = 16
"""An append lays out at most this many lines again; colour follows that far behind until the block ends."""
SETTLED_LINES = 256
"""Lines of a run once the block is complete: every layout of the screen pays for each run."""


class CodeBlock(Vertical):
    """Code of one fence. `code` is its exact source."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language
        self.highlighted_characters = 0
        """Characters given to the highlighter so far."""
        self._lines = Vertical(classes="lines")
        self._parts: list[str] = []
        self._runs: list[Static] = []
        self._tail = ""
        """Source of the last run."""

    @property
    def code(self) -> str:
        return "".join(self._parts)

    def compose(self) -> ComposeResult:
        if self.language:
            yield Static(Content(self.language), classes="language")
        yield self._lines

    async def append(self, text: str) -> None:
        self._parts.append(text)
        *whole, rest = (self._tail + text).split("\n")
        start = 0
        while len(whole) - start >= RUN_LINES:
            run = "\n".join(whole[start : start + RUN_LINES])
            await self._show(run)
            self._runs[-1].update(self._highlight(run))
            self._tail = ""
            self._runs.append(Static(classes="run"))
            await self._lines.mount(self._runs[-1])
            start += RUN_LINES
        self._tail = "\n".join([*whole[start:], rest])
        await self._show(self._tail)

    async def finish(self) -> None:
        """The block is complete: highlights it as a whole, outside the UI's thread."""
        code = self.code
        self.highlighted_characters += len(code)
        lines = (await asyncio.to_thread(_highlighted, code, self.language)).split("\n", allow_blank=True)
        if lines and not lines[-1].plain:
            lines.pop()
        for index, run in enumerate(self._runs):
            if part := lines[index * SETTLED_LINES : (index + 1) * SETTLED_LINES]:
                run.display = True
                run.update(Content("\n").join(part))
        settled = -(-len(lines) // SETTLED_LINES)
        await self._lines.remove_children(self._runs[settled:])
        del self._runs[settled:]

    async def _show(self, run: str) -> None:
        if not self._runs:
            self._runs.append(Static(classes="run"))
            await self._lines.mount(self._runs[-1])
        visible = run.removesuffix("\n")
        self._runs[-1].display = bool(visible)
        self._runs[-1].update(Content(visible))

    def _highlight(self, run: str) -> Content:
        self.highlighted_characters += len(run)
        return _highlighted(run, self.language)


def _highlighted(code: str, language: str) -> Content:
    from textual.highlight import highlight  # Pygments takes a while to import; most answers have no code

    return highlight(code, language=language or "text", tab_size=0)  # tabs stay: expanding them shifts the colours
