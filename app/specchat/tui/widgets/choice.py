"""One of a few words; the arrows, space or a click go to the next one."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static


class Choice(Static, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "move(1)", show=False),
        Binding("left", "move(-1)", show=False),
    ]

    value: reactive[str] = reactive("", init=False)

    class Changed(Message):
        """Another word is chosen."""

    def __init__(self, choices: Sequence[str], value: str) -> None:
        super().__init__()
        self._choices = tuple(choices)
        self.set_reactive(Choice.value, value)

    def render(self) -> Content:
        return Content(f"‹ {self.value} ›")

    def watch_value(self) -> None:
        self.post_message(self.Changed())

    def on_click(self) -> None:
        self.action_move(1)

    def action_move(self, steps: int) -> None:
        at = self._choices.index(self.value) if self.value in self._choices else 0
        self.value = self._choices[(at + steps) % len(self._choices)]
