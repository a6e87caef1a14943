"""A block of code: its language, what can be done with it, and lines that are rendered as they come into view."""

import asyncio
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.widgets.grows import Grows
from specchat.tui.widgets.item import CopyItem, Item, SaveItem
from specchat.tui.widgets.rows import Rows
from specchat.tui.wrapping import cells

RUN_LINES = 16
"""Lines that are coloured together while the block grows; colour follows that far behind until it is complete."""


class CodeBlock(Item):
    """Code of one fence."""

    choosable = True

    def __init__(self, language: str) -> None:
        super().__init__()
        self.language = language
        self.closed = False
        """Nothing more comes."""
        self.lines: list[Content] = [Content()]
        """What is shown; the last line is still open."""
        self.columns = 0
        """Width of the widest line."""
        self.highlighted_characters = 0
        """Characters given to the highlighter so far."""
        self._parts: list[str] = []
        self._plain_from = 0
        """The first line without colours."""
        self._new_from = 0
        """The first line that the widget doesn't know."""
        self._coloured = False
        """The colours are those of the code as a whole."""

    @property
    def code(self) -> str:
        """Its exact source."""
        return "".join(self._parts)

    @property
    def copied(self) -> str:
        return self.code.removesuffix("\n")

    def add(self, text: str) -> None:
        self._parts.append(text)
        first, *more = text.split("\n")
        self._new_from = min(self._new_from, len(self.lines) - 1)
        self.lines[-1] += first
        self.lines += [Content(line) for line in more]
        self.columns = max(self.columns, *(cells(line.plain) for line in self.lines[-1 - len(more) :]))
        while len(self.lines) - 1 - self._plain_from >= RUN_LINES:
            self._colour_run()

    def close(self) -> None:
        self.closed = True
        if len(self.lines) > 1 and not self.lines[-1].plain:
            self.lines.pop()

    def make(self) -> Widget:
        self._new_from = len(self.lines)
        return CodeView(self)

    async def fill(self) -> None:
        """Shows new lines at once, and the colours of complete code once they are there."""
        if not isinstance(self.widget, CodeView):
            return
        self.widget.rows.changed(self._new_from)
        self._new_from = len(self.lines) - 1
        if self.closed and not self._coloured and not self.widget.colouring:
            self.widget.colouring = True
            self.widget.run_worker(self._colour_whole())

    def estimate(self, width: int) -> int:
        return len(self.lines) + 2

    def _colour_run(self) -> None:
        start, end = self._plain_from, self._plain_from + RUN_LINES
        run = "\n".join(line.plain for line in self.lines[start:end])
        self.highlighted_characters += len(run)
        self.lines[start:end] = _highlighted(run, self.language)
        self._plain_from = end
        self._new_from = min(self._new_from, start)

    async def _colour_whole(self) -> None:
        """Colours the code as a whole, outside the UI's thread."""
        self.highlighted_characters += len(self.code)
        lines = await asyncio.to_thread(_highlighted, self.code.removesuffix("\n"), self.language)
        self.lines, self._coloured = lines, True
        if isinstance(self.widget, CodeView):
            self.widget.rows.changed(0)


class CodeView(Grows, Vertical):
    def __init__(self, code: CodeBlock) -> None:
        super().__init__()
        self.code = code
        self.rows = CodeRows(code)
        self.colouring = False
        """Its code is being coloured as a whole."""

    def compose(self) -> ComposeResult:
        with Horizontal(classes="head"):
            yield Static(Content(self.code.language), classes="language")
            yield _Button("copy", CopyItem, self.code)
            yield _Button("save", SaveItem, self.code)
        with CodeScroll():
            yield self.rows


class CodeScroll(Grows, Vertical):
    """Scrolls lines that are too long."""


class CodeRows(Rows):
    def __init__(self, code: CodeBlock) -> None:
        super().__init__()
        self._code = code
        self._known = len(code.lines)

    @property
    def count(self) -> int:
        return len(self._code.lines)

    def row(self, y: int) -> tuple[Content, int, int]:
        return self._code.lines[y], y, 0

    def plain_lines(self) -> Sequence[str]:
        return [line.plain for line in self._code.lines]

    def changed(self, y: int) -> None:
        before, self._known = self._known, self.count
        self.changed_from(y, before)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return max(1, self._code.columns)


class _Button(Static):
    """A word to click."""

    def __init__(self, word: str, message: type[CopyItem | SaveItem], code: CodeBlock) -> None:
        super().__init__(Content(word), classes="button")
        self._message = message
        self._code = code

    def on_click(self) -> None:
        self.post_message(self._message(self._code))


def _highlighted(code: str, language: str) -> list[Content]:
    from textual.highlight import highlight  # Pygments takes a while to import; most answers have no code

    # Tabs stay: expanding them shifts the colours.
    return highlight(code, language=language or "text", tab_size=0).split("\n", allow_blank=True)
