"""Text that is laid out for the width it stands in, and anew for another one."""

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static


class Fitted(Static):
    def laid(self, width: int) -> Content:
        """What stands in so many columns; nothing, but for subclasses."""
        return Content()

    def render(self) -> Content:
        return self.laid(self.content_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.laid(width).get_height({}, width)
