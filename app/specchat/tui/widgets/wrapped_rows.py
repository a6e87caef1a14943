"""Lines of text that may grow at their end, wrapped at words."""

from typing import ClassVar

from textual.content import Content

from specchat.tui.widgets.rows import Rows
from specchat.tui.wrapping import breaks


class WrappedRows(Rows):
    """Subclasses say what the lines are; there is one at least."""

    HEAD: ClassVar[int] = 0
    """Rows above the text."""
    PADDING: ClassVar[int] = 0
    """Columns to the right of the text."""

    def __init__(self) -> None:
        super().__init__()
        self._wrapped: list[tuple[int, int, int]] = []
        """Of each row: its line, and the part of it."""

    @property
    def count(self) -> int:
        return self.HEAD + len(self._wrapped)

    def row(self, y: int) -> tuple[Content, int, int]:
        line, start, end = self._wrapped[y - self.HEAD]
        return self.styled(line, start, end), line, start

    def styled(self, line: int, start: int, end: int) -> Content:
        """A part of a line with its styles."""
        return Content(self.plain_lines()[line][start:end])

    def grown(self) -> None:
        """Text was added: wraps from the last row on."""
        if self.fitted:
            before = self.count
            self._wrap()
            self.changed_from(max(self.HEAD, before - 1), before)

    def lay_out(self) -> None:
        self._wrapped.clear()
        self._wrap()

    def _wrap(self) -> None:
        line, start, _ = self._wrapped.pop() if self._wrapped else (0, 0, 0)
        width = max(1, self.fitted - self.INDENT - self.PADDING)
        lines = self.plain_lines()
        for number in range(line, len(lines)):
            for end in breaks(lines[number], width, start):
                self._wrapped.append((number, start, end))
                start = end
            start = 0
