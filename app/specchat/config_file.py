"""Writes settings into config.toml and leaves everything else in it as it is, comments too."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from specchat import config
from specengine import whole_file
from specengine.errors import EngineError


def save(file: Path, settings: Mapping[str, Any]) -> None:
    """Makes these settings in the file; None takes one out of it. The file is replaced whole.

    Raises:
        EngineError: the file is wrong already or can't be written, or a setting is out of its range; nothing is
            written then.
    """
    config.from_file(file)
    try:
        config.from_flags({name: value for name, value in settings.items() if value is not None})
    except ValueError as error:
        raise EngineError(f"Nothing was saved: {error}") from None
    try:
        document = tomlkit.parse(file.read_text(encoding="utf-8") if file.exists() else "")
        for name, value in settings.items():
            if value is not None:
                document[name] = _as_written(value)
            elif name in document:
                del document[name]
        # A link stays one: people keep their settings in a repository.
        whole_file.replace(file.resolve(), tomlkit.dumps(document).encode())
    except OSError as error:
        raise EngineError(f"{file} can't be written: {error.strerror or error}.") from None


def _as_written(value: Any) -> Any:  # noqa: ANN401 - whatever a setting holds
    return tomlkit.string(value, multiline=True) if isinstance(value, str) and "\n" in value else value
