"""Chats written while they go on: killed, shared, on a full disk. Real processes and real files."""

import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specchat.chat import Turn
from specchat.store import recorder
from specchat.store.chats import Header, Store
from specchat.store.recorder import Recorder

WRITER = Path(__file__).with_name("writing_process.py")
HEADER = Header("aaaa", "A title", 1.0, model="tiny-1b")


def writer(path: Path, chat: str, turns: int, words: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WRITER), str(path), chat, str(turns), str(words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Waits until `condition` holds; the limit only ends a test that fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("said", [0, 40, 400])
def test_after_a_kill_at_any_moment_the_chat_opens_with_what_was_there(tmp_path: Path, said: int) -> None:
    """33. A crash of the app loses no turn, and of the answer at most what came in the last moment."""
    path = tmp_path / "data" / "chats.db"
    process = writer(path, "aaaa", 1, 100_000)
    assert process.stdout
    for line in process.stdout:
        if line == (f"said {said}\n" if said else "asked 0\n"):
            break
    if said:
        until(lambda: len(text_of(path).split()) > said)  # on the disk while the answer goes on
    else:
        until(path.exists)
        until(lambda: turns(path))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Store(path) as store:
        kept = store.kept("aaaa")
        assert store.last() == "aaaa"
        if not said and kept.unanswered:
            assert [turn.prompt for turn in kept.unanswered] == ["prompt 0"]
            return
        (turn,) = kept.conversation.turns
        assert turn.answer and turn.answer.ending == "failed"
        assert (turn.prompt, turn.answer.model) == ("prompt 0", "tiny-1b")
        written = turn.answer.text.split()
        assert len(written) > said
        assert written == [f"word{word}" for word in range(len(written))]
        assert store.rows("PRAGMA integrity_check")[0][0] == "ok"


def turns(path: Path) -> int:
    try:
        with Store(path) as store:
            return int(store.rows("SELECT count(*) AS n FROM turn")[0]["n"])
    except Exception:
        return 0


def test_two_windows_write_two_chats_at_once(tmp_path: Path) -> None:
    """37. Nobody meets a locked database."""
    path = tmp_path / "data" / "chats.db"
    processes = [writer(path, chat, 25, 20) for chat in ("aaaa", "bbbb")]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    for output in outputs:
        assert output.endswith("done\n") and "SAID" not in output
    with Store(path) as store:
        for chat in ("aaaa", "bbbb"):
            kept = store.kept(chat).conversation
            assert [turn.prompt for turn in kept.turns] == [f"prompt {number}" for number in range(25)]
            assert all(turn.answer and turn.answer.ending == "end" for turn in kept.turns)
        assert store.rows("SELECT * FROM piece") == []


def test_two_windows_in_the_same_chat_lose_no_turn(tmp_path: Path) -> None:
    path = tmp_path / "data" / "chats.db"
    processes = [writer(path, "aaaa", 25, 20) for _ in range(2)]
    for process in processes:
        output = process.communicate(timeout=120)[0]
        assert output.endswith("done\n") and "SAID" not in output
    with Store(path) as store:
        kept = store.kept("aaaa").conversation
        assert len(kept.turns) == 25 and len(kept.others) == 25
        for branch in (kept.turns, kept.others):
            assert [turn.prompt for turn in branch] == [f"prompt {number}" for number in range(25)]


def test_text_is_on_the_disk_within_about_a_second_without_more_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TEXT_S", 0.01)
    said: list[str] = []
    recording = Recorder(tmp_path / "chats.db", said.append)
    turn = Turn("one", "one")
    recording.prompt(HEADER, turn)
    recording.text(turn.id, "slow")
    until(lambda: text_of(tmp_path / "chats.db") == "slow")
    recording.close()
    assert said == []


def text_of(path: Path) -> str:
    try:
        with Store(path) as store:
            (turn,) = store.kept("aaaa").conversation.turns
            return turn.answer.text if turn.answer else ""
    except Exception:
        return ""


def test_a_second_of_text_is_one_write(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "chats.db", print)
    turn = Turn("one", "one")
    recording.prompt(HEADER, turn)
    for number in range(1000):
        recording.text(turn.id, f"{number} ")
    until(lambda: text_of(tmp_path / "chats.db"))
    with Store(tmp_path / "chats.db") as store:
        pieces = len(store.rows("SELECT * FROM piece"))
    recording.close()
    assert 1 <= pieces <= 3
    assert text_of(tmp_path / "chats.db") == "".join(f"{number} " for number in range(1000))


def test_closing_writes_what_is_left(tmp_path: Path) -> None:
    recording = Recorder(tmp_path / "chats.db", print)
    turn = Turn("one", "one")
    recording.prompt(HEADER, turn)
    recording.text(turn.id, "last words")
    recording.close()
    assert text_of(tmp_path / "chats.db") == "last words"


def test_a_place_that_can_not_be_written_is_said_once_and_all_is_saved_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "RETRY_S", 0.01)
    monkeypatch.setattr(recorder, "TEXT_S", 0.01)
    (tmp_path / "data").write_text("no folder")
    said: list[str] = []
    recording = Recorder(tmp_path / "data" / "chats.db", said.append)
    turn = Turn("one", "one")
    recording.prompt(HEADER, turn)
    until(lambda: said)
    recording.text(turn.id, "meanwhile ")
    time.sleep(0.1)
    (tmp_path / "data").unlink()
    recording.text(turn.id, "later")
    until(lambda: len(said) == 2)
    recording.close()
    assert said[0].startswith("This chat is not being saved: ") and said[0].endswith("It goes on meanwhile.")
    assert said[1] == "This chat is saved again, with all that was not."
    assert text_of(tmp_path / "data" / "chats.db") == "meanwhile later"


