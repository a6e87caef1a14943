"""`specchat help commands`: the commands that are typed into the prompt, from the registry that runs them."""

import sys
from typing import Final

import click

from specchat.folding import columns, folded
from specchat.table import Column, table
from specchat.tui.commands import BARE, COMMANDS, Command

_WHILE_ANSWERING: Final = {
    "run": "",
    "queue": "During an answer it waits for its turn.",
    "refuse": "Not during an answer.",
}


@click.group(name="help")
def help_command() -> None:
    """Explains what `specchat --help` does not.

    \b
    specchat help commands
    specchat help bench
    """


@help_command.command(short_help="Prints what can be typed in place of a message.")
def commands() -> None:
    """Prints what can be typed into the prompt of the chat instead of a message."""
    rows = [(f"/{command.name} {command.usage}".rstrip(), about(command)) for command in COMMANDS]
    width = columns(sys.stdout)
    for line in table((Column("typed"), Column("does", least=20)), rows, width):
        click.echo(line)
    leave = f"{_listed(list(BARE))} alone leave too. A slash lists the commands, tab completes, @ attaches files."
    click.echo(f"\n{folded(leave, width)}")


def about(command: Command) -> str:
    """What a command does, its other names, and when, in a line."""
    other = f"Also {_listed([f'/{alias}' for alias in command.aliases])}." if command.aliases else ""
    said = (f"{command.description}.", other, _WHILE_ANSWERING[command.while_answering])
    return " ".join(part for part in said if part)


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
