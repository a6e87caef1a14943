"""Commands with a slip of the finger in them, told from prompts: both are words behind `specchat`."""

import difflib
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import Final

import click

Commands = Callable[[str], click.Command]
_CLOSE: Final = 0.7
"""So close is a slip of the finger; `get` isn't so close to `set`."""


def refusal(given: Sequence[str], words: Sequence[str], names: Collection[str], commands: Commands) -> str:
    """Why `words`, which would be the prompt, are rather a command, in a sentence; empty where they are a prompt.

    They are a command if the first one nearly is and all the rest is what that command takes.
    """
    first = words[0]
    name = first if first in names else next(iter(difflib.get_close_matches(first, names, n=1)), None)
    if name is None:
        return ""
    at = given.index(first)
    rest = [*given[at + 1 :], *given[:at]]
    if not _takes(commands(name), rest, sure=_one_slip(first, name)):
        return ""
    what = "Commands come first:" if name == first else f"There is no command {first!r}; did you mean"
    end = "." if name == first else "?"
    return f"{what} `specchat {shlex.join([name, *rest])}`{end} {as_prompt(words)}"


def explained(error: click.UsageError, command: click.Command, given: Sequence[str]) -> click.UsageError:
    """What is wrong behind a command's name, with what may have been meant: one of its commands, or a prompt."""
    context = error.ctx
    if context is None or context.command is not command or not given:
        return error
    names = list(command.commands) if isinstance(command, click.Group) else []
    typed = next((word for word in given if not word.startswith("-")), "")
    if names and not error.message.startswith("No such command"):
        return error
    if close := difflib.get_close_matches(typed, names, n=1, cutoff=_CLOSE):
        rest = shlex.join([*close, *given[given.index(typed) + 1 :]])
        said = f"There is no command {typed!r}; did you mean `{context.command_path} {rest}`?"
    elif names:
        said = f"There is no command {typed!r}; {_there_are(names)}. {as_prompt(_words(context, given))}"
    elif error.message.startswith("Got unexpected extra"):
        said = f"{error.message.rstrip('.')}. {as_prompt(_words(context, given))}"
    else:
        return error
    return click.UsageError(said, context)


def _there_are(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}" if len(names) > 1 else f"there is only {names[0]!r}"


def _words(context: click.Context, given: Sequence[str]) -> list[str]:
    return [*context.command_path.split()[1:], *given]


def as_prompt(words: Sequence[str]) -> str:
    """How to say the same to a model."""
    return f"To send it as a prompt: `specchat -p {shlex.quote(' '.join(words))}`."


def _takes(command: click.Command, rest: list[str], sure: bool) -> bool:
    """Whether a command's name may stand before this; a group's that isn't `sure` needs one of its commands."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    try:
        _, left, _ = command.make_parser(context).parse_args(list(rest))
    except click.UsageError:
        return False
    if isinstance(command, click.Group) and left:
        return left[0] in command.commands
    return sure and not left


def _one_slip(typed: str, name: str) -> bool:
    """Whether they are the same but for one letter too many, missing or wrong, or two that are swapped."""
    start = next((at for at, (a, b) in enumerate(zip(typed, name, strict=False)) if a != b), min(len(typed), len(name)))
    a, b = typed[start:], name[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
