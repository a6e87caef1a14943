"""The list above the prompt: what may be meant by what was typed so far."""

from collections.abc import Callable, Sequence
from textwrap import wrap

from textual import on
from textual.content import Content
from textual.geometry import Offset, Region
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specchat.tui.suggestions import Suggestion

_ROWS = 8
_COLUMNS = 100
_FRAME = 2
_SIDES = 5
"""Columns of the frame, what is free beside it, and the scrollbar."""
_LEAST = 12
"""Columns in which something is still said of a suggestion."""


class Suggestions(OptionList, can_focus=False):
    """Never takes the focus: the prompt drives it, and tells it what to show."""

    def __init__(self, take: Callable[[Suggestion], None]) -> None:
        """`take` is called with what was clicked."""
        super().__init__(compact=True)
        self._take = take
        self.items: Sequence[Suggestion] = ()
        self.display = False
        self._placed = (0, 0)
        """Width and height."""
        self._filled = self._rows = 0
        """The width that the suggestions are laid out for, and rows that they take there."""

    @property
    def open(self) -> bool:
        return self.display

    @property
    def chosen(self) -> Suggestion | None:
        """The highlighted one."""
        return None if self.highlighted is None else self.items[self.highlighted]

    def show(self, items: Sequence[Suggestion], prompt: Region, *, choose: bool, hint: str) -> None:
        """Shows the suggestions above the prompt, the first one highlighted if `choose`."""
        if not items:
            self.close()
            return
        if items != self.items:
            self.items = tuple(items)
            self._fill(min(prompt.width, _COLUMNS))
        self.highlighted = 0 if choose else None
        self.border_subtitle = hint
        self.display = True
        self.place(prompt)

    def _fill(self, width: int) -> None:
        """Shows the suggestions in so many columns."""
        self._filled = width
        column = max((Content(item.shown).cell_length for item in self.items), default=0)
        lines = [_line(item, column, width - _SIDES) for item in self.items]
        self._rows = sum(line.plain.count("\n") + 1 for line in lines)
        self.clear_options()
        self.add_options([Option(line) for line in lines])

    def place(self, prompt: Region) -> None:
        """Stands above the prompt, as high as the suggestions need and the screen allows."""
        width = min(prompt.width, _COLUMNS)
        if self.display and self._filled != width:
            chosen = self.highlighted
            self._fill(width)
            self.highlighted = chosen
        height = min(self._rows, _ROWS, max(1, prompt.y - _FRAME)) + _FRAME
        offset = Offset(prompt.x, prompt.y - height)
        if self.display and (self._placed != (width, height) or self.absolute_offset != offset):
            self.styles.width, self.styles.height = self._placed = width, height
            self.absolute_offset = offset
            self.refresh(layout=True)

    def close(self) -> None:
        self.display = False
        self.items = ()
        self.clear_options()

    def move(self, step: int) -> None:
        """Highlights the next one, or the one before, around the ends."""
        count = len(self.items)
        at = self.highlighted
        self.highlighted = (0 if step > 0 else count - 1) if at is None else (at + step) % count

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self.items):
            self._take(self.items[event.option_index])


def _line(item: Suggestion, column: int, width: int) -> Content:
    """The suggestion, and beside it what is said of it, in as many rows as that needs."""
    shown = Content(item.shown)
    if not item.about:
        return shown
    gap = " " * (column - shown.cell_length + 2)
    about = wrap(item.about, max(_LEAST, width - column - 2))
    return Content.assemble(shown, gap, Content.styled(f"\n{' ' * (column + 2)}".join(about), "$foreground 60%"))
