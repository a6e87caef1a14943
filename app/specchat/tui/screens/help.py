"""Keys and commands, made from the bindings and the registry themselves."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specchat.tui import keymap
from specchat.tui.commands import COMMANDS

Rows = list[tuple[str, str]]

_TITLES: Final = {
    "chat": "Keys in the chat",
    "prompt": "Keys in the prompt",
    "block": "Keys for a chosen message or code",
}


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter,ctrl+c", "dismiss", "Close", id="help.close"),
    ]

    def __init__(self, keys: Mapping[str, str]) -> None:
        """`keys` are those that the user chose, by action."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        with VerticalScroll() as panel:
            panel.border_title = "Help"
            panel.border_subtitle = f"{keymap.key_of('help.close', self._keys)} closes"
            for title, rows in (*key_rows(self._keys), ("Commands", command_rows())):
                yield Static(title, classes="title")
                for left, right in rows:
                    with Horizontal():
                        yield Static(Content(left), classes="key")
                        yield Static(Content(right), classes="does")
                yield Static()
            yield Static(
                "To select with the terminal's own mouse, hold shift (option in iTerm), or start with --no-mouse. "
                "Other keys: `specchat config keys` and the [keymap] of config.toml.",
                classes="last",
                markup=False,
            )


def key_rows(keys: Mapping[str, str]) -> Iterator[tuple[str, Rows]]:
    """Keys and what they do, in groups with a title: those of the chat, then those of each screen over it."""
    groups: dict[str, Rows] = {}
    for action in keymap.actions(keys):
        if not action.description:  # moves the cursor, as everywhere
            continue
        group = action.id.partition(".")[0]
        title = _TITLES.get(group, f"Keys in {group}" if action.screen == "chat" else f"In the {group} screen")
        groups.setdefault(title, []).append((shown(action.keys), action.description))
    first = [title for title in _TITLES.values() if title in groups]
    for title in (*first, *(title for title in groups if title not in first)):
        yield title, groups[title]


def shown(keys: tuple[str, ...]) -> str:
    """The keys that people may know, two at most."""
    return ", ".join([key for key in keys if not key.startswith("super+")][:2] or keys[:1])


def command_rows() -> Rows:
    rows = []
    for command in COMMANDS:
        also = f" (also {', '.join(f'/{alias}' for alias in command.aliases)})" if command.aliases else ""
        rows.append((f"/{command.name} {command.usage}".rstrip(), command.description + also))
    return rows
