"""Earlier prompts, in memory and on disk."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.tui import history_file
from specchat.tui.attachments import Attachment
from specchat.tui.chips import file_label, pasted_label
from specchat.tui.history import Entry, History
from specchat.tui.history_file import HistoryFile
from specengine.errors import EngineError

PASTED = pasted_label(1, "one\n" * 9)
FILE = Attachment(Path("/code/a.py"), "a.py", 3, 17)


def entry(text: str) -> Entry:
    return Entry(text, {})


def test_prompts_come_back_with_their_chips_after_a_start(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.jsonl"
    kept = [
        Entry("plain", {}),
        Entry(f"{PASTED} and {file_label(FILE)}", {PASTED: "one\n" * 9, file_label(FILE): FILE}),
    ]
    history = History(HistoryFile(path))
    for one in kept:
        history.add(one)
    assert History(HistoryFile(path)).entries == kept
    assert json.loads(path.read_text().splitlines()[0]) == {"text": "plain"}


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.jsonl"
    HistoryFile(path).append(entry("secret"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_same_prompt_twice_in_a_row_is_kept_once(tmp_path: Path) -> None:
    history = History(HistoryFile(tmp_path / "h"))
    for text in ("a", "a", "b", "a"):
        history.add(entry(text))
    assert [one.text for one in HistoryFile(tmp_path / "h").read()] == ["a", "b", "a"]


def test_the_file_stays_bounded_and_keeps_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "MOST_BYTES", 2000)
    path = tmp_path / "h"
    for number in range(300):
        HistoryFile(path).append(entry(f"prompt {number}"))
        assert path.stat().st_size < 2100
    texts = [one.text for one in HistoryFile(path).read()]
    assert len(texts) > 20 and texts == [f"prompt {number}" for number in range(300 - len(texts), 300)]


def test_a_prompt_with_a_huge_paste_is_kept_for_this_start_only(tmp_path: Path) -> None:
    history = History(HistoryFile(tmp_path / "h"))
    history.add(Entry(PASTED, {PASTED: "x" * 600_000}))
    assert history.entries and HistoryFile(tmp_path / "h").read() == []


def test_lines_that_are_no_prompts_are_passed_over_and_a_broken_one_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_bytes(b'{"text":"one"}\nnonsense\n\xff\xfe\n{"text":5}\n{"text":"broken of')
    HistoryFile(path).append(entry("two"))
    assert [one.text for one in HistoryFile(path).read()] == ["one", "two"]


def test_two_windows_lose_no_prompt_of_each_other(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from specchat.tui.history_file import Entry, HistoryFile\n"
        "for n in range(100): HistoryFile(Path(sys.argv[1])).append(Entry(f'{sys.argv[2]} {n}', {}))\n"
    )
    path = tmp_path / "h"
    windows = [subprocess.Popen([sys.executable, "-c", program, str(path), name]) for name in "ab"]
    assert [window.wait(60) for window in windows] == [0, 0]
    texts = [one.text for one in HistoryFile(path).read()]
    for name in "ab":
        assert [text for text in texts if text.startswith(name)] == [f"{name} {number}" for number in range(100)]


@pytest.mark.skipif(os.name == "nt", reason="POSIX paths")
def test_a_file_that_can_not_be_written_is_one_sentence_and_the_prompt_is_there_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    history = History(HistoryFile(tmp_path / "h"))
    with pytest.raises(EngineError, match=r"The prompt is not kept for later: .* can't be written"):
        history.add(entry("a"))
    assert history.entries == [entry("a")]


def test_a_search_finds_all_words_in_any_order_newest_first_each_text_once() -> None:
    history = History()
    for text in ("Rename width", "explain", "rename WIDTH and height", "Rename width"):
        history.add(entry(text))
    assert [one.text for one in history.search("width rename")] == ["Rename width", "rename WIDTH and height"]
    assert history.search("")[0].text == "Rename width"
    history.add(entry("/history rename"))
    assert history.search("nothing") == history.search("/history") == []


def test_going_through_earlier_prompts_keeps_what_was_being_typed() -> None:
    history = History()
    history.add(entry("a"))
    history.add(entry("b"))
    assert [history.earlier(entry("draft")), history.earlier(entry("b")), history.earlier(entry("a"))] == [
        entry("b"),
        entry("a"),
        None,
    ]
    assert [history.later(), history.later(), history.later()] == [entry("b"), entry("draft"), None]
