"""`specchat chats` as a user meets it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specchat import chats_command, paths
from specchat.chat import Answer, Turn
from specchat.export import written
from specchat.store.chats import Header, Store
from specchat.store.open_chats import OpenChat, is_open
from specengine.errors import EngineError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def keep(id: str, prompt: str, text: str, at_s: float) -> None:
    with Store(paths.chats_file()) as store, store.writing():
        turn = Turn(prompt, prompt, asked_s=at_s)
        store.keep_prompt(Header(id, prompt, at_s, model="tiny-1b"), turn, at_s)
        store.keep_answer(turn.id, Answer(text, "end", (1,), None, "tiny-1b", ended_s=at_s))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(chats_command.chats, list(arguments))


def test_without_any_chat_it_says_so_and_makes_no_file() -> None:
    ended = run("list")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "There are no chats yet.\n")
    assert json.loads(run("list", "--json").stdout) == {"chats": []}
    assert str(run("show", "abc").exception) == "There is no chat 'abc'; none was kept yet."
    assert not paths.chats_file().exists()


def test_a_list_without_chats_names_the_deleted_ones() -> None:
    keep("aaaa", "What is a cache?", "Memory.", 1_700_000_000.0)
    assert run("list", "--deleted").stderr == "No chat was deleted.\n"
    run("rm", "aaaa")
    assert run("list").stderr == "There are no chats; `specchat chats list --deleted` shows those that were deleted.\n"


def test_the_list_shows_the_chat_used_last_first(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("aaaa", "What is a cache?", "Memory.", 1_700_000_000.0)
    keep("bbbb", "Newer \x1b[31mred", "Yes.", 1_700_000_100.0)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert run("list").stdout.splitlines() == [
        "bbbb  2023-11-14 22:15  1 turn  tiny-1b  Newer red",
        "aaaa  2023-11-14 22:13  1 turn  tiny-1b  What is a cache?",
    ]
    (newer, older) = json.loads(run("list", "--json").stdout)["chats"]
    assert (older["id"], older["title"], older["model"], older["turns"]) == ("aaaa", "What is a cache?", "tiny-1b", 1)
    assert older["updated"] == "2023-11-14T22:13:20+00:00" and newer["deleted"] is None


def test_the_list_counts_the_turns_that_show_prints() -> None:
    with Store(paths.chats_file()) as store, store.writing():
        head = Header("aaaa", "Title", 1.0)
        for id, parent, prompt in ((1, None, "one"), (2, 1, "two"), (3, 1, "two again"), (4, 3, "unanswered")):
            store.keep_prompt(head, Turn(prompt, prompt, id=id, parent=parent, asked_s=float(id)), float(id))
            if id < 4:
                store.keep_answer(id, Answer("Yes.", "end"))
    for leaf, shown in ((4, 3), (2, 2), (None, 3)):
        with Store(paths.chats_file()) as store, store.writing():
            store.show("aaaa", leaf)
        (row,) = json.loads(run("list", "--json").stdout)["chats"]
        assert row["turns"] == run("show", "aaaa").stdout.count("## You") == shown


def test_searching_lists_only_what_holds_the_words() -> None:
    keep("aaaa", "What is a cache?", "Memory.", 1.0)
    keep("bbbb", "Other", "Yes.", 2.0)
    assert [chat["id"] for chat in json.loads(run("list", "--json", "--search", "memory").stdout)["chats"]] == ["aaaa"]
    assert run("list", "--search", "nowhere").stderr == "No chat holds these words.\n"


def test_a_chat_is_shown_by_the_beginning_of_its_id_with_nothing_a_terminal_would_obey() -> None:
    keep("abcd", "red \x1b[31mred", "The answer.", 1.0)
    ended = run("show", "ab")
    assert ended.exit_code == 0
    assert "## You\n\nred red\n\n## tiny-1b\n\nThe answer.\n" in ended.stdout
    assert json.loads(run("show", "ab", "--json").stdout)["turns"][0]["answer"]["text"] == "The answer."
    assert str(run("show", "zz").exception).startswith("There is no chat 'zz'; `specchat chats list`")


def test_an_export_goes_to_stdout_or_a_file_in_the_form_that_its_name_says(tmp_path: Path) -> None:
    keep("aaaa", "Q", "A", 1.0)
    assert run("export", "aaaa").stdout.startswith("---\ntitle: ")
    assert json.loads(run("export", "aaaa", "--format", "json").stdout)["id"] == "aaaa"
    assert json.loads(run("export", "aaaa", "--json").stdout)["id"] == "aaaa"
    file = tmp_path / "out.json"
    assert run("export", "aaaa", "-o", str(file)).stdout == f"{file}\n"
    assert json.loads(file.read_text())["id"] == "aaaa"
    told = json.loads(run("export", "aaaa", "-o", str(tmp_path / "out.md"), "--json").stdout)
    assert told == {"id": "aaaa", "file": str(tmp_path / "out.md")}


def test_a_dash_is_stdout_and_never_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keep("aaaa", "What is a cache?", "Memory.", 1.0)
    assert run("export", "aaaa", "-o", "-").stdout.startswith("---\ntitle: ")
    assert json.loads(run("export", "aaaa", "-o", "-", "--json").stdout)["id"] == "aaaa"
    with pytest.raises(EngineError, match="stands for no file"):
        written("text", Path("-"))
    assert not (tmp_path / "-").exists()


def test_an_export_replaces_a_file_only_if_told(tmp_path: Path) -> None:
    keep("aaaa", "Q", "A", 1.0)
    file = tmp_path / "out.md"
    file.write_text("mine")
    assert str(run("export", "aaaa", "-o", str(file)).exception) == f"{file} is there already; choose another name."
    assert file.read_text() == "mine"
    assert run("export", "aaaa", "-o", str(file), "-y").exit_code == 0
    assert file.read_text().startswith("---\n")


def test_deleting_can_be_undone() -> None:
    keep("aaaa", "Q one", "A", 1.0)
    keep("bbbb", "Q two", "A", 2.0)
    ended = run("rm", "a", "b")
    assert ended.stdout == ""
    assert (
        ended.stderr.splitlines()[0] == "Deleted: Q one. `specchat chats restore aaaa` brings it back within 30 days."
    )
    assert run("list").stdout == ""
    assert "Q two" in run("list", "--deleted").stdout
    assert run("restore", "b").stderr == "Back again: Q two.\n"
    assert "Q two" in run("list").stdout and "Q one" not in run("list").stdout
    assert json.loads(run("restore", "aaaa", "--json").stdout) == {"restored": "aaaa"}


def test_deleting_a_chat_that_a_window_has_open_says_so_and_is_never_for_good() -> None:
    keep("aaaa", "Q", "A", 1.0)
    window = OpenChat(paths.chats_file())
    window.take("aaaa")
    refused = run("rm", "--now", "-y", "aaaa")
    assert str(refused.exception) == ("Nothing was deleted: a window has Q open; close it first, or leave out --now.")
    assert "aaaa" in run("list").stdout
    assert run("rm", "aaaa").stderr == (
        "Deleted: Q. `specchat chats restore aaaa` brings it back within 30 days. "
        "It is open in a window, and comes back if it goes on there.\n"
    )
    assert run("restore", "aaaa").exit_code == 0
    window.leave()
    assert run("rm", "--now", "-y", "aaaa").exit_code == 0


def test_a_window_that_was_killed_has_no_chat_open_and_leaves_no_file() -> None:
    program = (
        "import sys, time; from pathlib import Path; from specchat.store.open_chats import OpenChat\n"
        "window = OpenChat(Path(sys.argv[1])); window.take('aaaa'); print('open', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(paths.chats_file())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as window:
        try:
            assert window.stdout and window.stdout.readline() == "open\n"
            assert is_open(paths.chats_file(), "aaaa") and not is_open(paths.chats_file(), "aaa")
        finally:
            window.kill()
    assert not is_open(paths.chats_file(), "aaaa")
    assert list((paths.data_dir() / "open").iterdir()) == []


def test_one_wrong_id_deletes_nothing() -> None:
    keep("aaaa", "Q", "A", 1.0)
    assert run("rm", "aaaa", "nope").exit_code == 1
    assert "aaaa" in run("list").stdout


def test_deleting_for_good_asks_first_and_then_leaves_nothing() -> None:
    keep("aaaa", "confidential", "A", 1.0)
    assert str(run("rm", "--now", "aaaa").exception) == "Nothing was deleted; -y deletes without a question."
    assert json.loads(run("rm", "--now", "-y", "--json", "aaaa").stdout) == {"deleted": ["aaaa"], "for_good": True}
    assert run("list", "--deleted").stdout == ""
    assert not any(b"confidential" in file.read_bytes() for file in paths.data_dir().iterdir())


def test_the_file_of_a_newer_version_is_one_sentence() -> None:
    keep("aaaa", "Q", "A", 1.0)
    with Store(paths.chats_file()) as store:
        store.connection.execute("PRAGMA user_version = 99")
    assert "was made by a newer specchat" in str(run("list").exception)
    assert os.path.exists(paths.chats_file())  # noqa: PTH110
