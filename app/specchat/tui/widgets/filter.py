"""A line to type into above a list."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from specchat.tui.widgets.line import Line


class Filter(Line, inherit_bindings=False):
    """Edits its text and leaves all other keys to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "cursor_left", show=False),
        Binding("right", "cursor_right", show=False),
        Binding("home", "home", show=False),
        Binding("end", "end", show=False),
        Binding("backspace", "delete_left", show=False),
        Binding("ctrl+w", "delete_left_word", show=False),
        Binding("ctrl+u", "delete_left_all", show=False),
    ]
