"""Choosing a message or a block of code with the keyboard, to copy, save or open it."""

from pathlib import Path

import pytest
from textual.events import Key, Paste
from textual.keys import _character_to_key
from textual.selection import SELECT_ALL

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat.tui.app import SpecchatApp
from specchat.tui.screens.save_code import SaveCode
from specchat.tui.widgets.code import CodeRows
from specchat.tui.widgets.item import Item
from specchat.tui.widgets.question import QuestionView
from specchat.tui.widgets.stretch import StretchRows

ANSWER = "<think>\nhm\n</think>\n\nFirst:\n\n```python\nx = 1\n\ny = '[/b]'\n```\n\nthen\n\n```\nplain\n```\n"


async def answered(talk: Talk) -> None:
    await talk.say("the [b]question[/b]")
    await talk.idle()
    await talk.until(lambda: talk.footers)
    await talk.pilot.pause()


def chosen(talk: Talk) -> str:
    return type(talk.transcript.chosen).__name__


async def test_alt_up_goes_from_the_answer_over_its_code_and_thoughts_to_the_question_and_back() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        seen = []
        for _ in range(5):
            await talk.pilot.press("alt+up")
            seen.append(chosen(talk))
        assert seen == ["Foot", "CodeBlock", "CodeBlock", "Thought", "Question"]
        await talk.pilot.press("alt+up")
        assert chosen(talk) == "Question"
        marked = talk.screen.query(".-chosen")
        assert [type(widget).__name__ for widget in marked] == ["QuestionView"]
        for _ in range(5):
            await talk.pilot.press("alt+down")
        assert talk.transcript.chosen is None and talk.prompt.has_focus
        assert not talk.screen.query(".-chosen")


@pytest.mark.parametrize(
    ("ups", "copied"),
    [(1, ANSWER), (2, "plain"), (3, "x = 1\n\ny = '[/b]'"), (4, "hm"), (5, "the [b]question[/b]")],
)
async def test_c_copies_what_is_chosen_and_nothing_else(ups: int, copied: str) -> None:
    async with talking(FakeEngine().script(ANSWER), size=(30, 20)) as talk:
        await answered(talk)
        await talk.pilot.press(*["alt+up"] * ups, "c")
        await talk.pilot.pause()
        assert talk.app.clipboard == copied
        assert talk.transcript.chosen is not None


async def test_what_the_mouse_selects_has_no_breaks_of_rows_no_fences_and_no_marks() -> None:
    code = f"values = [{'1, ' * 30}]\n\nshort = 日本"
    prose = "some words of prose " * 8
    async with talking(FakeEngine().script(f"{prose}\n\n```python\n{code}\n```\n"), size=(60, 30)) as talk:
        await answered(talk)
        for kind, text in ((QuestionView, "the [b]question[/b]"), (StretchRows, prose.strip()), (CodeRows, code)):
            talk.screen.selections = {talk.screen.query_one(kind): SELECT_ALL}
            assert (talk.screen.get_selected_text() or "").strip("\n") == text


async def test_a_chosen_answer_is_marked_as_a_whole_and_the_prompt_says_what_keys_do() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up")
        await talk.pilot.pause()
        assert len(talk.screen.query(".-chosen")) == 6
        assert talk.prompt.border_subtitle == "esc back · c copy · e edit · r retry"
        await talk.pilot.press("escape")
        await talk.pilot.pause()
        assert talk.prompt.has_focus and talk.prompt.border_subtitle == ""


async def test_whoever_types_on_types_into_the_prompt() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up", "h", "i")
        await talk.until(lambda: talk.prompt.text == "hi")
        assert talk.prompt.has_focus and talk.transcript.chosen is None


async def test_enter_opens_thoughts() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up", "alt+up", "alt+up", "alt+up", "enter")
        await talk.pilot.pause()
        assert talk.screen.query_one("ThoughtRows").display


async def test_what_is_chosen_comes_into_view_and_the_end_is_followed_again_afterwards() -> None:
    engine = FakeEngine()
    async with talking(engine, size=(60, 16)) as talk:
        for number in range(12):
            engine.script(f"Answer {number}\n\n" + "word " * 60)
            await talk.say(f"Question {number}")
            await talk.idle()
        for _ in range(20):
            await talk.pilot.press("alt+up")
            await talk.until(lambda: not talk.transcript.settling)
            item = talk.transcript.chosen
            assert item
            await talk.until(lambda item=item: in_view(talk, item))  # type: ignore[misc]
        await talk.pilot.press("escape")
        await talk.until(lambda: talk.transcript.scroll_y == talk.transcript.max_scroll_y)
        assert talk.transcript.following


def in_view(talk: Talk, item: Item) -> bool:
    return item.widget is not None and talk.transcript.region.overlaps(item.widget.region)


