"""Chats that outlive their window, in the app on a scripted engine and a real file."""

import gc
import json
import time
from pathlib import Path

import pytest
from textual.events import Key
from textual.widgets import Input, OptionList, Static

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat.chat import Settings
from specchat.store import browse
from specchat.store.chats import Kept, Store
from specchat.tui.screens.resume import Resume
from specengine.protocol import Chat
from specengine.settings import Sampling


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return tmp_path / "data" / "chats.db"


async def said(talk: Talk, *prompts: str) -> None:
    for prompt in prompts:
        await talk.say(prompt)
        await talk.idle()


async def chat_of(chats: Path, *prompts: str, answer: str = "Hello") -> Kept:
    """A chat that was kept by an app that has ended."""
    engine = FakeEngine()
    for _ in prompts:
        engine.script(answer)
    async with talking(engine, chats_file=chats) as talk:
        await said(talk, *prompts)
    with Store(chats) as store:
        return store.kept(store.last() or "")


async def opened(talk: Talk) -> Resume:
    """The list of chats, once it is filled."""
    await talk.until(lambda: isinstance(talk.app.screen, Resume))
    screen = talk.app.screen
    assert isinstance(screen, Resume)
    await talk.until(lambda: screen.query_one("Vertical").border_subtitle)
    await talk.pilot.pause()
    return screen


def titles(screen: Resume) -> list[str]:
    found = screen.query_one(OptionList)
    return [str(found.get_option_at_index(number).prompt).split("\n")[0] for number in range(found.option_count)]


def news(screen: Resume) -> str:
    return str(screen.query_one(".news", Static).render())


async def until_titles(talk: Talk, screen: Resume, *wanted: str) -> None:
    await talk.until(lambda: titles(screen) == list(wanted))
    await talk.pilot.pause()


async def test_what_is_said_is_on_the_disk_and_the_next_window_goes_on_with_it(chats: Path) -> None:
    """33, 35. The chat is not lost with its window."""
    kept = await chat_of(chats, "one", "two")
    engine = FakeEngine()
    async with talking(engine, chats_file=chats, resume=kept) as talk:
        await talk.until(lambda: talk.questions == ["one", "two"])
        assert talk.answers == ["Hello", "Hello"] and len(talk.footers) == 2
        await said(talk, "three")
        prompt = engine.requests[0].prompt
        assert isinstance(prompt, Chat)
        assert [(message.content, message.tokens) for message in prompt.messages] == [
            ("one", None), ("Hello", (0,)), ("two", None), ("Hello", (0,)), ("three", None),
        ]  # fmt: skip
    with Store(chats) as store:
        assert len(store.listed()) == 1
        assert [turn.prompt for turn in store.kept(kept.listed.id).conversation.turns] == ["one", "two", "three"]


async def test_a_prompt_from_the_command_line_goes_into_the_resumed_chat(chats: Path) -> None:
    kept = await chat_of(chats, "one")
    async with talking(FakeEngine(), chats_file=chats, resume=kept, prompt="two") as talk:
        await talk.until(lambda: talk.answers == ["Hello", "Hello"])
        assert talk.questions == ["one", "two"]


async def test_quitting_in_the_middle_of_an_answer_keeps_what_was_written(chats: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate), chats_file=chats) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.pilot.press("ctrl+q")
    with Store(chats) as store:
        (turn,) = store.kept(store.last() or "").conversation.turns
    assert turn.answer and (turn.answer.text, turn.answer.ending) == ("one ", "stopped")


async def test_a_prompt_that_was_never_answered_is_in_the_prompt_again(chats: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one", pace=gate), chats_file=chats) as talk:
        await talk.say("hi there")
        await talk.until(lambda: talk.screen.session.answering)
        await talk.pilot.press("ctrl+q")
    with Store(chats) as store:
        kept = store.kept(store.last() or "")
    engine = FakeEngine()
    async with talking(engine, chats_file=chats, resume=kept) as talk:
        await talk.until(lambda: talk.prompt.text == "hi there")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.answers == ["Hello"])
        await talk.idle()
    with Store(chats) as store:
        again = store.kept(store.last() or "")
    assert [turn.prompt for turn in again.conversation.turns] == ["hi there"] and again.unanswered == ()


