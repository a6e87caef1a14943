"""A block of code: its language, what can be done with it, and lines that are rendered as they come into view."""

import asyncio
from bisect import bisect_left

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from specchat.tui.background import begin
from specchat.tui.widgets.item import CopyItem, Item, SaveItem, rows_of
from specchat.tui.widgets.wrapped_rows import WrappedRows

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
        self.plain_lines = [""]
        self.lines = [Content()]
        """The same with colours, as far as they are known."""
        self.highlighted_characters = 0
        """Characters given to the highlighter so far."""
        self._parts: list[str] = []
        self._newline = ""
        """The newline at the end, held back: it begins no line before something is on it."""
        self._coloured_to = 0
        """Lines that were given to the highlighter."""
        self._news_from: int | None = None
        """The first line that got other colours since the widget was brought up to date."""
        self._whole = False
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
        text = self._newline + text
        self._newline = "\n" if text.endswith("\n") else ""
        first, *more = text.removesuffix("\n").split("\n")
        self.plain_lines[-1] += first
        self.plain_lines += more
        self.lines[-1] = Content(self.plain_lines[-1 - len(more)])
        self.lines += map(Content, more)
        while len(self.lines) - 1 - self._coloured_to >= RUN_LINES:
            self._colour_run()

    def close(self) -> None:
        self.closed = True

    def make(self) -> Widget:
        self._news_from = None
        return CodeRows(self)

    async def fill(self) -> None:
        """Shows new lines at once, and the colours of complete code once they are there."""
        if not isinstance(self.widget, CodeRows):
            return
        self.widget.grown()
        if self._news_from is not None:
            self.widget.recoloured(self._news_from)
            self._news_from = None
        if self.closed and not self._whole and not self.widget.colouring:
            self.widget.colouring = True
            begin(self.widget, self._colour_whole, "colour")

    def estimate(self, width: int) -> int:
        return rows_of("\n".join(self.plain_lines), width - 6) + 2

    def _colour_run(self) -> None:
        start, end = self._coloured_to, self._coloured_to + RUN_LINES
        self._take_colours(start, self.plain_lines[start:end], _highlighted(self.plain_lines[start:end], self.language))
        self._coloured_to = end
        self._news_from = start if self._news_from is None else min(start, self._news_from)

    async def _colour_whole(self) -> None:
        """Colours the code as a whole, outside the UI's thread."""
        lines = await asyncio.to_thread(_highlighted, self.plain_lines, self.language)
        self._take_colours(0, self.plain_lines, lines)
        self._whole = True
        if isinstance(self.widget, CodeRows):
            self.widget.recoloured(0)

    def _take_colours(self, start: int, plain: list[str], lines: list[Content]) -> None:
        self.highlighted_characters += sum(map(len, plain)) + len(plain)
        if [line.plain for line in lines] == plain:  # a highlighter that changes text is not believed
            self.lines[start : start + len(plain)] = lines


class CodeRows(WrappedRows):
    """Lines that are too long are wrapped: none of them is hidden, and copies don't have the breaks."""

    HEAD = INDENT = PADDING = 1

    def __init__(self, code: CodeBlock) -> None:
        super().__init__()
        self.code = code
        self.colouring = False
        """Its code is being coloured as a whole."""

    def plain_lines(self) -> list[str]:
        return self.code.plain_lines

    def row(self, y: int) -> tuple[Content, int, int]:
        return super().row(y) if y else (self._head(), -1, 0)

    def styled(self, line: int, start: int, end: int) -> Content:
        return self.code.lines[line][start:end]

    def before(self, y: int) -> Content:
        goes_on = y > 0 and super().row(y)[2] > 0
        return Content.styled("↪" if goes_on else " ", "$foreground 50%")

    def recoloured(self, line: int) -> None:
        """Lines from this one on have other colours."""
        row = bisect_left(self._wrapped, (line, 0, 0))
        self.changed_from(self.HEAD + row, self.count)

    def _head(self) -> Content:
        words = [Content(word).stylize(Style.from_meta({"@click": word})) for word in ("copy", "save")]
        right = Content("  ").join(words)
        room = self.size.width - self.INDENT - self.PADDING - len(right)
        language = self.code.language[: max(0, room - 1)]
        return Content.assemble(language, " " * (room - len(language)), right).stylize("$foreground 60%")

    def action_copy(self) -> None:
        self.post_message(CopyItem(self.code))

    def action_save(self) -> None:
        self.post_message(SaveItem(self.code))


def _highlighted(lines: list[str], language: str) -> list[Content]:
    from textual.highlight import highlight  # Pygments takes a while to import; most answers have no code

    # Tabs stay: expanding them shifts the colours.
    code = highlight("\n".join(lines), language=language or "text", tab_size=0)
    return code.split("\n", allow_blank=True)
