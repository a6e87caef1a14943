"""Chats on disk: what is written is there again, whatever happened in between."""

import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.branches import cut_before
from specchat.chat import Answer, Conversation, Settings, Turn, answer, ask
from specchat.sources import Run
from specchat.store import migrations, search
from specchat.store.chats import Header, Store, new_chat_id
from specchat.store.database import StoreError
from specengine.settings import Limits, Sampling
from specengine.stats import SourceStats, Stats

SETTINGS = Settings(Sampling(temperature=0.2, seed=7), Limits(100, ("END",)), "on", 3, False, False)
STATS = Stats(emitted=5, sources={"lookup": SourceStats(2, 6, 4)}, first_token_s=0.5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "data" / "chats.db") as store:
        yield store


def header(id: str = "aaaa", title: str = "A title", created_s: float = 1.0) -> Header:
    return Header(id, title, created_s, "Be brief.", SETTINGS, "tiny-1b", "tiny-100m")


def ended(text: str, at_s: float = 10.0) -> Answer:
    runs = (Run("target", 2, 3), Run("lookup", 1, len(text) - 3, True))
    return Answer(text, "end", (1, 2**31, 3), STATS, "tiny-1b", "tiny-100m", SETTINGS, at_s, runs)


def keep(store: Store, prompt: str, text: str | None, chat: str = "aaaa", at_s: float = 10.0) -> Turn:
    """A turn at the end of a chat, as a window writes it."""
    known = (
        store.kept(chat).conversation.turns if chat in [row["id"] for row in store.rows("SELECT id FROM chat")] else ()
    )
    turn = Turn(prompt, prompt, parent=known[-1].id if known else None, asked_s=at_s)
    with store.writing():
        store.keep_prompt(header(chat), turn, at_s)
        if text is not None:
            store.keep_answer(turn.id, ended(text, at_s + 1))
    return turn


def test_the_file_and_its_folder_are_the_owners_alone(store: Store) -> None:
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_a_turn_comes_back_as_it_was_with_model_settings_and_figures(store: Store) -> None:
    talk = answer(ask(Conversation("Be brief."), "long [Pasted]", "shown"), ended("The answer. 日本語 🙂"))
    (turn,) = talk.turns
    with store.writing():
        store.keep_prompt(header(), turn, 5.0)
        store.keep_answer(turn.id, ended("The answer. 日本語 🙂"))
    kept = store.kept("aaaa")
    assert kept.conversation == talk
    assert (kept.settings, kept.model, kept.draft) == (SETTINGS, "tiny-1b", "tiny-100m")
    assert (kept.listed.title, kept.listed.created_s, kept.listed.turns) == ("A title", 1.0, 1)


def test_a_partial_answer_is_there_as_far_as_it_was_written_and_marked(store: Store) -> None:
    turn = keep(store, "tell", None)
    begun = replace(turn, answer=Answer("", "failed", model="tiny-1b", settings=SETTINGS))
    with store.writing():
        store.keep_prompt(header(), begun, 10.0)
    for text in ("once ", "upon ", "a"):
        with store.writing():
            store.keep_text(turn.id, text)
    (again,) = store.kept("aaaa").conversation.turns
    assert again.answer and (again.answer.text, again.answer.ending) == ("once upon a", "failed")
    assert again.answer.model == "tiny-1b"
    assert again.answer.settings == SETTINGS


def test_a_partial_answer_has_the_counters_it_had_and_says_who_wrote_it(store: Store) -> None:
    turn = keep(store, "tell", None)
    with store.writing():
        store.keep_text(turn.id, "once ", (Run("target", 1, 5),), Stats(emitted=1))
        store.keep_text(turn.id, "upon a", (Run("target", 1, 5), Run("lookup", 1, 1)), Stats(emitted=3))
    (again,) = store.kept("aaaa").conversation.turns
    assert again.answer and again.answer.runs == (Run("target", 2, 10), Run("lookup", 1, 1))
    assert again.answer.stats == Stats(emitted=3)
    with store.writing():
        store.reopen(turn.id, again.answer)
        store.keep_text(turn.id, " time", (Run("lookup", 1, 5),), Stats(emitted=4))
    (longer,) = store.kept("aaaa").conversation.turns
    assert longer.answer and longer.answer.runs == (Run("target", 2, 10), Run("lookup", 2, 6))
    assert longer.answer.stats == Stats(emitted=4)