@pytest.mark.parametrize("how", ["ctrl+r", "/resume", "/search"])
async def test_an_earlier_chat_is_chosen_from_the_list(chats: Path, how: str) -> None:
    await chat_of(chats, "old question")
    await chat_of(chats, "newer [/b] question", answer="Because.")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await said(talk, "present")
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        screen = await opened(talk)
        assert titles(screen) == ["present", "newer [/b] question", "old question"]
        await talk.pilot.press("down")
        await talk.until(lambda: "Because." in str(screen.query_one(".preview", Static).render()))
        assert "> newer [/b] question" in str(screen.query_one(".preview", Static).render())
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.questions == ["newer [/b] question"])
        assert talk.answers == ["Because."] and talk.app.screen is talk.screen


async def test_typing_finds_chats_by_titles_prompts_and_answers(chats: Path) -> None:
    await chat_of(chats, "about caches", answer="Keys and values.")
    await chat_of(chats, "about 日本語")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        await talk.pilot.press(*"VALUES")
        await until_titles(talk, screen, "about caches")
        assert "Keys and values." in str(screen.query_one(OptionList).get_option_at_index(0).prompt)
        screen.query_one(".find", Input).value = "日本"
        await until_titles(talk, screen, "about 日本語")
        screen.query_one(".find", Input).value = "nothing like it"
        await until_titles(talk, screen)
        assert screen.query_one("Vertical").border_subtitle == "No chat holds these words."
        await talk.pilot.press("enter", "delete", "f2", "escape")
        await talk.until(lambda: talk.app.screen is talk.screen)


async def test_enter_right_behind_the_words_opens_the_chat_that_they_find(chats: Path) -> None:
    await chat_of(chats, "about caches")
    await chat_of(chats, "about trees")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        await opened(talk)
        for key in ("c", "x", "backspace", "a", "c", "h", "e", "enter"):
            talk.app.post_message(Key(key, key if len(key) == 1 else None))
        await talk.until(lambda: talk.questions == ["about caches"])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning", "error::RuntimeWarning")
async def test_a_search_that_was_overtaken_before_it_began_leaves_nothing_behind(chats: Path) -> None:
    await chat_of(chats, "one")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        for _ in range(3):
            screen._fill()
        gc.collect()
        await until_titles(talk, screen, "one")


async def test_search_begins_with_the_words_given(chats: Path) -> None:
    await chat_of(chats, "about caches")
    await chat_of(chats, "about trees")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.say("/search trees")
        screen = await opened(talk)
        assert titles(screen) == ["about trees"]


async def test_deleting_is_undone_with_ctrl_z(chats: Path) -> None:
    await chat_of(chats, "one")
    await chat_of(chats, "two?")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        await talk.pilot.press("delete")
        await until_titles(talk, screen, "one")
        assert news(screen) == "Deleted: two? Ctrl+Z brings it back."
        await talk.pilot.press("delete")
        await until_titles(talk, screen)
        await talk.pilot.press("ctrl+z")
        await until_titles(talk, screen, "one")
        await talk.pilot.press("ctrl+z")
        await until_titles(talk, screen, "two?", "one")
        assert news(screen) == "Back again: two?"


async def test_the_chat_that_is_open_is_not_deleted_under_the_users_hands(chats: Path) -> None:
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await said(talk, "one")
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        await talk.pilot.press("delete")
        await talk.until(lambda: news(screen) == "This chat is open; open another or begin a new one first.")
        assert titles(screen) == ["one"]
        await talk.pilot.press("ctrl+z")
        await talk.until(lambda: news(screen) == "Nothing was deleted here.")
        await talk.pilot.press("o")
        await talk.until(lambda: news(screen) == "")


