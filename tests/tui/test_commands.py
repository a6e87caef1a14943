"""The registry of commands."""

import pytest

from specchat.tui.commands import COMMANDS, CommandError, parse
from specchat.tui.screens.help import command_rows


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_found_by_name_and_alias_and_stands_in_the_help(command: object) -> None:
    found = next(entry for entry in COMMANDS if entry is command)
    for name in (found.name, *found.aliases):
        assert parse(f"/{name}") == (found, "")
    left, right = next(row for row in command_rows() if row[0].split()[0] == f"/{found.name}")
    assert found.usage in left and found.description in right
    assert all(f"/{alias}" in right for alias in found.aliases)


@pytest.mark.parametrize("text", ["exit", "quit", ":q", "/quit", "/exit", "/bye", " :q "])
def test_muscle_memory_quits(text: str) -> None:
    found = parse(text)
    assert found and found[0].name == "quit"


@pytest.mark.parametrize("text", ["/usr/bin/env is a path", "// a comment", "hello /help", "/spec on\nand more", "/"])
def test_messages_that_only_look_like_commands_go_to_the_model(text: str) -> None:
    assert parse(text) is None


def test_an_unknown_command_is_one_sentence() -> None:
    with pytest.raises(CommandError, match=r"There is no command /foo; /help shows them all\."):
        parse("/foo bar")
