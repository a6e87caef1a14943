"""Stands in a column for items without widgets."""

from textual.geometry import Size
from textual.widget import Widget


class Gap(Widget):
    DEFAULT_CSS = "Gap { width: 1fr; height: auto; }"

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    def grow_to(self, rows: int) -> None:
        if rows != self.rows:
            self.rows = rows
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.rows

    def render(self) -> str:
        return ""