def test_text_is_added_at_the_end_without_writing_the_rest_again(store: Store) -> None:
    turn = keep(store, "tell", None)
    for number in range(50):
        with store.writing():
            store.keep_text(turn.id, f"{number} ")
    assert [row["length"] for row in store.rows("SELECT length(text) AS length FROM piece")] == [2] * 10 + [3] * 40


def test_an_answer_that_goes_on_keeps_its_beginning(store: Store) -> None:
    turn = keep(store, "tell", "once upon")
    with store.writing():
        store.reopen(turn.id, ended("once upon"))
        store.keep_text(turn.id, " a time")
    (broken,) = store.kept("aaaa").conversation.turns
    assert broken.answer and (broken.answer.text, broken.answer.ending) == ("once upon a time", "failed")
    assert broken.answer.tokens == (1, 2**31, 3)
    with store.writing():
        store.keep_answer(turn.id, ended("once upon a time there"))
    (whole,) = store.kept("aaaa").conversation.turns
    assert whole.answer == ended("once upon a time there")


def test_a_prompt_without_an_answer_is_given_back_to_be_asked_again(store: Store) -> None:
    keep(store, "one", "1")
    keep(store, "two", None)
    kept = store.kept("aaaa")
    assert [turn.prompt for turn in kept.conversation.turns] == ["one"]
    assert [turn.prompt for turn in kept.unanswered] == ["two"]


def test_branches_come_back_and_with_them_which_one_was_shown(store: Store) -> None:
    first = keep(store, "one", "1")
    second = keep(store, "two", "2")
    other = Turn("two, better", "two, better", parent=first.id, asked_s=20.0)
    with store.writing():
        store.keep_prompt(header(), other, 20.0)
        store.keep_answer(other.id, ended("2b"))
    kept = store.kept("aaaa").conversation
    assert [turn.prompt for turn in kept.turns] == ["one", "two, better"]
    assert [turn.id for turn in kept.others] == [second.id]
    with store.writing():
        store.show("aaaa", second.id)
    assert [turn.prompt for turn in store.kept("aaaa").conversation.turns] == ["one", "two"]
    assert cut_before(kept, other.id).turns == kept.turns[:1]


def test_a_dropped_turn_leaves_its_children_where_it_stood(store: Store) -> None:
    first = keep(store, "one", "1")
    gone = Turn("stopped early", "stopped early", parent=first.id, asked_s=11.0)
    queued = Turn("queued", "queued", parent=gone.id, asked_s=12.0)
    with store.writing():
        store.keep_prompt(header(), gone, 11.0)
        store.keep_prompt(header(), queued, 12.0)
        store.drop_turn(gone.id)
    kept = store.kept("aaaa")
    assert [turn.prompt for turn in kept.conversation.turns] == ["one"]
    assert [(turn.prompt, turn.parent) for turn in kept.unanswered] == [("queued", first.id)]


def test_a_chat_whose_only_prompt_was_taken_back_is_no_chat(store: Store) -> None:
    turn = keep(store, "one", None)
    with store.writing():
        store.drop_turn(turn.id)
    assert store.listed() == []


def test_writing_the_same_again_changes_nothing(store: Store) -> None:
    turn = keep(store, "one", "1")
    before = store.kept("aaaa")
    with store.writing():
        store.keep_prompt(header(), turn, 10.0)
        store.keep_answer(turn.id, ended("1", 11.0))
    assert store.kept("aaaa") == before


def test_what_fails_halfway_changes_nothing(store: Store) -> None:
    keep(store, "one", "1")
    with pytest.raises(ZeroDivisionError), store.writing():
        store.rename("aaaa", "Other")
        raise ZeroDivisionError
    assert store.listed()[0].title == "A title"


