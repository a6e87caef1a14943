"""`specchat config`: what is set, where, and how to change it."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from specchat import config, config_file, paths
from specchat.config import Config
from specchat.folding import columns, say
from specchat.settings_table import SETTINGS, template
from specchat.table import Column, table
from specengine.errors import EngineError

_HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_WIDEST: Final = 42
_SHOWN: Final = (Column("setting"), Column("value", least=20), Column("from", least=12))
_KEYS_SHOWN: Final = (Column("action"), Column("keys", least=14), Column("what it does", least=20))


@click.group(name="config", context_settings=_HELP)
def config_command() -> None:
    """Shows and changes the settings in config.toml.

    Flags win over environment variables, which win over this file.

    \b
    specchat config show
    specchat config set temperature 0.2
    specchat config set keymap.chat.new f9
    specchat config unset temperature
    """


@config_command.command()
def path() -> None:
    """Prints where config.toml is, or would be."""
    click.echo(paths.config_file())


@config_command.command(short_help="Shows every setting, and what makes it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(as_json: bool) -> None:
    """Shows every setting, its value, and what makes it: the default, the file or a variable."""
    rows = effective(paths.config_file(), os.environ)
    if as_json:
        click.echo(json.dumps({row.name: {"value": row.value, "from": row.origin} for row in rows}, indent=2))
        return
    width = columns(sys.stdout)
    cells = []
    for row in rows:
        value = SETTINGS[row.name].default if row.value is None else _cut(_written(row.value))
        # A path takes a terminal's whole line, and `specchat config path` prints it.
        cells.append((row.name, value, row.origin if width is None else Path(row.origin).name))
    for line in table(_SHOWN, cells, width):
        click.echo(line)


@config_command.command(name="set")
@click.argument("name", metavar="KEY")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Sets KEY to VALUE in config.toml. A key of the chat is called keymap.ACTION."""
    file, name = paths.config_file(), _known(name)
    if name.startswith(_KEYS):
        action = name.removeprefix(_KEYS)
        _check_keys({**(config.from_file(file).keymap or {}), action: value})
        config_file.save_keys(file, action, value)
        click.echo(f"{name} is {value} in {file}.")
        return
    try:
        made = getattr(config.from_strings({name: value}), name)
    except ValueError as error:
        raise EngineError(str(error)) from None
    _check_keys(made if name == "keymap" else {})
    config_file.save(file, {name: made})
    click.echo(f"{name} is {_written(made)} in {file}.")
    if os.environ.get(config.variable(name)):
        say(f"{config.variable(name)} is set as well, and wins.")


@config_command.command()
@click.argument("name", metavar="KEY")
def unset(name: str) -> None:
    """Takes KEY out of config.toml, so that its default holds again."""
    file, name = paths.config_file(), _known(name)
    settings = config.from_file(file)
    action = name.removeprefix(_KEYS)
    if action in (settings.keymap or {}):
        config_file.save_keys(file, action, None)
    elif name in settings.made():
        config_file.save(file, {name: None})
    else:
        click.echo(f"{name} was not set in {file}.")
        return
    click.echo(f"{name} is no longer set in {file}.")


@config_command.command()
def edit() -> None:
    """Opens config.toml in $VISUAL or $EDITOR. It is saved only if every setting is good."""
    file = paths.config_file()
    text = config_file.text_of(file) or template()
    while True:
        edited = _edited(text)
        if edited is None or edited == text:
            click.echo(f"{file} is as it was.")
            return
        try:
            _check_keys(config.from_text(edited, file).keymap or {})
            config_file.replace(file, edited)
        except EngineError as error:
            say(str(error))
            if not click.confirm("Edit it again?", default=True, err=True):
                raise EngineError(f"{file} is as it was.") from None
            text = edited
        else:
            click.echo(f"Saved {file}.")
            return


def _edited(text: str) -> str | None:
    """What the user made of the text in an editor; None where it was not saved."""
    try:
        return click.edit(text, extension=".toml")
    except click.ClickException as error:
        why = error.format_message().rstrip(".")
        raise EngineError(f"{why}; set EDITOR to another editor, or take `specchat config set`.") from None


@config_command.command(short_help="Lists what keys do in the chat.")
def keys() -> None:
    """Lists what keys do in the chat: the action's name, its keys, and what it does."""
    from specchat.tui import keymap

    chosen = keymap.checked(config.read(paths.config_file()).keymap or {})
    cells = [(action.id, ", ".join(action.keys), action.description) for action in keymap.actions(chosen)]
    for line in table(_KEYS_SHOWN, cells, columns(sys.stdout)):
        click.echo(line)


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting as it holds without flags."""

    name: str
    value: Any
    """None where nothing sets it."""
    origin: str
    """What makes it so: a variable, the file, or "default"."""


def effective(file: Path, environment: Mapping[str, str]) -> list[Effective]:
    """Every setting as it holds without flags.

    Raises:
        EngineError: the file or a variable is wrong.
    """
    from_environment, from_file = config.from_environment(environment), config.from_file(file)
    rows = []
    for name in Config.__struct_fields__:
        makers = ((from_environment, config.variable(name)), (from_file, str(file)))
        made = ((getattr(maker, name), origin) for maker, origin in makers if getattr(maker, name) is not None)
        rows.append(Effective(name, *next(made, (None, "default"))))
    return rows


_KEYS: Final = "keymap."


def _known(name: str) -> str:
    """The setting's own name; hyphens will do, and an action's name alone.

    Raises:
        EngineError: there is no such setting.
    """
    plain = name.replace("-", "_")
    if plain in Config.__struct_fields__:
        return plain
    if name.startswith(_KEYS):
        return name
    if "." in name:
        return f"{_KEYS}{name}"
    raise EngineError(f"There is no setting called {name}; {config.meant(name)}")


def _check_keys(keys: Mapping[str, str]) -> None:
    """
    Raises:
        EngineError: they can't be the chat's keys.
    """
    if keys:
        from specchat.tui import keymap  # loads Textual, which no other setting needs

        keymap.checked(keys)


def _written(value: Any) -> str:  # noqa: ANN401
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(repr(part) for part in value)
        case dict():
            return ", ".join(f"{action} = {keys}" for action, keys in value.items())
    return str(value).replace("\n", "⏎")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
