"""What the command palette offers: every command, everything that a key does, every theme."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from textual.app import SystemCommand
from textual.screen import Screen

from specchat.looks import THEMES
from specchat.tui import keymap
from specchat.tui.commands import COMMANDS
from specchat.tui.screens.help import shown

_NAMES: Final = frozenset(command.name for command in COMMANDS)


def commands(start: Callable[[str], None], keys: Mapping[str, str]) -> Iterator[SystemCommand]:
    """Slash commands, with the key that does the same where there is one; `start` is given their names."""
    known = {action.id: action for action in keymap.actions(keys)}
    for command in COMMANDS:
        action = known.get(f"chat.{command.name}")
        key = f" ({shown(action.keys)})" if action else ""
        title = f"/{command.name} {command.usage}".rstrip().replace("[", "\\[")  # which is read as markup
        yield SystemCommand(title, command.description + key, partial(start, command.name))


def actions(screen: Screen[None], keys: Mapping[str, str]) -> Iterator[SystemCommand]:
    """What keys do on this screen, except for what a slash command does as well."""
    nodes = {type(node): node for node in (*screen.walk_children(), screen, screen.app)}
    for action in keymap.actions(keys):
        first, _, name = action.id.partition(".")
        said = first == "chat" and name in _NAMES
        if not said and (node := nodes.get(action.owner)) is not None:
            run = partial(screen.app.run_action, action.act, node)
            yield SystemCommand(action.description, shown(action.keys), run)


def themes(choose: Callable[[str], None]) -> Iterator[SystemCommand]:
    for name in THEMES:
        yield SystemCommand(f"Theme: {name}", "Colours of the chat", partial(choose, name))
