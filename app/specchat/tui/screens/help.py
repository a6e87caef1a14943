"""Keys and commands, made from the bindings and the registry themselves."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.tui.commands import COMMANDS


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter,ctrl+c", "dismiss", "Close", id="help.close"),
    ]

    def __init__(self, bindings: Iterable[BindingType]) -> None:
        super().__init__()
        self._keys = key_rows(bindings)

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_title = "Help"
            panel.border_subtitle = "esc closes"
            for title, rows in (("Keys", self._keys), ("Commands", command_rows())):
                yield Static(title, classes="title")
                for left, right in rows:
                    with Horizontal():
                        yield Static(Content(left), classes="key")
                        yield Static(Content(right), classes="does")
                yield Static()
            yield Static("To select with the terminal's own mouse, hold shift (option in iTerm).", classes="last")


def key_rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Keys and what they do, of the bindings that have a stable name."""
    named = [binding for binding in bindings if isinstance(binding, Binding) and binding.id]
    return [(", ".join(binding.key.split(",")[:2]).replace(", super+c", ""), binding.description) for binding in named]


def command_rows() -> list[tuple[str, str]]:
    rows = []
    for command in COMMANDS:
        also = f" (also {', '.join(f'/{alias}' for alias in command.aliases)})" if command.aliases else ""
        rows.append((f"/{command.name} {command.usage}".rstrip(), command.description + also))
    return rows