def test_the_chat_used_last_comes_first(store: Store) -> None:
    keep(store, "old", "x", "aaaa", 10.0)
    keep(store, "new", "x", "bbbb", 20.0)
    assert [chat.id for chat in store.listed()] == ["bbbb", "aaaa"]
    keep(store, "again", "x", "aaaa", 30.0)
    assert [chat.id for chat in store.listed()] == ["aaaa", "bbbb"]
    assert store.last() == "aaaa"


def test_a_name_given_by_the_user_stays(store: Store) -> None:
    keep(store, "one", "1")
    with store.writing():
        store.rename("aaaa", "Mine [/b]")
    keep(store, "two", "2")
    assert store.listed()[0].title == "Mine [/b]"


def test_deleting_hides_restoring_brings_back_and_purging_is_for_good(store: Store) -> None:
    keep(store, "secret words", "1")
    with store.writing():
        store.delete("aaaa", 100.0)
    assert (store.listed(), store.last(), search.find(store, "secret")) == ([], None, [])
    assert [chat.id for chat in store.listed(deleted=True)] == ["aaaa"]
    with store.writing():
        store.restore("aaaa")
    assert [find.chat for find in search.find(store, "secret")] == ["aaaa"]
    with store.writing():
        store.delete("aaaa", 100.0)
        store.purge(100.0)
    assert store.listed(deleted=True) != []  # not yet
    with store.writing():
        store.purge(101.0)
    assert store.listed(deleted=True) == []
    for table in ("chat", "turn", "piece", "search"):
        assert store.rows(f"SELECT * FROM {table}") == []
    store.close()
    assert b"secret" not in store.path.read_bytes()


def test_a_chat_deleted_elsewhere_comes_back_when_it_is_used(store: Store) -> None:
    keep(store, "one", "1")
    with store.writing():
        store.delete("aaaa", 100.0)
    keep(store, "two", "2", at_s=110.0)
    assert [turn.prompt for turn in store.kept("aaaa").conversation.turns] == ["one", "two"]
    assert store.last() == "aaaa"


def test_a_chat_that_was_deleted_for_good_is_written_again_whole(store: Store) -> None:
    first = keep(store, "one", "1")
    other = replace(keep(store, "two", "2"), answer=ended("2"))
    first = replace(first, answer=ended("1"))
    with store.writing():
        store.delete("aaaa", 100.0)
        store.purge(101.0)
    last = Turn("three", "three", parent=other.id, asked_s=110.0)
    with store.writing():
        assert store.keep_prompt(header(), last, 110.0, (first, other)) is True
    with store.writing():
        assert store.keep_prompt(header(), last, 111.0, (first, other)) is False
    kept = store.kept("aaaa")
    assert kept.conversation.turns == (first, other) and [turn.prompt for turn in kept.unanswered] == ["three"]


def test_the_beginning_of_an_id_is_enough_where_only_one_begins_so(store: Store) -> None:
    keep(store, "x", "1", "abcd")
    keep(store, "x", "1", "abef")
    assert store.find("abc") == "abcd"
    for wrong, sentence in (("ab", "More than one"), ("zz", "no chat 'zz'"), ("", "More than one")):
        with pytest.raises(StoreError, match=sentence):
            store.find(wrong)
    assert len({new_chat_id() for _ in range(100)}) == 100


