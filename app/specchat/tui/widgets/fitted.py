"""Text that is laid out for the width it stands in, and anew for another one."""

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static


class Fitted(Static):
    """Subclasses say what stands in so many columns."""

    def laid(self, width: int) -> Content:
        raise NotImplementedError

    def render(self) -> Content:
        return self.laid(self.content_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self.laid(width).get_height({}, width)