async def test_a_chat_deleted_in_one_window_comes_back_whole_where_it_goes_on_in_another(chats: Path) -> None:
    async with talking(FakeEngine(), chats_file=chats) as there, talking(FakeEngine(), chats_file=chats) as here:
        await said(there, "one")
        await here.pilot.press("ctrl+r")
        screen = await opened(here)
        await here.pilot.press("delete")
        await until_titles(here, screen)
        assert news(screen) == (
            "Deleted: one. Ctrl+Z brings it back. It is open in another window, and comes back if it goes on there."
        )
        await said(there, "two")
        await there.until(lambda: there.notes)
        assert there.notes == [
            "This chat was deleted in another window; since it goes on here, it is kept again, whole."
        ]
        assert there.column == ["> one", "Hello", there.notes[0], "> two", "Hello"]
        await here.pilot.press("escape", "ctrl+r")
        await until_titles(here, await opened(here), "one")


async def test_a_chat_deleted_in_one_window_is_said_to_be_above_the_prompt_that_brings_it_back(chats: Path) -> None:
    gate, later = Gate(), Gate()
    engine = FakeEngine().script("one ", "two", pace=gate).script("three", pace=later)
    async with talking(engine, chats_file=chats) as talk:
        await talk.say("first")
        await talk.say("second")
        with Store(chats) as store:
            await talk.until(lambda: len(store.rows("SELECT id FROM turn")) == 2)
            with store.writing():
                store.delete(store.last() or "", time.time())
        gate.open(2)
        await talk.until(lambda: talk.notes)
        later.open()
        await talk.idle()
        await talk.say("third")
        await talk.idle()
        assert talk.column == ["> first", "one two", talk.notes[0], "> second", "three", "> third", "Hello"]


async def test_the_status_bar_tells_the_context_of_a_resumed_chat_where_the_loaded_model_counted_it(
    chats: Path,
) -> None:
    kept = await chat_of(chats, "one")
    async with talking(FakeEngine(), chats_file=chats, resume=kept) as talk:
        await talk.idle()
        assert "121/8,192 ctx" in talk.status and "20.0 tok/s" in talk.status
        await talk.say("/new")
        await talk.until(lambda: not talk.questions)
        assert "–/8,192 ctx" in talk.status
        await talk.say(f"/resume {kept.listed.id}")
        await talk.until(lambda: talk.questions and "121/8,192 ctx" in talk.status)
        await talk.say("/model other")
        await talk.until(lambda: "other" in talk.status and not talk.screen.session.busy)
        assert "–/8,192 ctx" in talk.status and "– tok/s" in talk.status


async def test_a_chat_is_renamed_in_the_list_or_by_command(chats: Path) -> None:
    await chat_of(chats, "one")
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        await talk.pilot.press("f2")
        name = screen.query_one(".name", Input)
        assert name.value == "one" and name.has_focus
        name.value = "Better [/b]"
        await talk.pilot.press("enter")
        await until_titles(talk, screen, "Better [/b]")
        await talk.pilot.press("f2", "x", "escape")
        assert titles(screen) == ["Better [/b]"] and screen.query_one(".find", Input).has_focus
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.questions == ["one"])
        await talk.say("/rename  Best   name ")
        assert talk.notes == ["This chat is now called: Best name"]
        await said(talk, "two")
    with Store(chats) as store:
        assert [chat.title for chat in store.listed()] == ["Best name"]


async def test_a_resumed_chat_brings_its_settings_and_its_model(chats: Path) -> None:
    async with talking(FakeEngine(), chats_file=chats, sampling=Sampling(temperature=0.1, seed=3)) as talk:
        await talk.say("/model other-3b")
        await talk.say("/spec off")
        await said(talk, "one")
    engine = FakeEngine()
    async with talking(engine, chats_file=chats) as talk:
        await talk.idle()
        await talk.pilot.press("ctrl+r")
        await opened(talk)
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.questions == ["one"])
        await talk.until(lambda: "other-3b" in talk.status and "SPEC off" in talk.status)
        await said(talk, "two")
        assert engine.requests[0].sampling == Sampling(temperature=0.1, seed=3)
        assert engine.requests[0].speculation == "off"
        assert [load.name for load in engine.loads] == ["tiny-1b", "other-3b"]


