"""The command that measures the same again."""

import shlex
from typing import Final

import click
from click.core import ParameterSource

from specchat.config import Config
from specengine.protocol import Load, Loaded

_OUTPUTS: Final = ("as_json", "trace", "html")
"""Options that change what is written, not what is measured."""


def command_line(context: click.Context, settings: Config, load: Load, loaded: Loaded) -> str:
    """What was said on the command line, with the models named in any case."""
    words = [
        "specchat",
        "bench",
        "-m",
        settings.model or load.name,
        "--draft",
        settings.draft or loaded.draft or "none",
    ]
    for option in context.command.params:
        if option.name in ("model", "draft", *_OUTPUTS) or option.name is None or not _given(context, option.name):
            continue
        value = context.params[option.name]
        words.append(option.opts[-1])
        if value is not True:
            words.append(
                ",".join(map(str, value))
                if isinstance(value, tuple)
                else f"{value:g}"
                if isinstance(value, float)
                else str(value)
            )
    return shlex.join(words)


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE
