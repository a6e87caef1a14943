"""A line of the app's own in the transcript: a notice, an error, a table of figures."""

from typing import Literal

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.widgets.item import Item, rows_of

Kind = Literal["info", "error", "figures"]


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


class NoteView(Static):
    pass
