"""`specchat help commands` tells what the registry says."""

import pytest
from click.testing import CliRunner

from specchat import cli
from specchat.tui.commands import BARE, COMMANDS


def told() -> list[str]:
    ended = CliRunner().invoke(cli.subcommand("help"), ["commands"])
    assert ended.exit_code == 0
    return ended.output.splitlines()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_stands_there_with_usage_names_purpose_and_time(command: object) -> None:
    found = next(one for one in COMMANDS if one is command)
    (line,) = [line for line in told() if line.startswith(f"/{found.name} ")]
    assert found.usage in line and found.description in line
    assert all(f"/{alias}" in line for alias in found.aliases)
    assert ("waits for its turn" in line) == (found.while_answering == "queue")
    assert ("Not during an answer" in line) == (found.while_answering == "refuse")


def test_nothing_else_stands_there_but_the_words_that_leave() -> None:
    lines = told()
    assert len([line for line in lines if line.startswith("/")]) == len(COMMANDS)
    assert all(word in lines[-1] for word in BARE)
