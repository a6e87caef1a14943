"""Text of any length in rows that are rendered when they come on the screen, and never before."""

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from specchat.tui.widgets.grows import Grows
from specchat.tui.wrapping import TAB

_LINE_BREAKS = str.maketrans("\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x85", "        ")
"""Line breaks to Python alone; Textual counts the lines of a selection with them."""


class Rows(Grows, Widget):
    """Subclasses say how many rows there are and what each of them shows."""

    DEFAULT_CSS = "Rows { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: clip; }"
    ALLOW_SELECT = True
    INDENT: ClassVar[int] = 0
    """Columns to the left of the text, where a bar marks what is chosen."""

    def __init__(self) -> None:
        super().__init__()
        self._strips: dict[int, Strip] = {}
        self._strips_hold_for: tuple[int, int, bool] = (0, 0, False)
        self.fitted = 0
        """The width that the rows are laid out for; 0 before that was asked for."""

    @property
    def count(self) -> int:
        """Rows in all."""
        raise NotImplementedError

    def row(self, y: int) -> tuple[Content, int, int]:
        """Content of a row, the line of text that it belongs to (-1 for none), and which column of that line its first
        one is."""
        raise NotImplementedError

    def before(self, y: int) -> Content:
        """What stands to the left of a row."""
        return Content()

    def plain_lines(self) -> Sequence[str]:
        """The lines of text, for selections."""
        raise NotImplementedError

    def changed_from(self, y: int, before: int) -> None:
        """Rows from `y` on are new or other ones; there were `before` in all."""
        for number in range(y, max(before, self.count)):
            self._strips.pop(number, None)
        width = max(self.size.width, 1)
        self.refresh(Region(0, y, width, max(1, self.count - y)), layout=self.count != before)

    def lay_out(self) -> None:
        """Makes the rows anew, for the width in `fitted`."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._fit(width)
        return self.count

    def _fit(self, width: int) -> None:
        if width != self.fitted:
            self.fitted = width
            self.lay_out()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Past Textual's cache of painted lines, which it empties each time that the widget grows."""
        if self.fitted != self.size.width:  # Textual kept a layout of this width, and asked for no height
            self._fit(self.size.width)
            if self.count != self.size.height:
                self.refresh(layout=True)
        lines = [self.render_line(y) for y in crop.line_range]
        return lines if crop.column_span == (0, self.size.width) else [line.crop(*crop.column_span) for line in lines]

    def render_line(self, y: int) -> Strip:
        if y >= self.count:
            return Strip.blank(self.size.width, self.rich_style)
        if self._strips_hold_for != (holds_for := (self.size.width, self.fitted, self.has_class("-chosen"))):
            self._strips_hold_for = holds_for
            self._strips.clear()
        if y not in self._strips:
            self._strips[y] = self._strip(y)
        return self._strips[y]

    def _strip(self, y: int) -> Strip:
        content, line, start = self.row(y)
        if not content.plain.isascii():
            content = Content(content.plain.translate(_LINE_BREAKS), list(content.spans))
        strip = self._drawn(self._with_selection(content, line, start).expand_tabs(TAB), self.size.width - self.INDENT)
        if line >= 0:
            strip = strip.apply_offsets(start, line)
        if self.INDENT:
            bar = Content.styled("▌", "$accent") if self.has_class("-chosen") else self.before(y)
            strip = Strip.join([self._drawn(bar, self.INDENT), strip])
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return strip

    def _drawn(self, content: Content, width: int) -> Strip:
        drawn = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return drawn[0] if drawn else Strip.blank(width, self.rich_style)

    def _with_selection(self, content: Content, line: int, start: int) -> Content:
        selection = self.text_selection
        if selection is None or (span := selection.get_span(line)) is None:
            return content
        style = Style.from_styles(self.screen.get_component_styles("screen--selection"))
        end = len(content) if span[1] == -1 else max(0, span[1] - start)
        return content.stylize(style, max(0, span[0] - start), end)

    def render(self) -> str:
        return ""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(line.translate(_LINE_BREAKS) for line in self.plain_lines())), "\n"
