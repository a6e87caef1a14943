"""One field of the settings form: its name, where it is filled in, what it may hold and what it means."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static, TextArea

from specchat.setting_fields import Field
from specchat.tui.widgets.choice import Choice
from specchat.tui.widgets.line import Line, Text

_DIM = "$foreground 60%"


class SettingRow(Horizontal):
    class Changed(Message):
        """The field holds another text."""

        def __init__(self, row: "SettingRow") -> None:
            super().__init__()
            self.row = row

    def __init__(self, field: Field, text: str) -> None:
        super().__init__(classes="-long" if field.name == "system" else "")
        self.field = field
        self.error = ""
        self._first = text

    def compose(self) -> ComposeResult:
        yield Static(self.field.label, classes="label")
        if self.field.choices:
            yield Choice(self.field.choices, self._first)
        elif self.field.name == "system":
            yield Text(self._first, compact=True)
        else:
            yield Line(self._first, compact=True)
        yield Static(self._said(), classes="said")

    @property
    def text(self) -> str:
        match self._filled:
            case TextArea() as area:
                return area.text
            case filled:
                return filled.value

    def fill(self, text: str) -> None:
        match self._filled:
            case TextArea() as area:
                area.text = text
            case filled:
                filled.value = text

    def complain(self, error: str) -> None:
        """Says what is wrong beside the field; nothing is wrong any more if `error` is empty."""
        if error != self.error:
            self.error = error
            self.query_one(".said", Static).update(self._said())

    def enter(self) -> None:
        """Takes the focus."""
        self._filled.focus()

    def _said(self) -> Content:
        first = Content.styled(self.error, "$text-error") if self.error else Content(self.field.bounds)
        parts = [part for part in (first, Content.styled(self.field.explanation, _DIM)) if part]
        return Content("\n").join(parts)

    @property
    def _filled(self) -> Choice | TextArea | Input:
        if self.field.choices:
            return self.query_one(Choice)
        return self.query_one(TextArea) if self.field.name == "system" else self.query_one(Input)

    @on(Input.Changed)
    @on(Choice.Changed)
    @on(TextArea.Changed)
    def _changed(self) -> None:
        self.post_message(self.Changed(self))
