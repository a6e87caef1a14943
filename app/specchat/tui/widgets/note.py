"""A line of the app's own in the transcript: a notice, an error, a table of figures."""

from collections.abc import Callable
from typing import Literal

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.widgets.fitted import Fitted
from specchat.tui.widgets.item import Item, rows_of

Kind = Literal["info", "error", "figures"]
_USUAL = 80


class Note(Item):
    """Plain text, never markup: it may quote the user or the model."""

    def __init__(self, text: str, kind: Kind = "info") -> None:
        super().__init__()
        self.text = text
        self.kind = kind

    def make(self) -> Widget:
        return NoteView(Content(self.text), classes=f"-{self.kind}")

    def estimate(self, width: int) -> int:
        return rows_of(self.text, width - 4) + 1


class Figures(Note):
    """Text that is laid out anew for each width it stands in."""

    def __init__(self, laid: Callable[[int], str]) -> None:
        """`laid` makes the text for so many columns."""
        super().__init__(laid(_USUAL), "figures")
        self._laid = laid

    def make(self) -> Widget:
        return FiguresView(self._laid)

    def estimate(self, width: int) -> int:
        return rows_of(self._laid(width - 4), width - 4) + 3


class NoteView(Static):
    pass


class FiguresView(Fitted, NoteView):
    def __init__(self, laid: Callable[[int], str]) -> None:
        super().__init__(classes="-figures")
        self._laid = laid

    def laid(self, width: int) -> Content:
        return Content(self._laid(width))