async def test_a_chat_whose_model_is_gone_goes_on_with_the_loaded_one_and_says_so(chats: Path) -> None:
    kept = await chat_of(chats, "one")
    with Store(chats) as store, store.writing():
        store.connection.execute("UPDATE chat SET model = 'nonsense'")
    engine = FakeEngine()
    async with talking(engine, chats_file=chats) as talk:
        await talk.idle()
        await talk.say(f"/resume {kept.listed.id[:4]}")
        await talk.until(lambda: talk.questions == ["one"])
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["This chat was written with nonsense, which is not here; /model chooses another."]
        await said(talk, "two")
        assert len(engine.loads) == 1


async def test_settings_of_the_command_line_win_over_those_of_the_chat_to_go_on_with(chats: Path) -> None:
    kept = await chat_of(chats, "one")
    assert kept.settings == Settings()
    engine = FakeEngine()
    async with talking(engine, chats_file=chats, resume=kept, speculation="on", system="Be brief.") as talk:
        await said(talk, "two")
        assert engine.requests[0].speculation == "on"
        assert talk.screen.session.conversation.system == "Be brief."
        assert "SPEC on" in talk.status


async def test_a_new_chat_leaves_the_old_one_stored(chats: Path) -> None:
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await said(talk, "one")
        await talk.pilot.press("ctrl+n")
        await talk.until(lambda: not talk.questions)
        await said(talk, "two")
    with Store(chats) as store:
        assert [chat.title for chat in store.listed()] == ["two", "one"]


async def test_resuming_in_the_middle_of_an_answer_keeps_it_in_its_own_chat(chats: Path) -> None:
    await chat_of(chats, "one")
    gate = Gate()
    async with talking(FakeEngine().script("part ", "rest", pace=gate), chats_file=chats) as talk:
        await talk.say("two")
        gate.open()
        await talk.until(lambda: talk.answers == ["part "])
        await talk.pilot.press("ctrl+r")
        await opened(talk)
        await talk.pilot.press("down", "enter")
        await talk.until(lambda: talk.questions == ["one"])
        gate.open()
        await said(talk, "more")
        assert talk.questions == ["one", "more"]
    with Store(chats) as store:
        found = {chat.title: store.kept(chat.id).conversation.turns for chat in store.listed()}
    assert [turn.answer.text for turn in found["two"] if turn.answer] == ["part "]
    assert [turn.prompt for turn in found["one"]] == ["one", "more"]


async def test_the_list_opens_at_the_start_where_that_was_asked_for(chats: Path) -> None:
    await chat_of(chats, "one")
    async with talking(FakeEngine(), chats_file=chats, choose_chat=True) as talk:
        assert titles(await opened(talk)) == ["one"]


@pytest.mark.parametrize("size", [(60, 16), (140, 40)])
async def test_the_list_suits_narrow_and_wide_screens(chats: Path, size: tuple[int, int]) -> None:
    await chat_of(chats, "one")
    async with talking(FakeEngine(), size=size, chats_file=chats) as talk:
        await talk.pilot.press("ctrl+r")
        screen = await opened(talk)
        await talk.until(lambda: screen.query_one(OptionList).size.height >= 3)
        assert screen.query_one("VerticalScroll").display == (size[0] >= 90)
        assert screen.query_one("KeyLine").region.bottom <= size[1]


async def test_two_windows_in_one_chat_lose_nothing_of_each_other(chats: Path) -> None:
    kept = await chat_of(chats, "one")
    async with (
        talking(FakeEngine(), chats_file=chats, resume=kept) as first,
        talking(FakeEngine(), chats_file=chats, resume=kept) as second,
    ):
        await said(first, "from the first")
        await said(second, "from the second")
    with Store(chats) as store:
        both = store.kept(kept.listed.id).conversation
    assert sorted(turn.prompt for turn in (*both.turns, *both.others)) == ["from the first", "from the second", "one"]


