"""The prompt: pastes, bursts, chips, history."""

import re
import sys
from pathlib import Path

import pytest
from textual import events

from chatting import Talk, talking
from fake_engine import FakeEngine
from specengine.protocol import Chat

LINES = "\n".join(f"line {number}" for number in range(300))


def chip(text: str) -> str:
    """`text` with the labels in it as the prompt holds them."""
    return re.sub(r"\[.*?\]", lambda label: label[0].replace(" ", "\xa0"), text)


async def paste(talk: Talk, text: str) -> None:
    talk.prompt.post_message(events.Paste(text))
    await talk.pilot.pause()


def sent(engine: FakeEngine) -> str:
    prompt = engine.requests[-1].prompt
    assert isinstance(prompt, Chat)
    return prompt.messages[-1].content


class Keys:
    """Presses keys on a clock of its own, so that the time between them is exact."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._now_s = 100.0
        talk.prompt.clock = lambda: self._now_s

    async def press(self, text: str, gap_s: float) -> None:
        for character in text:
            self._now_s += gap_s
            key = {"\n": "enter", "\t": "tab"}.get(character, character)
            event = events.Key(key, character)
            event.time = self._now_s
            self._talk.app.post_message(event)
            await self._talk.pilot.pause(0)

    async def press_while_busy(self, *names: str) -> None:
        """Presses keys by hand that all wait until the screen has time for them."""
        for name in names:
            self._now_s += 0.2
            event = events.Key(name, name if len(name) == 1 else None)
            event.time = self._now_s
            self._talk.app.post_message(event)
        await self._talk.pilot.pause()

    async def rest(self, seconds: float) -> None:
        self._now_s += seconds
        await self._talk.until(lambda: not self._talk.prompt._burst.over(self._now_s))


async def test_keys_that_wait_for_a_busy_screen_act_in_the_order_in_which_they_were_pressed() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await Keys(talk).press_while_busy("a", "b", "backspace", "c", "ctrl+j", "d", "home", "e", "enter", "f")
        await talk.until(lambda: engine.requests)
        await talk.idle()
        assert sent(engine) == "ac\ned"
        assert talk.prompt.text == "f"


async def test_the_two_keys_that_open_an_editor_do_so_on_a_busy_screen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", sys.executable)
    async with talking(FakeEngine()) as talk:
        await Keys(talk).press_while_busy("a", "ctrl+x", "ctrl+e", "b")
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["An editor can't take over this terminal."]
        assert talk.prompt.text == "ab"


async def test_a_long_paste_becomes_a_chip_and_is_sent_whole() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        talk.prompt.insert("Explain ")
        await paste(talk, LINES.replace("\n", "\r"))
        assert talk.prompt.text == chip("Explain [Pasted #1: 300 lines]")
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == f"Explain {LINES}"
        assert talk.questions == ["Explain [Pasted #1: 300 lines]"]


async def test_a_short_paste_is_typed_as_it_is_and_not_sent() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, "one\rtwo")
        assert talk.prompt.text == "one\ntwo"
        assert engine.requests == []


async def test_a_megabyte_never_reaches_the_text_area() -> None:
    engine = FakeEngine()
    text = "0123456789abcdef\n" * 62_500 + "end"
    async with talking(engine) as talk:
        await paste(talk, text)
        assert talk.prompt.text == chip("[Pasted #1: 62,501 lines]")
        assert talk.prompt.typed_characters == len(talk.prompt.text)
        await talk.pilot.press("enter", "enter")
        await talk.idle()
        assert sent(engine) == text
        await talk.pilot.click("QuestionView")
        await talk.pilot.pause()
        assert len(talk.questions[0]) < 25_000


async def test_a_clicked_chip_shows_what_was_pasted() -> None:
    async with talking(FakeEngine()) as talk:
        await paste(talk, LINES)
        await talk.pilot.press("enter")
        await talk.idle()
        await talk.pilot.click("QuestionView")
        assert talk.questions == [LINES]


async def test_long_typed_prompts_are_collapsed_in_the_transcript() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say(LINES)
        await talk.idle()
        assert talk.questions[0].endswith("line 11\n… 288 more lines, click to see them")


async def test_backspace_and_delete_take_a_chip_as_one_and_undo_brings_it_back_whole() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        talk.prompt.insert("a ")
        await paste(talk, LINES)
        await talk.pilot.press("backspace")
        assert talk.prompt.text == "a "
        await talk.pilot.press("ctrl+z")
        assert talk.prompt.text == chip("a [Pasted #1: 300 lines]")
        await talk.pilot.press("left")
        assert talk.prompt.cursor_location == (0, 2)
        await talk.pilot.press("right")
        assert talk.prompt.cursor_location == (0, 24)
        await talk.pilot.press("left", "delete")
        assert talk.prompt.text == "a "


async def test_a_chip_stays_when_the_line_below_it_is_deleted() -> None:
    async with talking(FakeEngine()) as talk:
        await paste(talk, LINES)
        await talk.pilot.press("ctrl+j", "x", "backspace", "backspace")
        assert talk.prompt.text == chip("[Pasted #1: 300 lines]")


async def test_typing_never_lands_inside_a_chip() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, LINES)
        talk.prompt.replace("!", (0, 5), (0, 5))
        assert talk.prompt.text == chip("[Pasted #1: 300 lines]!")
        await talk.prompt.action_send()
        await talk.idle()
        assert sent(engine) == LINES + "!"


async def test_two_pastes_keep_their_own_texts() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, "a" * 900)
        await paste(talk, "b" * 900)
        assert talk.prompt.text == chip("[Pasted #1: 900 characters][Pasted #2: 900 characters]")
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == "a" * 900 + "b" * 900


async def test_the_enter_that_some_terminals_add_after_a_paste_does_not_send() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        pasted = events.Paste("one\rtwo\r")
        pasted.time = 100.0
        talk.prompt.post_message(pasted)
        await keys.press("\n", 0.05)
        assert engine.requests == []
        await keys.press("\n", 0.5)
        await talk.idle()
        assert sent(engine) == "one\ntwo\n"


async def test_a_paste_without_brackets_is_one_prompt_not_many() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        await keys.press("x = 1\ny = 2\n", 0.001)
        await keys.rest(0.1)
        await talk.until(lambda: talk.prompt.text)
        assert talk.prompt.text == "x = 1\ny = 2\n"
        await keys.press("\n", 0.01)
        assert engine.requests == []
        await keys.press("\n", 0.5)
        await talk.idle()
        assert len(engine.requests) == 1


async def test_a_long_paste_without_brackets_becomes_a_chip() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        text = "".join(f"\tline {number}\n" for number in range(20))
        await keys.press(text, 0.001)
        await keys.rest(0.1)
        await talk.until(lambda: talk.prompt.text)
        assert talk.prompt.text == chip("[Pasted #1: 20 lines]")
        await keys.press("\n", 0.5)
        await talk.idle()
        assert sent(engine) == text


async def test_one_paste_that_arrives_in_several_bursts_is_one_chip() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        text = "".join(f"{number}\n" for number in range(100, 130))
        for start in range(0, len(text), 39):  # parts that end with, before and after a newline
            await keys.press(text[start : start + 39], 0.001)
            await keys.rest(0.2)
            await talk.until(lambda: talk.prompt.text)
        await talk.until(lambda: talk.prompt.text == chip("[Pasted #1: 30 lines]"))
        await keys.press("\n", 0.5)
        await talk.idle()
        assert sent(engine) == text


async def test_keys_alone_between_two_bursts_of_a_paste_are_part_of_its_chip() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        text = "".join(f"line {number} [/b]\n" for number in range(100, 130))
        first, middle, last = text[:300], text[300:302], text[302:]
        await keys.press(first, 0.001)
        await keys.rest(0.1)
        await talk.until(lambda: talk.prompt.text)
        await keys.press(middle, 0.1)
        await keys.rest(0.1)
        await keys.press(last, 0.001)
        await keys.rest(0.1)
        await talk.until(lambda: talk.prompt.text == chip("[Pasted #1: 30 lines]"))
        await keys.press("\n", 0.5)
        await talk.idle()
        assert sent(engine) == text


async def test_typing_sends_on_enter() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await Keys(talk).press("hi there\n", 0.06)
        await talk.idle()
        assert sent(engine) == "hi there"


async def test_a_command_is_run_however_fast_it_is_typed() -> None:
    async with talking(FakeEngine()) as talk:
        await Keys(talk).press("/stats\n", 0.001)
        await talk.until(lambda: talk.notes)
        assert talk.prompt.text == ""


async def test_a_paste_without_brackets_that_begins_with_a_slash_is_one_prompt_too() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        keys = Keys(talk)
        await keys.press("/home/me/a.py\n/home/me/b.py\n", 0.001)
        await keys.rest(0.1)
        await talk.until(lambda: talk.prompt.text == "/home/me/a.py\n/home/me/b.py\n")
        assert engine.requests == [] and talk.notes == []


async def test_wide_characters_are_deleted_whole() -> None:
    async with talking(FakeEngine()) as talk:
        talk.prompt.insert("日本語🙂")
        await talk.pilot.press("backspace", "backspace")
        assert talk.prompt.text == "日本"


async def test_arrows_bring_earlier_prompts_back_with_their_pastes() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, LINES)
        await talk.pilot.press("enter")
        await talk.say("second")
        await talk.idle()
        talk.prompt.insert("draft")
        await talk.pilot.press("up")
        assert talk.prompt.text == "second"
        await talk.pilot.press("up", "up")
        assert talk.prompt.text == chip("[Pasted #1: 300 lines]")
        await talk.pilot.press("down", "down")
        assert talk.prompt.text == "draft"
        await talk.pilot.press("up", "up")
        await talk.prompt.action_send()
        await talk.idle()
        assert sent(engine) == LINES


async def test_arrows_pass_commands_of_the_history_without_opening_their_list() -> None:
    async with talking(FakeEngine()) as talk:
        for text in ("hello", "/branch", "/edit 9"):
            talk.prompt.remember(text)
        await talk.pilot.press("up", "up", "up")
        assert talk.prompt.text == "hello"
        await talk.pilot.press("down")
        assert talk.prompt.text == "/branch" and not talk.prompt.suggesting.list.open
        talk.prompt.action_delete_left()
        await talk.pilot.pause()
        assert talk.prompt.text == "/branc" and talk.prompt.suggesting.list.open


async def test_a_prompt_taken_away_by_ctrl_c_is_the_first_that_the_arrows_bring_back() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("older")
        await talk.idle()
        talk.prompt.insert("precious")
        await talk.pilot.press("ctrl+c")
        assert talk.prompt.text == ""
        await talk.pilot.press("up")
        assert talk.prompt.text == "precious"
        await talk.pilot.press("ctrl+c", "up", "up")
        assert talk.prompt.text == "older", "what was only brought back is not there twice"


async def test_arrows_move_inside_a_prompt_of_several_lines_first() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("earlier")
        await talk.idle()
        talk.prompt.insert("one\ntwo")
        await talk.pilot.press("up")
        assert talk.prompt.text == "one\ntwo" and talk.prompt.cursor_location[0] == 0
        await talk.pilot.press("up")
        assert talk.prompt.text == "earlier"


async def test_the_prompt_grows_with_its_text_to_ten_lines() -> None:
    async with talking(FakeEngine()) as talk:
        assert talk.prompt.size.height == 1
        talk.prompt.insert("\n" * 4)
        await talk.pilot.pause()
        assert talk.prompt.size.height == 5
        talk.prompt.insert("\n" * 40)
        await talk.pilot.pause()
        assert talk.prompt.size.height == 10


async def test_end_at_the_end_of_the_text_goes_to_the_end_of_the_chat() -> None:
    async with talking(FakeEngine().script("line\n\n" * 200)) as talk:
        await talk.say("hi")
        await talk.idle()
        await talk.pilot.press("pageup", "end")
        assert talk.transcript.following


async def test_tab_beside_a_chip_opens_it_in_place_and_undo_closes_it() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        talk.prompt.insert("see ")
        await paste(talk, LINES)
        await talk.pilot.press("tab")
        assert talk.prompt.text == f"see {LINES}"
        await talk.pilot.press("ctrl+z")
        assert talk.prompt.text == chip("see [Pasted #1: 300 lines]")
        await talk.pilot.press("left", "tab")
        assert talk.prompt.text == f"see {LINES}"


async def test_the_same_paste_again_opens_the_chip_instead_of_adding_one() -> None:
    async with talking(FakeEngine()) as talk:
        await paste(talk, LINES)
        await paste(talk, LINES)
        assert talk.prompt.text == LINES
        await paste(talk, LINES)
        assert talk.prompt.text == chip(f"{LINES}[Pasted #2: 300 lines]")


async def test_a_chip_too_long_to_be_shown_says_so_and_stays() -> None:
    async with talking(FakeEngine()) as talk:
        await paste(talk, "x" * 60_000)
        await talk.pilot.press("tab")
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["This paste has 60,000 characters, too many to be shown here; ctrl+g edits it."]
        assert talk.prompt.text == chip("[Pasted #1: 60,000 characters]")


async def test_pastes_are_never_chips_where_the_user_wants_none() -> None:
    async with talking(FakeEngine(), paste_lines=0) as talk:
        await paste(talk, LINES)
        assert talk.prompt.text == LINES


async def test_the_words_of_a_chip_typed_by_hand_are_sent_as_they_are() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, LINES)
        talk.prompt.insert(" [Pasted #1: 300 lines]")
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == f"{LINES} [Pasted #1: 300 lines]"


async def test_a_chip_that_was_cut_comes_back_when_it_is_pasted() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await paste(talk, LINES)
        talk.prompt.select_all()
        await talk.pilot.press("ctrl+x")
        assert talk.prompt.text == ""
        await talk.pilot.press("ctrl+v", "enter")
        await talk.idle()
        assert sent(engine) == LINES


async def test_control_characters_in_a_paste_are_left_out() -> None:
    async with talking(FakeEngine()) as talk:
        await paste(talk, "a\x1b[31mb\0c\x07")
        assert talk.prompt.text == "a[31mbc"


async def test_an_editor_that_can_not_be_used_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor-anywhere")
    async with talking(FakeEngine()) as talk:
        talk.prompt.insert("hi")
        await talk.pilot.press("ctrl+g")
        await talk.until(lambda: talk.notes)
        monkeypatch.setenv("VISUAL", sys.executable)
        await talk.pilot.press("ctrl+x", "ctrl+e")
        await talk.until(lambda: len(talk.notes) == 2)
        assert talk.notes == [
            "The editor 'no-such-editor-anywhere' is not there: set VISUAL or EDITOR to one that is.",
            "An editor can't take over this terminal.",
        ]
        assert talk.prompt.text == "hi"


async def test_a_prompt_that_was_not_sent_is_there_again_after_a_start(tmp_path: Path) -> None:
    async with talking(FakeEngine(), history_file=tmp_path / "history.jsonl") as talk:
        await paste(talk, LINES)
        talk.app.exit()
    async with talking(FakeEngine(), history_file=tmp_path / "history.jsonl") as talk:
        await talk.pilot.press("up")
        assert talk.prompt.text == chip("[Pasted #1: 300 lines]")


async def test_prompts_are_there_again_after_a_start(tmp_path: Path) -> None:
    for expected in ("", chip("[Pasted #1: 300 lines]")):
        engine = FakeEngine()
        async with talking(engine, history_file=tmp_path / "history.jsonl") as talk:
            await talk.pilot.press("up")
            assert talk.prompt.text == expected
            talk.prompt.empty()
            await paste(talk, LINES)
            await talk.pilot.press("enter")
            await talk.idle()
            assert sent(engine) == LINES
