"""For widgets that grow while an answer streams."""

from typing import TYPE_CHECKING

from textual.geometry import Size

if TYPE_CHECKING:
    from textual.widget import Widget
else:
    Widget = object  # Textual takes styles from the first of a widget's base classes that is a widget


class Grows(Widget):
    """Textual lays the whole screen out a second time, and paints the widget again, whenever its virtual size changed.
    Nothing in these depends on that size, so the second time is left out."""

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        return super()._size_updated(size, virtual_size, container_size, layout=False)