async def test_a_place_that_can_not_be_written_is_said_and_chatting_goes_on(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    async with talking(FakeEngine(), chats_file=tmp_path / "data" / "chats.db") as talk:
        await talk.until(lambda: talk.notes)
        assert talk.notes[0].startswith("This chat is not being saved: ")
        await said(talk, "one")
        assert talk.answers == ["Hello"]
        await talk.pilot.press("ctrl+r")
        await talk.until(lambda: isinstance(talk.app.screen, Resume))
        await talk.pilot.press("escape")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/rename", "/rename takes the new name of this chat."),
        ("/rename x", "This chat has no prompt yet, and so no name."),
        ("/resume nope", "There is no chat 'nope'; ctrl+r shows them."),
        ("/export", "There is nothing in this chat yet."),
        ("/export a b c", "/export takes md or json, and the name of a file, both optional."),
    ],
)
async def test_what_can_not_be_done_is_one_sentence(chats: Path, command: str, sentence: str) -> None:
    async with talking(FakeEngine(), chats_file=chats) as talk:
        await talk.say(command)
        await talk.until(lambda: talk.notes == [sentence])


@pytest.mark.parametrize("command", ["/resume", "/search x", "/rename x", "ctrl+r"])
async def test_a_private_chat_is_kept_nowhere_and_says_so(tmp_path: Path, command: str) -> None:
    async with talking(FakeEngine()) as talk:
        await said(talk, "secret")
        await (talk.say(command) if command.startswith("/") else talk.pilot.press(command))
        assert talk.notes == ["Chats are not kept here, since specchat was started so (--no-save)."]
    assert not any(tmp_path.rglob("*.db"))


async def test_a_chat_is_exported_under_its_title_and_never_over_a_file(
    chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with talking(FakeEngine().script("```py\nx = 1"), chats_file=chats) as talk:
        await said(talk, "What is x?")
        forms = ("", "md", "json", "notes.json", "'my file.md'", "notes.json")
        for number, form in enumerate(forms, start=1):
            await talk.say(f"/export {form}")
            await talk.until(lambda number=number: len(talk.notes) == number)  # type: ignore[misc]
        notes = talk.notes
    names = ("what-is-x.md", "what-is-x-2.md", "what-is-x.json", "notes.json", "my file.md")
    exported = [f"Exported as {tmp_path / name}." for name in names]
    assert sorted(notes) == sorted([*exported, "notes.json is there already; choose another name."])
    assert (tmp_path / "what-is-x.md").read_text().endswith("## You\n\nWhat is x?\n\n## tiny-1b\n\n```py\nx = 1\n```\n")
    assert json.loads((tmp_path / "notes.json").read_text())["turns"][0]["prompt"] == "What is x?"
    assert (tmp_path / "my file.md").exists()


@pytest.mark.parametrize(
    ("passed_s", "words"),
    [(5, "just now"), (125, "2 min ago"), (3 * 3600, "3 h ago"), (26 * 3600, "Sat 10:00"), (400 * 86400, "2022-10-08")],
)
def test_times_are_told_as_a_person_would(passed_s: float, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now_s = 1_699_790_400.0  # Sunday, 2023-11-12 12:00
    assert browse.ago(now_s - passed_s, now_s) == words


def test_a_preview_shows_the_last_turns_cut_short() -> None:
    from specchat.chat import Answer, Conversation, answer, ask
    from specchat.store.chats import Listed

    talk = Conversation("Be brief.")
    for number in range(6):
        talk = answer(ask(talk, f"prompt {number}\n" * 10), Answer(f"answer {number}\n" * 20, "end"))
    shown = browse.preview(Kept(Listed("a", "t", 0, 0, None, "", 6), talk))
    assert "prompt 1" not in shown and "prompt 2" in shown
    assert shown.count("> prompt 5") == 6 and shown.count("answer 5") == 14
