"""The registry of commands."""

from pathlib import Path

import pytest

from chatting import Gate, talking
from fake_engine import FakeEngine
from specchat.tui import commands
from specchat.tui.commands import COMMANDS, Command, CommandError, parse
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


@pytest.mark.parametrize(
    "text", ["/usr/bin/env is a path", "// a comment", "hello /help", "/spec on\nand more", "/foo\nbar", "/"]
)
def test_messages_that_only_look_like_commands_go_to_the_model(text: str) -> None:
    assert parse(text) is None


def test_an_unknown_command_is_one_sentence() -> None:
    with pytest.raises(CommandError, match=r"There is no command /foo; /help shows them all\."):
        parse("/foo bar")


@pytest.mark.parametrize(
    ("typed", "meant"), [("/modle qwen", "/model"), ("/cotinue", "/continue"), ("/setings", "/settings")]
)
def test_an_unknown_command_that_is_nearly_one_names_it(typed: str, meant: str) -> None:
    with pytest.raises(CommandError, match=rf"There is no command \S+; did you mean {meant}\? /help shows them all\."):
        parse(typed)


def test_a_command_may_go_over_several_lines_only_where_it_says_so() -> None:
    found = parse("/system Answer briefly.\n\nIn Finnish.")
    assert found and found[0].name == "system" and found[1] == "Answer briefly.\n\nIn Finnish."
    assert parse("/stats\nand more") is None


ARGUMENTS = {"spec": "on", "gamma": "3", "system": "Be brief.", "model": "tiny-2b", "draft": "none"}
"""An argument for every command that needs one."""


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.name != "quit"], ids=lambda command: command.name)
async def test_every_command_does_during_an_answer_what_the_registry_says(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gate = Gate()
    engine = FakeEngine().script("one ", "two", pace=gate)
    async with talking(engine) as talk:
        await talk.idle()
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        session, loads = talk.screen.session, len(engine.loads)
        jobs = len(session.jobs)
        await talk.say(f"/{command.name} {ARGUMENTS.get(command.name, '')}")
        refusal = f"An answer is being written; press esc to stop it before /{command.name}."
        assert (refusal in talk.notes) == (command.while_answering == "refuse")
        assert (len(session.jobs) > jobs) == (command.while_answering == "queue")
        assert (len(engine.loads), len(engine.requests)) == (loads, 1)
        gate.open(2)
        await talk.idle()


async def test_a_command_that_can_not_wait_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    command = Command("only", "", "Only between answers", lambda _, rest: ran.append(rest), while_answering="refuse")
    monkeypatch.setitem(commands._BY_NAME, "only", command)
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate)) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.say("/only")
        assert talk.notes == ["An answer is being written; press esc to stop it before /only."] and ran == []
        gate.open()
        await talk.idle()
        await talk.say("/only")
        assert ran == [""]
