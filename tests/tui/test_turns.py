"""Answers asked for again, gone on with, edited and copied, in the app on a scripted engine."""

import asyncio
import base64
from collections import deque
from pathlib import Path

import pytest
from textual import events

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat.tui.widgets.question import Question
from specengine.protocol import Chat
from specengine.settings import Sampling


def marks(talk: Talk) -> list[tuple[int, int] | None]:
    """The branch marks of the questions on the screen."""
    return [item.place for item in talk.transcript.items if isinstance(item, Question)]


async def said(talk: Talk, *prompts: str) -> None:
    for prompt in prompts:
        await talk.say(prompt)
        await talk.idle()


def asked(engine: FakeEngine, number: int) -> list[str]:
    prompt = engine.requests[number].prompt
    assert isinstance(prompt, Chat)
    return [message.content for message in prompt.messages]


@pytest.mark.parametrize("how", ["f5", "/retry"])
async def test_an_answer_is_asked_for_again_with_another_seed_in_a_branch_of_its_own(how: str) -> None:
    engine = FakeEngine().script("one").script("two")
    async with talking(engine, sampling=Sampling(seed=8)) as talk:
        await said(talk, "hi")
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        await talk.until(lambda: talk.answers == ["two"])
        await talk.idle()
        assert [request.sampling.seed for request in engine.requests] == [8, 9]
        assert (talk.questions, marks(talk)) == (["hi"], [(2, 2)])
        assert "‹ 2/2 ›" in str(talk.screen.query_one("QuestionView").render())


@pytest.mark.parametrize("command", ["/branch", "/branch next", "/branch back"])
async def test_the_other_branch_is_a_command_away_and_the_talk_goes_on_there(command: str) -> None:
    engine = FakeEngine().script("one").script("two").script("three")
    async with talking(engine) as talk:
        await said(talk, "hi", "/retry")
        await talk.say(command)
        await talk.until(lambda: talk.answers == ["one"])
        assert marks(talk) == [(1, 2)]
        await said(talk, "more")
        assert asked(engine, 2) == ["hi", "one", "more"]
        await talk.say(command)
        await talk.until(lambda: talk.answers == ["two"])
        assert talk.questions == ["hi"]


async def test_the_status_bar_tells_the_figures_of_the_branch_that_is_shown() -> None:
    engine = FakeEngine().script("one").script("two ", "three ", "four")
    async with talking(engine) as talk:
        await said(talk, "hi", "/retry")
        await talk.until(lambda: "123/8,192 ctx" in talk.status)
        await talk.say("/branch back")
        await talk.until(lambda: "121/8,192 ctx" in talk.status)
        await talk.say("/branch")
        await talk.until(lambda: "123/8,192 ctx" in talk.status)


async def test_asking_again_while_an_answer_is_written_replaces_it_by_the_new_one() -> None:
    gate = Gate()
    engine = FakeEngine().script("bad ", "bad", pace=gate).script("good")
    async with talking(engine) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["bad "])
        await talk.pilot.press("f5")
        gate.open()
        await talk.idle()
        assert (talk.questions, talk.answers, marks(talk)) == (["hi"], ["good"], [(2, 2)])


async def test_a_second_try_that_is_refused_leaves_the_first_answer_and_says_why() -> None:
    engine = FakeEngine().script("one").script(refuse="Too long.")
    async with talking(engine) as talk:
        await said(talk, "hi", "/retry")
        await talk.until(lambda: talk.notes == ["Too long."])
        assert (talk.questions, talk.answers, talk.prompt.text) == (["hi"], ["one"], "")


async def test_at_temperature_0_it_is_said_that_another_seed_changes_nothing() -> None:
    async with talking(FakeEngine(), sampling=Sampling(temperature=0)) as talk:
        await said(talk, "hi", "/retry")
        assert "At temperature 0 the answer will be the same" in talk.app_notes


async def test_a_prompt_is_edited_in_the_prompt_and_sent_as_a_branch() -> None:
    """71. Edit an earlier prompt and go on from there; the old branch is kept."""
    engine = FakeEngine().script("1").script("2").script("2b")
    async with talking(engine) as talk:
        await said(talk, "one", "two")
        talk.prompt.insert("half typed")
        talk.screen.turns.edit()
        assert talk.prompt.text == "two"
        assert talk.prompt.border_title == "editing prompt 2 of 2 · esc leaves it"
        await talk.pilot.press("escape")
        assert talk.prompt.text == "half typed"
        talk.screen.turns.edit()
        talk.prompt.insert(", better")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.answers == ["1", "2b"])
        await talk.idle()
        assert talk.questions == ["one", "two, better"]
        assert asked(engine, 2) == ["one", "1", "two, better"]
        assert (marks(talk), talk.prompt.border_title) == ([None, (2, 2)], "")
        await talk.say("/branch")
        await talk.until(lambda: talk.questions == ["one", "two"])
        assert talk.answers == ["1", "2"]


