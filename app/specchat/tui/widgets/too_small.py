"""One calm line where the window is smaller than the chat was made for."""

from typing import Final

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

LEAST: Final = Size(60, 16)
"""Columns and rows in which everything important shows."""
UNREADABLE: Final = Size(24, 6)
"""Below this nothing else is shown."""


class TooSmall(Static):
    """Shown only where it applies: a line above the chat, or alone where there is no room for more."""

    def fit(self, size: Size) -> None:
        """Takes the size of the window."""
        self.display = size.width < LEAST.width or size.height < LEAST.height
        self.screen.set_class(size.width < UNREADABLE.width or size.height < UNREADABLE.height, "-unreadable")
        self.update(Content(f"{size.width}×{size.height} is small; made for {LEAST.width}×{LEAST.height}"))
