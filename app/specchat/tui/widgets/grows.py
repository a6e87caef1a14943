"""For widgets that grow while an answer streams."""

from textual.geometry import Size
from textual.widget import Widget


class Grows(Widget):
    """Textual lays the whole screen out a second time, and paints the widget again, whenever its virtual size changed.
    Nothing in these depends on that size, so the second time is left out."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        return super()._size_updated(size, virtual_size, container_size, layout=False)
