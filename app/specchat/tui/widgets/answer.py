"""An answer while it streams and after: Markdown and code, then one dim line of figures."""

import asyncio

from markdown_it import MarkdownIt
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Markdown, Static

from specchat.tui.segments import PROSE_CHARACTERS, Code, CodeEnd, CodeStart, Cut, Prose, Segmenter, Step
from specchat.tui.widgets.code import CodeBlock

_LINE_BREAKS = str.maketrans("\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x85", "        ")
"""Line breaks to Python but not to Markdown; Textual counts lines with both."""


class Answer(Vertical):
    """Text goes in by `write` at any rate; `flush` brings it to the screen, as often as the screen can bear."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0
        """Calls of Markdown.append so far."""
        self.parsed_characters = 0
        """Characters of Markdown handed to the parser so far, at most."""
        self._turn = asyncio.Lock()
        self._gone = False
        self._waiting = Static(Content("…"), classes="waiting")
        self._footer = Static(classes="footer")
        self._written: list[str] = []
        self._pending: list[str] = []
        self._segmenter = Segmenter()
        self._stretch: _Stretch | None = None
        self._block: CodeBlock | None = None

    @property
    def text(self) -> str:
        return "".join(self._written)

    def compose(self) -> ComposeResult:
        yield self._waiting
        yield self._footer

    def wait(self, text: str) -> None:
        """Says what happens before the first token."""
        self._waiting.update(Content(text))

    def write(self, text: str) -> None:
        self._written.append(text)
        self._pending.append(text)

    async def flush(self) -> None:
        """Shows what was written since the last time."""
        async with self._turn:
            await self._flush()

    async def finish(self, footer: str) -> None:
        """The answer is complete. Each stretch is rendered once more as a whole, whatever streaming did to it."""
        async with self._turn:
            if self._gone:
                return
            await self._flush()
            self._waiting.display = False
            for step in self._segmenter.end():
                await self._take(step)
            await self._close_stretch()
            self._footer.update(Content(footer))
            self._footer.display = bool(footer)

    async def discard(self) -> None:
        """Leaves the screen; a flush or finish that comes later does nothing."""
        async with self._turn:
            self._gone = True
            await self.remove()

    async def _flush(self) -> None:
        if self._gone:
            return
        text = "".join(self._pending).translate(_LINE_BREAKS)
        self._pending.clear()
        if text:
            self._waiting.display = False
            for step in _joined(list(self._segmenter.feed(text))):
                await self._take(step)
            if self._stretch:
                await self._append(self._stretch)

    async def _take(self, step: Step) -> None:
        match step:
            case Prose(text):
                if self._stretch is None:
                    self._stretch = _Stretch()
                    await self.mount(self._stretch, before=self._footer)
                self._stretch.pending += text
            case Cut(tight):
                if self._stretch:
                    self._stretch.set_class(tight, "-tight")
                await self._close_stretch()
            case CodeStart(language):
                self._block = CodeBlock(language)
                await self.mount(self._block, before=self._footer)
            case Code(text):
                assert self._block
                await self._block.append(text)
            case CodeEnd():
                assert self._block
                await self._block.finish()
                self._block = None

    async def _append(self, stretch: "_Stretch") -> None:
        """Appends what is pending; waits for more where one block grows long, so that the cost stays linear."""
        shown, block = len(stretch.source), stretch.source.rfind("\n\n") + 1
        too_little = shown - block > PROSE_CHARACTERS and len(stretch.pending) < (shown - block) / 8
        if not stretch.pending or too_little:
            return
        text, stretch.pending = stretch.pending, ""
        self.appends += 1
        self.parsed_characters += shown + len(text)
        await stretch.append(text)

    async def _close_stretch(self) -> None:
        if self._stretch is None:
            return
        source = self._stretch.source + self._stretch.pending
        self._stretch.pending = ""
        self.parsed_characters += len(source)
        await self._stretch.update(source)
        self._stretch = None

    @on(Markdown.LinkClicked)
    def _open(self, event: Markdown.LinkClicked) -> None:
        """Opens web pages only; the model may have made up anything else."""
        event.stop()
        if event.href.startswith(("https://", "http://")):
            self.app.open_url(event.href)
        else:
            self.notify(event.href, title="This link was not opened", markup=False)


class _Stretch(Markdown):
    """Markdown that was started empty and only ever appended to, until its last `update`."""

    def __init__(self) -> None:
        super().__init__(parser_factory=_parser, open_links=False)
        self.pending = ""


def _parser() -> MarkdownIt:
    return MarkdownIt("gfm-like", {"html": False})  # HTML is shown as it was written; Textual would drop it


def _joined(steps: list[Step]) -> list[Step]:
    """Neighbouring pieces of the same kind made one."""
    joined: list[Step] = []
    for step in steps:
        last = joined[-1] if joined else None
        if isinstance(step, Prose) and isinstance(last, Prose):
            joined[-1] = Prose(last.text + step.text)
        elif isinstance(step, Code) and isinstance(last, Code):
            joined[-1] = Code(last.text + step.text)
        else:
            joined.append(step)
    return joined
