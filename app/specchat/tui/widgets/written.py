"""An answer as it was written, character by character, coloured by source: no Markdown that could hide any of it."""

from bisect import bisect_right

from textual.content import Content, Span
from textual.widget import Widget

from specchat.tui.by_source import style_of
from specchat.tui.widgets.item import Item, rows_of
from specchat.tui.widgets.wrapped_rows import WrappedRows


class Written(Item):
    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._line_starts = [0]
        """Where each line starts in the text."""
        self._run_starts: list[int] = []
        self._sources: list[str] = []
        """Who wrote what starts there."""
        self._length = 0

    def add(self, text: str, source: str) -> None:
        if not text:
            return
        if not self._sources or self._sources[-1] != source:
            self._run_starts.append(self._length)
            self._sources.append(source)
        first, *more = text.split("\n")
        self.lines[-1] += first
        for line in more:
            self._line_starts.append(self._line_starts[-1] + len(self.lines[-1]) + 1)
            self.lines.append(line)
        self._length += len(text)

    def parts(self, line: int, start: int, end: int) -> list[tuple[int, int, str]]:
        """Who wrote which part of a line, from column to column, between two of its columns."""
        offset = self._line_starts[line]
        number = bisect_right(self._run_starts, offset + start) - 1
        found = []
        while start < end and number < len(self._sources):
            is_last = number + 1 == len(self._sources)
            stop = end if is_last else min(end, self._run_starts[number + 1] - offset)
            found.append((start, stop, self._sources[number]))
            start, number = stop, number + 1
        return found

    def make(self) -> Widget:
        return WrittenRows(self)

    async def fill(self) -> None:
        if isinstance(self.widget, WrittenRows):
            self.widget.grown()

    def estimate(self, width: int) -> int:
        return rows_of("\n".join(self.lines), width - 4)


class WrittenRows(WrappedRows):
    INDENT = 2

    def __init__(self, written: Written) -> None:
        super().__init__()
        self._written = written

    def plain_lines(self) -> list[str]:
        return self._written.lines

    def styled(self, line: int, start: int, end: int) -> Content:
        spans = [
            Span(first - start, last - start, style)
            for first, last, source in self._written.parts(line, start, end)
            if (style := style_of(source, self.app.no_color))
        ]
        return Content(self._written.lines[line][start:end], spans)
