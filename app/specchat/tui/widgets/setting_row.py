"""One field of the settings form: its name, where it is filled in, what it may hold and what it means."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Select, Static, TextArea

from specchat.setting_fields import Field


class SettingRow(Vertical):
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
        with Horizontal():
            yield Static(self.field.label, classes="label")
            if self.field.choices:
                choices = [(choice, choice) for choice in self.field.choices]
                yield Select(choices, value=self._first, allow_blank=False, compact=True)
            elif self.field.name == "system":
                yield TextArea(self._first, compact=True)
            else:
                yield Input(self._first, compact=True)
            yield Static(self.field.bounds, classes="bounds", markup=False)
        yield Static(self.field.explanation, classes="explanation", markup=False)

    @property
    def text(self) -> str:
        if self.field.choices:
            return str(self.query_one(Select).value)
        return self.query_one(TextArea).text if self.field.name == "system" else self.query_one(Input).value

    def fill(self, text: str) -> None:
        if self.field.choices:
            self.query_one(Select).value = text
        elif self.field.name == "system":
            self.query_one(TextArea).text = text
        else:
            self.query_one(Input).value = text

    def complain(self, error: str) -> None:
        """Says what is wrong beside the field; nothing is wrong any more if `error` is empty."""
        self.error = error
        self.set_class(bool(error), "-wrong")
        self.query_one(".bounds", Static).update(Content(error or self.field.bounds))

    def enter(self) -> None:
        """Takes the focus."""
        self.query_one("Input, Select, TextArea").focus()

    @on(Input.Changed)
    @on(Select.Changed)
    @on(TextArea.Changed)
    def _changed(self) -> None:
        self.post_message(self.Changed(self))