async def test_any_prompt_can_be_edited_by_its_number_and_escape_leaves_it() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await said(talk, "one", "two", "three")
        await talk.say("/edit 1")
        assert talk.prompt.text == "one"
        await talk.pilot.press("escape")
        assert (talk.prompt.text, talk.prompt.border_title) == ("", "")
        await said(talk, "four")
        assert talk.questions == ["one", "two", "three", "four"]
        assert marks(talk) == [None] * 4


async def test_an_edited_prompt_that_is_refused_comes_back_and_the_old_branch_is_shown() -> None:
    engine = FakeEngine().script("1").script(refuse="Too long.")
    async with talking(engine) as talk:
        await said(talk, "one")
        await talk.say("/edit")
        talk.prompt.insert(" and more")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.notes == ["Too long."])
        await talk.idle()
        assert (talk.questions, talk.answers, talk.prompt.text) == (["one"], ["1"], "one and more")


async def test_an_edit_sent_while_an_answer_is_written_stops_it_and_comes_before_what_waits() -> None:
    gate = Gate()
    engine = FakeEngine().script("1").script("2 ", "2", pace=gate).script("1b").script("3")
    async with talking(engine) as talk:
        await said(talk, "one")
        await talk.say("two")
        gate.open()
        await talk.until(lambda: talk.answers == ["1", "2 "])
        await talk.say("three")
        await talk.say("/edit 1")
        talk.prompt.insert("b")
        await talk.pilot.press("enter")
        gate.open()
        await talk.until(lambda: talk.answers == ["1b", "3"])
        await talk.idle()
        assert talk.questions == ["oneb", "three"]
        assert asked(engine, 3) == ["oneb", "1b", "three"]


async def test_a_pasted_prompt_is_edited_with_its_chip() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        text = "line\n" * 300
        talk.prompt.post_message(events.Paste(text))
        await talk.until(lambda: "Pasted" in talk.prompt.text)
        talk.prompt.insert(" shorten")
        await talk.prompt.action_send()
        await talk.until(lambda: talk.answers == ["Hello"])
        await talk.idle()
        await talk.say("/edit")
        assert talk.prompt.text.split()[:4] == ["[Pasted", "#1:", "300", "lines]"]
        await talk.prompt.action_send()
        await talk.until(lambda: len(engine.requests) == 2)
        assert asked(engine, 1) == [f"{text} shorten"]


async def test_a_cut_answer_goes_on_where_it_stopped() -> None:
    engine = FakeEngine().script("one ", "two", reason="length").script(", three")
    async with talking(engine) as talk:
        await said(talk, "hi")
        assert talk.footers[0].endswith("cut at max tokens")
        await talk.say("/continue")
        await talk.until(lambda: talk.answers == ["one two, three"])
        await talk.idle()
        assert asked(engine, 1) == ["hi", "one two"]
        assert talk.questions == ["hi"]
        assert "3 tokens" in talk.footers[0] and "cut" not in talk.footers[0]


async def test_an_answer_goes_on_after_a_crash_above_what_was_said_of_it() -> None:
    engine = FakeEngine().script("one ", "two", crash_after=1).script("two", notices=("The model was loaded again.",))
    async with talking(engine) as talk:
        await said(talk, "hi", "/continue")
        crash, again = talk.notes
        assert "middle of its work" in crash and again == "The model was loaded again."
        assert talk.column == ["> hi", "one two", crash, again]


async def test_a_stopped_answer_goes_on_too_and_can_be_stopped_again() -> None:
    gate = Gate()
    engine = FakeEngine().script("one ", "two ", pace=gate).script("three ", "four ", pace=gate)
    async with talking(engine) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.pilot.press("escape")
        gate.open()
        await talk.idle()
        await talk.say("/continue")
        gate.open()
        await talk.until(lambda: talk.answers == ["one three "])
        await talk.pilot.press("escape")
        gate.open()
        await talk.idle()
        assert talk.answers == ["one three "] and talk.footers[0].endswith("stopped")
        assert len(talk.screen.session.conversation.turns) == 1


@pytest.mark.parametrize(
    ("commands", "sentence"),
    [
        (["/retry"], "There is no prompt to answer again yet."),
        (["/continue"], "There is nothing in this chat yet."),
        (["/edit"], "There is nothing in this chat yet."),
        (["/copy"], "There is nothing in this chat yet."),
        (["/branch"], "This chat has one branch only; /edit and /retry begin another."),
        (["hi", "/continue"], "The last answer is complete; /retry has it answered again."),
        (["hi", "/edit 2"], "/edit takes the number of a prompt in this chat, 1 to 1, or nothing."),
        (["hi", "/edit x"], "/edit takes the number of a prompt in this chat, 1 to 1, or nothing."),
        (["hi", "/branch up"], "/branch takes next or back, or nothing for the next one."),
        (["hi", "/copy code"], "The last answer has no block of code; /copy copies all of it."),
        (["hi", "/copy all"], "/copy takes code, code N or prompt; without them it copies the last answer."),
    ],
)
async def test_what_can_not_be_done_is_one_sentence(commands: list[str], sentence: str) -> None:
    async with talking(FakeEngine()) as talk:
        await said(talk, *commands)
        assert talk.notes == [sentence]


