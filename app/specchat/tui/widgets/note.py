"""A line of the app's own in the transcript: a notice, an error, a table of figures."""

from typing import Literal

from textual.content import Content
from textual.widgets import Static

Kind = Literal["info", "error", "figures"]


class Note(Static):
    """Plain text, never markup: it may quote the user or the model."""

    def __init__(self, text: str, kind: Kind = "info") -> None:
        super().__init__(Content(text), classes=f"-{kind}")
        self.text = text
