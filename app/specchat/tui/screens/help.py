"""Keys and commands, made from the bindings and the registry themselves."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
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
        self._rows = [*key_rows(bindings), *command_rows()]

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_title = "Help"
            panel.border_subtitle = "esc closes"
            yield Static(_table("Keys", [row for row in self._rows if not row[0].startswith("/")]))
            yield Static(_table("Commands", [row for row in self._rows if row[0].startswith("/")]))
            yield Static(Content("Mouse selection: hold shift (option in iTerm) to use the terminal's own."))


def key_rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Keys and what they do, of the bindings that have a stable name."""
    named = [binding for binding in bindings if isinstance(binding, Binding) and binding.id]
    return [(binding.key.replace(",", ", "), binding.description) for binding in named]


def command_rows() -> list[tuple[str, str]]:
    rows = []
    for command in COMMANDS:
        also = f" (also {', '.join(f'/{alias}' for alias in command.aliases)})" if command.aliases else ""
        rows.append((f"/{command.name} {command.usage}".rstrip(), command.description + also))
    return rows


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Content:
    lines = [Content.styled(title, "bold $text-primary")]
    lines += [Content.assemble((f"{left:<22}", "$text-accent"), " ", right) for left, right in rows]
    return Content("\n").join([*lines, Content("")])
