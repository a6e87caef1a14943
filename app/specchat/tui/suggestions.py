"""What may be meant by what was typed: a command, its argument, a file, or an earlier prompt."""

import re
from dataclasses import dataclass
from typing import Literal

from specchat.tui import fuzzy
from specchat.tui.chips import plain
from specchat.tui.commands import COMMANDS, NAMES, Command, CommandError, Controls, parse
from specchat.tui.history import History

MOST = 50

_AT = re.compile(r"(?:^|(?<=[\s(\[{\"'`]))@(?P<typed>[^\s@\"'`()\[\]{},;]*)$")
"""An @ at the start of a word. One inside a word is an address; one before a bracket or a comma is code."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    value: str
    """What takes the place of what was typed."""
    shown: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands before the cursor and may be completed."""

    kind: Literal["command", "argument", "file", "prompt"]
    start: int
    """Where the typed part begins in its line, the @ or slash included."""
    typed: str
    """Without the @ or slash."""
    command: Command | None = None
    """Whose argument it is."""


def wanted(line: str, only_line: bool) -> Wanted | None:
    """What may be completed at the end of `line`, which goes up to the cursor; `only_line` where the prompt has no
    other. None where nothing is."""
    if only_line and line.startswith("/"):
        word, space, rest = line.partition(" ")
        if not space:
            return Wanted("command", 0, word[1:]) if word[1:].isalpha() or word == "/" else None
        command = _command(word)
        if command and command.choices:
            return Wanted("argument", len(line) - len(rest), rest, command)
    if found := _AT.search(line):
        return Wanted("file", found.start(), found["typed"])
    return None


def commands(typed: str) -> list[Suggestion]:
    """Commands whose name or alias was begun, in the registry's order where nothing was typed yet."""
    by_name = {name: command for command in COMMANDS for name in (command.name, *command.aliases)}
    names = fuzzy.best(typed, by_name, MOST) if typed else [command.name for command in COMMANDS]
    found = dict.fromkeys(by_name[name].name for name in names)
    return [_of_command(by_name[name]) for name in found]


def arguments(command: Command, controls: Controls, typed: str) -> list[Suggestion]:
    """Arguments for the command that match what was typed of one."""
    assert command.choices is not None
    choices = fuzzy.best(typed, dict.fromkeys(command.choices(controls, typed)), MOST)
    return [] if choices == [typed] else [Suggestion(choice, choice) for choice in choices]


def prompts(history: History, words: str) -> list[Suggestion]:
    """Earlier prompts that hold the words, the newest first."""
    found = history.search(words)[:MOST]
    return [Suggestion(entry.text, *_in_one_line(plain(entry.text, entry.chips))) for entry in found]


def surely(suggestion: Suggestion, asked: Wanted) -> bool:
    """Whether a file is meant even by a user who pressed enter to send: its whole path was typed. A word alone is
    not enough, it may be a decorator or a name."""
    return suggestion.value == asked.typed and any(mark in asked.typed for mark in "./\\")


def _of_command(command: Command) -> Suggestion:
    return Suggestion(command.name, f"/{command.name} {command.usage}".rstrip(), command.description)


def begins_command(text: str) -> bool:
    """Whether `text` is a command, or may become one as it is typed on."""
    word, space, _ = text.partition(" ")
    if not word.startswith("/") or "\n" in text:
        return False
    return is_command(word[1:]) if space else any(name.startswith(word[1:]) for name in NAMES)


def _in_one_line(text: str) -> tuple[str, str]:
    """The first line that says something, and how many there are."""
    lines = text.strip().splitlines()
    return lines[0] if lines else "", f"{len(lines)} lines" if len(lines) > 1 else ""


def is_command(typed: str) -> bool:
    """Whether `typed` names a command as it is."""
    return _command(f"/{typed}") is not None


def _command(word: str) -> Command | None:
    try:
        found = parse(word)
    except CommandError:
        return None
    return found[0] if found else None