CODE = "Look:\n\n```python\nx = 1\n```\n\nand\n\n```\n" + "word " * 60 + "\n```\n"


@pytest.mark.parametrize(
    ("how", "copied"),
    [
        ("/copy", CODE),
        ("ctrl+y", CODE),
        ("/copy code", "word " * 60),
        ("/copy code 1", "x = 1"),
        ("/copy prompt", "hi [/b]"),
    ],
)
async def test_answers_code_and_prompts_are_copied_as_they_were_written(how: str, copied: str) -> None:
    """50. Without fences, and without the newlines that wrapping makes."""
    async with talking(FakeEngine().script(CODE), size=(40, 20)) as talk:
        await said(talk, "hi [/b]")
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        await talk.until(lambda: talk.app.clipboard == copied)


async def test_a_block_of_code_that_is_not_there_is_one_sentence() -> None:
    async with talking(FakeEngine().script(CODE)) as talk:
        await said(talk, "hi", "/copy code 3")
        assert talk.notes == ["The last answer has 2 blocks of code; /copy code N takes one of them."]


async def test_a_copy_goes_to_the_systems_program_and_nothing_more_is_claimed_than_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """47. Natively where there is a program for it; else by the terminal, with an honest word."""
    (tmp_path / "xclip").write_text('#!/bin/sh\ncat > "$0.taken"\n')
    (tmp_path / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    async with talking(FakeEngine().script("日本語")) as talk:
        written: deque[str] = deque()
        assert talk.app._driver
        monkeypatch.setattr(talk.app._driver, "write", written.append)
        await said(talk, "hi", "/copy")
        await talk.until(lambda: "Sent 3 characters to the terminal's clipboard" in talk.app_notes)
        sent = "".join(written).partition("\x1b]52;c;")[2].partition("\x07")[0]
        assert base64.b64decode(sent).decode() == "日本語"
        monkeypatch.delenv("SSH_CONNECTION")
        await talk.say("/copy")
        await talk.until(lambda: "Copied 3 characters." in talk.app_notes)
        assert (tmp_path / "xclip.taken").read_text() == "日本語"


async def test_the_screen_goes_on_while_a_clipboard_program_takes_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """27. A slow clipboard program holds up no key."""
    (tmp_path / "xclip").write_text(f'#!/bin/sh\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\ncat > "$0.taken"\n')
    (tmp_path / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION")
    async with talking(FakeEngine()) as talk:
        await said(talk, "hi", "/copy")
        await talk.pilot.press("x")
        assert talk.prompt.text == "x"
        (tmp_path / "go").touch()
        async with asyncio.timeout(20):
            while not (tmp_path / "xclip.taken").exists():
                await asyncio.sleep(0.01)


async def test_keys_on_a_chosen_message_edit_answer_again_and_switch_branches() -> None:
    engine = FakeEngine().script("1").script("2").script("2 again").script("1b")
    async with talking(engine) as talk:
        await said(talk, "one", "two")
        await talk.pilot.press("alt+up", "r")  # on the last answer
        await talk.until(lambda: talk.answers == ["1", "2 again"])
        await talk.idle()
        await talk.pilot.press("alt+up", "alt+up")
        await talk.pilot.pause()
        assert "e edit · r retry · ←→ branch" in str(talk.prompt.border_subtitle)
        await talk.pilot.press("left")
        await talk.until(lambda: talk.answers == ["1", "2"])
        await talk.until(lambda: talk.transcript.chosen is not None)
        await talk.pilot.press("right")
        await talk.until(lambda: talk.answers == ["1", "2 again"])
        await talk.until(lambda: talk.transcript.chosen is not None)
        await talk.pilot.press("alt+up", "alt+up", "e")
        await talk.until(lambda: talk.prompt.text == "one")
        assert talk.prompt.has_focus
        talk.prompt.insert("b")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.answers == ["1b"])
        await talk.idle()
        assert asked(engine, 3) == ["oneb"]


async def test_a_prompt_that_waits_can_not_be_edited_or_answered_again_yet() -> None:
    gate = Gate()
    async with talking(FakeEngine().script("1 ", "1", pace=gate)) as talk:
        await talk.say("one")
        gate.open()
        await talk.until(lambda: talk.answers == ["1 "])
        await talk.say("two")
        await talk.pilot.press("alt+up", "r")
        await talk.until(lambda: talk.transcript.chosen is not None)
        assert talk.questions == ["one", "two"]
        gate.open()
        await talk.idle()
