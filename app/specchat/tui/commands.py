"""Slash commands: one registry, from which dispatch, /help and the palette are made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, get_args

from specengine.settings import Speculation


class Controls(Protocol):
    """What commands may do; the chat screen does it."""

    def show_help(self) -> None: ...

    def new_chat(self) -> None: ...

    def speculate(self, speculation: Speculation) -> None: ...

    def fix_gamma(self, gamma: int | None) -> None: ...

    def show_stats(self) -> None: ...

    def set_system(self, text: str | None) -> None: ...

    def change_model(self, model: str | None, draft: str | None) -> None: ...

    def quit(self) -> None: ...


class CommandError(Exception):
    """A command that can't be done as it was typed; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    usage: str
    """Arguments, as /help shows them."""
    description: str
    run: Callable[[Controls, str], None]
    """Takes the rest of the line."""
    aliases: tuple[str, ...] = ()

    @property
    def takes_arguments(self) -> bool:
        return bool(self.usage)


def _spec(controls: Controls, argument: str) -> None:
    choices = get_args(Speculation)
    if argument not in choices:
        raise CommandError(f"/spec takes one of {', '.join(choices)}.")
    controls.speculate(argument)  # type: ignore[arg-type]  # just checked


def _gamma(controls: Controls, argument: str) -> None:
    if argument == "auto":
        controls.fix_gamma(None)
    elif argument.isdecimal():
        controls.fix_gamma(int(argument))
    else:
        raise CommandError("/gamma takes a number of tokens, 0 or more, or auto.")


def _model(controls: Controls, argument: str) -> None:
    if not argument:
        raise CommandError("/model takes the name of a model or a path; `specchat models list` shows the names.")
    controls.change_model(argument, None)


def _draft(controls: Controls, argument: str) -> None:
    if not argument:
        raise CommandError("/draft takes the name of a model, or none.")
    controls.change_model(None, argument)


def _quiet(act: Callable[[Controls], None]) -> Callable[[Controls, str], None]:
    """For commands without arguments."""

    def run(controls: Controls, argument: str) -> None:
        if argument:
            raise CommandError("This command takes nothing after its name.")
        act(controls)

    return run


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "Keys and commands", _quiet(lambda c: c.show_help()), ("?",)),
    Command("new", "", "Start a new chat", _quiet(lambda c: c.new_chat()), ("clear",)),
    Command("spec", "on|off|auto", "Speculation: always, never, or where it pays", _spec),
    Command("gamma", "N|auto", "Length of drafts: N tokens, or the engine's choice each round", _gamma),
    Command("stats", "", "Where the last answer's speed came from", _quiet(lambda c: c.show_stats())),
    Command(
        "system",
        "[TEXT|none]",
        "Show or set the system prompt, from the next message on",
        lambda controls, argument: controls.set_system(argument or None),
    ),
    Command("model", "NAME", "Load another model", _model),
    Command("draft", "NAME|none", "Load another draft model, or none", _draft),
    Command("quit", "", "Leave", _quiet(lambda c: c.quit()), ("exit", "bye", "q")),
)

_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}
_BARE = {"exit": "quit", "quit": "quit", ":q": "quit"}
"""Words that are commands without a slash, when they are the whole message."""


def parse(text: str) -> tuple[Command, str] | None:
    """The command that `text` is, and its argument; None for a message to the model.

    A path or a comment at the start of a message is no command: only a first word of letters after the slash is.

    Raises:
        CommandError: there is no such command.
    """
    text = text.strip()
    if text in _BARE:
        return _BY_NAME[_BARE[text]], ""
    word, _, argument = text.partition(" ")
    name = word[1:]
    if not word.startswith("/") or "\n" in text or not (name.isalpha() or name in _BY_NAME):
        return None
    if name not in _BY_NAME:
        raise CommandError(f"There is no command {word}; /help shows them all.")
    return _BY_NAME[name], argument.strip()