async def test_code_is_copied_and_saved_by_click(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        rows = talk.screen.query(CodeRows).first()
        right = rows.size.width
        await talk.pilot.click(rows, offset=(right - 8, 0))
        await talk.pilot.pause()
        assert talk.app.clipboard == "x = 1\n\ny = '[/b]'"
        await talk.pilot.click(rows, offset=(right - 3, 0))
        await talk.until(lambda: isinstance(talk.app.screen, SaveCode))
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.app.screen is talk.screen)
        assert (tmp_path / "code.py").read_text() == "x = 1\n\ny = '[/b]'\n"


async def test_s_asks_for_a_name_and_replaces_a_file_only_when_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up", "s")
        await talk.pilot.pause()
        assert talk.app.screen is talk.screen
        await talk.pilot.press("alt+up", "s")
        await talk.until(lambda: isinstance(talk.app.screen, SaveCode))

        def news() -> str:
            return str(talk.app.screen.query_one(".news").render())

        await talk.pilot.press("home", "ctrl+k", *"mine.txt", "enter")
        await talk.until(lambda: "mine.txt is there already. Enter again replaces it." in news())
        assert (tmp_path / "mine.txt").read_text() == "mine"
        await talk.pilot.press("backspace", "enter")
        await talk.until(lambda: talk.app.screen is talk.screen)
        assert (tmp_path / "mine.tx").read_text() == "plain\n"
        await talk.pilot.press("s")
        await talk.until(lambda: isinstance(talk.app.screen, SaveCode))
        await talk.pilot.press("home", "ctrl+k", *"no/where", "enter")
        await talk.until(lambda: "no/where can't be written" in news())
        await talk.pilot.press("home", "ctrl+k", *"mine.txt", "enter", "enter")
        await talk.until(lambda: talk.app.screen is talk.screen)
        assert (tmp_path / "mine.txt").read_text() == "plain\n"
        await talk.pilot.press("s")
        await talk.until(lambda: isinstance(talk.app.screen, SaveCode))
        await talk.pilot.press("escape")
        await talk.until(lambda: talk.app.screen is talk.screen)
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("text", ["hi, copies are seen", "x", "-- e c s r --"])
async def test_what_is_typed_on_goes_to_the_prompt_whole_also_when_all_keys_arrive_at_once(text: str) -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up")
        await talk.until(lambda: talk.transcript.has_focus)
        for character in text:
            talk.app.post_message(Key(_character_to_key(character), character))
        await talk.until(lambda: talk.prompt.text == text)
        assert talk.prompt.has_focus and talk.transcript.chosen is None


async def test_keys_behind_the_one_that_leaves_the_choice_are_no_commands_of_it() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up")
        await talk.until(lambda: talk.transcript.has_focus)
        talk.app.post_message(Key("escape", None))
        for character in "recess":
            talk.app.post_message(Key(character, character))
        await talk.until(lambda: talk.prompt.text == "recess")
        assert talk.prompt.has_focus and talk.app.screen is talk.screen and not talk.app.clipboard


async def test_a_paste_leaves_the_choice_and_what_is_typed_behind_it_follows() -> None:
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up")
        await talk.until(lambda: talk.transcript.has_focus)
        talk.app.post_message(Paste("some code"))
        for character in "cs":
            talk.app.post_message(Key(character, character))
        await talk.until(lambda: talk.prompt.text == "some codecs")
        assert talk.prompt.has_focus and talk.transcript.chosen is None


async def test_what_can_not_be_done_with_the_chosen_item_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpecchatApp, "NOTIFICATION_TIMEOUT", 3600.0)
    gate = Gate()
    engine = FakeEngine().script(ANSWER).script("one", pace=gate)
    async with talking(engine) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up", "s")
        await talk.until(lambda: "Only a block of code can be saved; alt+up goes to the one above" in talk.app_notes)
        await talk.pilot.press("enter")
        await talk.until(lambda: "There is nothing to open here" in talk.app_notes)
        await talk.pilot.press("escape")
        await talk.say("next")
        await talk.say("waits")
        await talk.pilot.press("alt+up", "e")
        await talk.until(lambda: "This prompt has not been asked yet" in talk.app_notes)
        assert chosen(talk) == "Question"
        gate.open()


async def test_coloured_by_source_s_says_how_to_get_to_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpecchatApp, "NOTIFICATION_TIMEOUT", 3600.0)
    async with talking(FakeEngine().script(ANSWER)) as talk:
        await answered(talk)
        await talk.pilot.press("alt+up", "alt+up")
        assert chosen(talk) == "CodeBlock"
        await talk.pilot.press("ctrl+l")
        await talk.until(lambda: talk.transcript.chosen is None)
        await talk.pilot.press("alt+up", "s")
        await talk.until(lambda: "Press ctrl+l to have its blocks of code back: s saves" in talk.app_notes)
        await talk.pilot.press("ctrl+l")
        await talk.until(lambda: len(talk.screen.query(".-chosen")) == 6)