@pytest.mark.parametrize("indexed", [True, False])
def test_search_finds_words_in_prompts_answers_and_titles(
    store: Store, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not indexed:
        monkeypatch.setattr(search, "_index", lambda store: False)
    keep(store, 'Explain "KV cache" [/b]', "It keeps keys.\nAnd Values.", "aaaa", 10.0)
    keep(store, "Erkläre 日本語", "Größe 100%", "bbbb", 20.0)
    writing = keep(store, "still", None, "cccc", 30.0)
    with store.writing():
        store.keep_text(writing.id, "being wri")
        store.keep_text(writing.id, "tten now")
        store.rename("bbbb", "Named thing")

    def found(text: str) -> list[str]:
        return [find.chat for find in search.find(store, text)]

    for text, chats in (
        ("kv cache", ["aaaa"]),
        ("CACHE values", ["aaaa"]),
        ('"kv', ["aaaa"]),
        ("[/b]", ["aaaa"]),
        ("日本", ["bbbb"]),
        ("日本語", ["bbbb"]),
        ("größe", ["bbbb"]),
        ("100%", ["bbbb"]),
        ("%", ["bbbb"]),
        ("named", ["bbbb"]),
        ("written now", ["cccc"]),
        ("e", ["cccc", "bbbb", "aaaa"]),
        ("cache Größe", []),
        ("nothing like it", []),
        ("  ", []),
    ):
        assert found(text) == chats, text
        assert found(text) == chats, text  # also once everything is in the index
    assert search.find(store, "values")[0].snippet == "It keeps keys. And Values."


def test_search_follows_what_changes(store: Store) -> None:
    turn = keep(store, "one", "first words")
    assert search.find(store, "first words") != []
    with store.writing():
        store.reopen(turn.id, ended("first words"))
        store.keep_text(turn.id, " and second")
    assert search.find(store, "second") != []
    with store.writing():
        store.keep_answer(turn.id, ended("first words and third"))
    assert search.find(store, "third") != []
    assert search.find(store, "second") == []


def test_half_characters_and_nuls_are_kept_as_far_as_they_can_be(store: Store) -> None:
    keep(store, "half \ud83d and nul \x00 end", "an\x00swer")
    (turn,) = store.kept("aaaa").conversation.turns
    assert turn.prompt == "half ? and nul \x00 end"
    assert turn.answer and turn.answer.text == "an\x00swer"


def test_settings_of_another_version_are_left_out_not_fatal(store: Store) -> None:
    keep(store, "one", "1")
    with store.writing():
        store.connection.execute("""UPDATE turn SET settings = '{"speculation": "perhaps"}', stats = 'no JSON'""")
        store.connection.execute("""UPDATE chat SET settings = '{"of_tomorrow": 1, "gamma": 4}'""")
    kept = store.kept("aaaa")
    assert kept.settings == Settings(gamma=4)
    (turn,) = kept.conversation.turns
    assert turn.answer and (turn.answer.settings, turn.answer.stats) == (None, None)


def version_1(path: Path) -> None:
    """A file as the first released version made it."""
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    for statement in migrations.STEPS[0]:
        connection.execute(statement)
    connection.execute("INSERT INTO chat (id, title, created, updated, leaf) VALUES ('aaaa', 'Old', 1.0, 2.0, 5)")
    connection.execute(
        "INSERT INTO turn (id, chat, prompt, asked, answer, ending) VALUES (5, 'aaaa', 'old words', 1.5, 'yes', 'end')"
    )
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def test_a_file_of_version_1_is_brought_up_to_date_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "chats.db"
    version_1(path)
    with Store(path) as store:
        assert migrations.version(store.connection) == migrations.NEWEST
        (turn,) = store.kept("aaaa").conversation.turns
        assert turn.answer and (turn.prompt, turn.answer.text) == ("old words", "yes")
        assert [find.chat for find in search.find(store, "old words")] == ["aaaa"]


def test_a_step_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data" / "chats.db"
    version_1(path)
    steps = (*migrations.STEPS, ("CREATE TABLE more (x)", "this is no SQL"))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", steps)
        patch.setattr(migrations, "NEWEST", len(steps))
        with pytest.raises(StoreError):
            Store(path)
    connection = sqlite3.connect(path)
    assert migrations.version(connection) == 1
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
    connection.close()


def test_a_file_of_a_newer_specchat_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="made by a newer specchat"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"this is no database, but a text\n" * 100, b"SQLite format 3\x00" + b"\xff" * 8000]
)
def test_a_damaged_file_is_one_sentence_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"chats\.db is damaged; move it away"):
        Store(path)
    assert path.read_bytes() == content


def test_a_place_that_can_not_be_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(StoreError, match=r"chats\.db can't be used"):
        Store(tmp_path / "data" / "chats.db")
