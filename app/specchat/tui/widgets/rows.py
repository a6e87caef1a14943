"""Text of any length in rows that are rendered when they come on the screen, and never before."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from specchat.tui.widgets.grows import Grows

TAB: Final = 8


class Rows(Grows):
    """Subclasses say how many rows there are and what each of them shows."""

    DEFAULT_CSS = "Rows { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: clip; }"
    ALLOW_SELECT = True

    def __init__(self) -> None:
        super().__init__()
        self._strips: dict[int, Strip] = {}
        self._strip_width = 0

    @property
    def count(self) -> int:
        """Rows in all."""
        raise NotImplementedError

    def row(self, y: int) -> tuple[Content, int, int]:
        """Content of a row, the line of text that it belongs to, and where in that line it starts."""
        raise NotImplementedError

    def plain_lines(self) -> Sequence[str]:
        """The lines of text, for selections."""
        raise NotImplementedError

    def changed_from(self, y: int, before: int) -> None:
        """Rows from `y` on are new or other ones; there were `before` in all."""
        for number in range(y, max(before, self.count)):
            self._strips.pop(number, None)
        width = max(self.size.width, 1)
        self.refresh(Region(0, y, width, max(1, self.count - y)), layout=self.count != before)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.count

    def render_lines(self, crop: Region) -> list[Strip]:
        """Past Textual's cache of painted lines, which it empties each time that the widget grows."""
        lines = [self.render_line(y) for y in crop.line_range]
        return lines if crop.column_span == (0, self.size.width) else [line.crop(*crop.column_span) for line in lines]

    def render_line(self, y: int) -> Strip:
        if y >= self.count:
            return Strip.blank(self.size.width, self.rich_style)
        if self._strip_width != self.size.width:
            self._strip_width = self.size.width
            self._strips.clear()
        if y not in self._strips:
            self._strips[y] = self._strip(y)
        return self._strips[y]

    def _strip(self, y: int) -> Strip:
        content, line, start = self.row(y)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(line)) is not None:
            style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            ends = len(content) if span[1] == -1 else max(0, span[1] - start)
            content = content.stylize(style, max(0, span[0] - start), ends)
        width = self.size.width
        strips = Visual.to_strips(
            self, content.expand_tabs(TAB), width, 1, self.visual_style, apply_selection=False, pad=True
        )
        strip = (strips[0] if strips else Strip.blank(width, self.rich_style)).apply_offsets(start, line)
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return strip

    def render(self) -> str:
        return ""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self.plain_lines())), "\n"


class WrappedRows(Rows):
    """Lines of text that may grow at their end, wrapped at words."""

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
            for end in breaks(self.lines[number], self._fitted, start):
                self._wrapped.append((number, start, end))
                start = end
            start = 0


def breaks(text: str, width: int, start: int = 0) -> list[int]:
    """Where the rows of a line end when it is wrapped at words; the last one at its end.

    Every character belongs to a row. The blank at which a row is broken ends it, and may hang over its width.
    """
    found = []
    while (end := _fitting(text, start, width)) < len(text):
        if text[end] == " ":
            end += 1
        elif (blank := text.rfind(" ", start, end)) > start:
            end = blank + 1
        found.append(end)
        start = end
    return [*found, len(text)]


def _fitting(text: str, start: int, width: int) -> int:
    """Where the longest part ends that fits into the width, one character at least."""
    end = min(len(text), start + width)
    part = text[start:end]
    if part.isascii() and "\t" not in part:
        return max(end, start + 1) if start < len(text) else end
    cells = 0
    for end in range(start, len(text)):
        letter = text[end]
        cells += TAB - cells % TAB if letter == "\t" else get_character_cell_size(letter)
        if cells > width and end > start:
            return end
    return len(text)


def cells(text: str) -> int:
    """Columns that a line takes."""
    return cell_len(text.expandtabs(TAB))