def test_what_nobody_foresaw_is_said_and_the_thread_lives_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "RETRY_S", 0.01)
    said: list[str] = []
    times: list[int] = []
    recording = Recorder(tmp_path / "chats.db", said.append)

    def fail_once(store: Store) -> None:
        times.append(1)
        if len(times) == 1:
            raise ZeroDivisionError("in a test")

    recording.change(fail_once)
    until(lambda: len(said) == 2)
    recording.close()
    assert "ZeroDivisionError" in said[0] and len(times) == 2


_FULL_DISK = """
import resource, sys, time
from pathlib import Path
from specchat.chat import Turn
from specchat.store import recorder
from specchat.store.chats import Header
recorder.RETRY_S = recorder.TEXT_S = 0.02
said = []
path = Path(sys.argv[1])
recording = recorder.Recorder(path, said.append)
turn = Turn("one", "one")
recording.prompt(Header("aaaa", "A title", 1.0), turn)
while not path.with_name("chats.db-wal").exists():
    time.sleep(0.01)
recording.text(turn.id, "fits. ")
time.sleep(0.2)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("chats.db-wal").stat().st_size, hard))
recording.text(turn.id, "x" * 300_000)
while not said:
    time.sleep(0.01)
recording.text(turn.id, " and more")
time.sleep(0.1)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
while len(said) < 2:
    time.sleep(0.01)
recording.close()
print(*said, sep="\\n")
"""


def test_on_a_full_disk_the_chat_goes_on_and_is_saved_once_there_is_room(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FULL_DISK, str(tmp_path / "chats.db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    first, second = ended.stdout.splitlines()
    assert first.startswith("This chat is not being saved: ") and "It goes on meanwhile." in first
    assert second == "This chat is saved again, with all that was not."
    assert text_of(tmp_path / "chats.db") == "fits. " + "x" * 300_000 + " and more"


_READ_ONLY = """
import os, sys
from pathlib import Path
from specchat.store.chats import Store
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    Store(Path(sys.argv[1]))
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_can_not_be_written_is_one_sentence(exists: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "chats.db"
        if exists:
            Store(file).close()
            file.chmod(0o444)
        Path(name).chmod(0o555)
        command = [sys.executable, "-c", _READ_ONLY, str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        Path(name).chmod(0o755)
    said = "can't be written to; check who owns it" if exists else "can't be used: Permission denied."
    assert f"{file} {said}" in ended.stdout


def test_another_program_that_holds_the_file_for_long_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specchat.store import database

    monkeypatch.setattr(database, "BUSY_S", 0.05)
    with Store(tmp_path / "chats.db") as store:
        other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(database.StoreError, match="held by another program"), store.writing():
            pass
        other.close()
