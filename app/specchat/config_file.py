"""Writes settings into config.toml and leaves everything else in it as it is, comments too."""

from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from specchat import config
from specengine import whole_file
from specengine.errors import EngineError


def save(file: Path, settings: Mapping[str, Any]) -> None:
    """Makes these settings in the file; None takes one out of it. The file is replaced whole.

    Raises:
        EngineError: the file is wrong already or can't be written, or a setting is out of its range; nothing is
            written then.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        for name, value in settings.items():
            if value is not None:
                document[name] = _as_written(value)
            elif name in document:
                del document[name]

    config.from_file(file)
    try:
        config.from_flags({name: value for name, value in settings.items() if value is not None})
    except ValueError as error:
        raise EngineError(f"Nothing was saved: {error}") from None
    _change(file, change)


def save_keys(file: Path, action: str, keys: str | None) -> None:
    """Gives an action of the chat other keys; None gives its own back. The rest is as for `save`.

    Raises:
        EngineError: the file is wrong already, or can't be written.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        table = document.setdefault("keymap", tomlkit.table())
        _drop(table, action)
        if keys is not None:
            table[action] = keys
        elif not table:
            del document["keymap"]

    _change(file, change)


def text_of(file: Path) -> str:
    """What the file holds; nothing if it isn't there.

    Raises:
        EngineError: it can't be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise EngineError(f"{file} can't be read: it is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}; {config.ELSEWHERE}.") from None


def replace(file: Path, text: str) -> None:
    """Makes `text` the whole of the file.

    Raises:
        EngineError: it says something that is no setting, or can't be written; nothing is written then.
    """
    config.from_text(text, file)
    try:
        # A link stays one: people keep their settings in a repository.
        whole_file.replace(file.resolve(), text.encode())
    except OSError as error:
        raise EngineError(f"{file} can't be written: {error.strerror or error}; {config.ELSEWHERE}.") from None


def _change(file: Path, change: Callable[[tomlkit.TOMLDocument], None]) -> None:
    config.from_file(file)  # says what is wrong with it
    before = text_of(file)
    try:
        document = tomlkit.parse(before)
        change(document)
        after = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise EngineError(f"{file} can't be changed: {error}; `specchat config edit` opens it.") from None
    if after != before:
        replace(file, after)


def _drop(table: MutableMapping[str, Any], action: str) -> None:
    """Takes an action out of the table of keys, whether its name was written with quotes or without."""
    table.pop(action, None)
    first, _, rest = action.partition(".")
    inner = table.get(first)
    if rest and isinstance(inner, MutableMapping):
        _drop(inner, rest)
        if not inner:
            del table[first]


def _as_written(value: Any) -> Any:  # noqa: ANN401 - whatever a setting holds
    if isinstance(value, tuple):
        return list(value)
    return tomlkit.string(value, multiline=True) if isinstance(value, str) and "\n" in value else value
