"""A line to type into, and a text of several, whose keys act in the order in which they arrive."""

from textual.events import Key
from textual.widgets import Input, TextArea

from specchat.tui.widgets.at_once import acted


class Line(Input):
    async def _on_key(self, event: Key) -> None:
        if not event.is_printable:
            await acted(self, event)


class Text(TextArea):
    async def _on_key(self, event: Key) -> None:
        if not event.is_printable and event.key not in ("enter", "tab"):
            await acted(self, event)
