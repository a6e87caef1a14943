"""Lines of text that may grow at their end, wrapped at words."""

from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size

from specchat.tui.widgets.rows import Rows
from specchat.tui.wrapping import breaks


class WrappedRows(Rows):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines
        self._wrapped: list[tuple[int, int, int]] = []
        """Of each row: its line, and the part of it."""
        self._fitted = 0
        """The width that they were wrapped for."""

    @property
    def count(self) -> int:
        return len(self._wrapped)

    def row(self, y: int) -> tuple[Content, int, int]:
        line, start, end = self._wrapped[y]
        return self.styled(self.lines[line][start:end], line, start), line, start

    def styled(self, text: str, line: int, start: int) -> Content:
        """A part of a line with its styles."""
        return Content(text)

    def plain_lines(self) -> Sequence[str]:
        return self.lines

    def grown(self) -> None:
        """Text was added: wraps from the last row on."""
        if self._fitted:
            before = len(self._wrapped)
            self._wrap()
            self.changed_from(max(0, before - 1), before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        if width != self._fitted:
            self._fitted = width
            self._wrapped.clear()
            self._wrap()
        return self.count

    def _wrap(self) -> None:
        line, start, _ = self._wrapped.pop() if self._wrapped else (0, 0, 0)
        for number in range(line, len(self.lines)):
            for end in breaks(self.lines[number], self._fitted - self.INDENT, start):
                self._wrapped.append((number, start, end))
                start = end
            start = 0
