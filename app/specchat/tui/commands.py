"""Slash commands: one registry, from which dispatch, /help and the palette are made."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from specchat.complete.place import MARK
from specchat.looks import THEMES
from specengine.settings import LONGEST_DRAFT, Speculation

if TYPE_CHECKING:
    from specchat.tui.comparing import Comparing
    from specchat.tui.kept_chats import KeptChats
    from specchat.tui.loader import Loader
    from specchat.tui.tuning import Tuning
    from specchat.tui.turns import Turns


class Controls(Protocol):
    """What commands may do; the chat screen does it."""

    def show_help(self) -> None: ...

    def new_chat(self) -> None: ...

    def show_sources(self) -> None: ...

    def quit(self) -> None: ...

    def fill(self, text: str) -> None: ...

    def find_prompt(self, words: str) -> None: ...

    @property
    def tuning(self) -> "Tuning": ...

    @property
    def loader(self) -> "Loader": ...

    @property
    def comparing(self) -> "Comparing": ...

    @property
    def turns(self) -> "Turns": ...

    @property
    def kept_chats(self) -> "KeptChats": ...

    def model_names(self) -> Iterable[str]: ...


WhileAnswering = Literal["run", "queue", "refuse"]
"""What a command does while an answer is being written: it acts at once, its work waits for its turn behind what was
asked before, or it is refused."""


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
    while_answering: WhileAnswering = "run"
    choices: Callable[[Controls, str], Iterable[str]] | None = None
    """Arguments to suggest for what was typed of one so far; those that don't match it are left out later. Where an
    argument is free text, none: enter takes the best match."""
    multiline: bool = False
    """The argument may go over several lines, and is handed on with the whitespace at its ends."""

    @property
    def takes_arguments(self) -> bool:
        return bool(self.usage)


def _spec(controls: Controls, argument: str) -> None:
    choices = get_args(Speculation)
    if not argument:
        controls.tuning.show_speculation()
        return
    if argument not in choices:
        raise CommandError(f"/spec takes one of {', '.join(choices)}.")
    controls.tuning.speculate(argument)  # type: ignore[arg-type]  # just checked


def _gamma(controls: Controls, argument: str) -> None:
    if not argument:
        controls.tuning.show_speculation()
    elif argument == "auto":
        controls.tuning.fix_gamma(None)
    elif argument.isdecimal() and int(argument) <= LONGEST_DRAFT:
        controls.tuning.fix_gamma(int(argument))
    else:
        raise CommandError(f"/gamma takes a number of tokens, 0 to {LONGEST_DRAFT}, or auto.")


def _model(controls: Controls, argument: str) -> None:
    if argument:
        controls.loader.change(argument, None)
    else:
        controls.loader.choose()


def _draft(controls: Controls, argument: str) -> None:
    if argument:
        controls.loader.change(None, argument)
    else:
        controls.tuning.show_draft()


def _theme(controls: Controls, argument: str) -> None:
    if argument:
        controls.tuning.choose_theme(argument)
    else:
        controls.tuning.show_theme()


def _one_of(*choices: str) -> Callable[[Controls, str], Iterable[str]]:
    return lambda _controls, _typed: choices


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
    Command(
        "spec",
        "[on|off|auto]",
        "Speculation: always, never, or where it pays",
        _spec,
        choices=_one_of(*get_args(Speculation)),
    ),
    Command(
        "gamma",
        "[N|auto]",
        "Length of drafts: N tokens, or the engine's choice each round",
        _gamma,
        choices=_one_of("auto"),
    ),
    Command("stats", "", "Where the last answer's speed came from", _quiet(lambda c: c.tuning.show_stats())),
    Command("settings", "", "How this chat's answers are made", _quiet(lambda c: c.tuning.show_form())),
    Command("sources", "", "Colour answers by who wrote what, or stop it", _quiet(lambda c: c.show_sources())),
    Command(
        "history",
        "[WORDS]",
        "Find an earlier prompt by words in it",
        lambda controls, words: controls.find_prompt(words),
    ),
    Command(
        "system",
        "[TEXT|none]",
        "Show or set the system prompt, from the next message on",
        lambda controls, argument: controls.tuning.set_system(argument.strip() or None),
        multiline=True,
    ),
    Command(
        "model",
        "[NAME]",
        "Load another model, pulled if need be; without a name, choose from all",
        _model,
        while_answering="queue",
        choices=lambda controls, _typed: controls.model_names(),
    ),
    Command(
        "draft",
        "[NAME|self|none]",
        "Load another draft model, or none; self drafts with some of the model's own layers",
        _draft,
        while_answering="queue",
        choices=lambda controls, _typed: ("none", "self", *controls.model_names()),
    ),
    Command(
        "fim",
        "CODE",
        f"Fill in the middle: what belongs where {MARK} stands in the code, or at its end",
        lambda controls, argument: controls.fill(argument),
        while_answering="refuse",
        multiline=True,
    ),
    Command(
        "compare",
        "[PROMPT]",
        "The last prompt, or another, with speculation and without",
        lambda controls, argument: controls.comparing.start(argument.strip() or None),
        while_answering="refuse",
        multiline=True,
    ),
    Command("theme", "[NAME]", "Show or choose the colours", _theme, choices=_one_of(*THEMES)),
    Command(
        "retry",
        "",
        "Answer the last prompt again, with another seed",
        _quiet(lambda c: c.turns.retry()),
        while_answering="queue",
    ),
    Command(
        "continue",
        "",
        "Have the last answer go on where it was cut",
        _quiet(lambda c: c.turns.go_on()),
        while_answering="refuse",
    ),
    Command(
        "edit",
        "[N]",
        "Edit the last prompt, or the N-th: a branch begins there",
        lambda controls, argument: controls.turns.edit(argument),
    ),
    Command(
        "branch",
        "[next|back]",
        "Show another branch, where the chat has several",
        lambda controls, argument: controls.turns.branch(argument),
        while_answering="refuse",
        choices=_one_of("next", "back"),
    ),
    Command(
        "copy",
        "[code [N]|prompt]",
        "Copy the last answer, its code or its prompt",
        lambda controls, argument: controls.turns.copy(argument),
        choices=_one_of("code", "prompt"),
    ),
    Command(
        "resume",
        "[ID]",
        "Go on with an earlier chat; without an ID, choose from all",
        lambda controls, argument: controls.kept_chats.resume(argument),
    ),
    Command(
        "search",
        "[WORDS]",
        "Find chats that hold these words",
        lambda controls, argument: controls.kept_chats.choose(argument),
    ),
    Command(
        "rename",
        "TITLE",
        "Name this chat",
        lambda controls, argument: controls.kept_chats.rename(argument),
    ),
    Command(
        "export",
        "[md|json] [FILE]",
        "Write this chat into a file",
        lambda controls, argument: controls.kept_chats.export(argument),
        choices=_one_of("md", "json"),
    ),
    Command("quit", "", "Leave", _quiet(lambda c: c.quit()), ("exit", "bye", "q")),
)

_BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}
NAMES = frozenset(_BY_NAME)
"""All that may follow a slash."""
BARE = {"exit": "quit", "quit": "quit", ":q": "quit"}
"""Words that are commands without a slash, when they are the whole message."""


def parse(text: str) -> tuple[Command, str] | None:
    """The command that `text` is, and its argument; None for a message to the model.

    A path or a comment at the start of a message is no command: only a first word of letters after the slash is, and
    most commands are of one line.

    Raises:
        CommandError: there is no such command.
    """
    if text.strip() in BARE:
        return _BY_NAME[BARE[text.strip()]], ""
    text = text.lstrip()
    word = text.split(maxsplit=1)[0] if text else ""
    name, argument = word[1:], text[len(word) :]
    if not word.startswith("/") or not (name.isalpha() or name in _BY_NAME):
        return None
    command = _BY_NAME.get(name)
    if "\n" in text.rstrip() and not (command and command.multiline):
        return None
    if command is None:
        close = difflib.get_close_matches(name, _BY_NAME, n=1)
        meant = f"did you mean /{close[0]}? " if close else ""
        raise CommandError(f"There is no command {word}; {meant}/help shows them all.")
    return command, argument[1:] if command.multiline else argument.strip()
