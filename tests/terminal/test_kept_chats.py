"""Chats that outlive their window, in a real terminal on a scripted engine."""

import os
import signal
import sys
from pathlib import Path

from specchat.resumed import LAST, opened
from specengine.errors import EngineError
from tmux import Tmux, needs_tmux

pytestmark = needs_tmux

_TESTS = Path(__file__).resolve().parent.parent


def window(folder: Path, chats: Path) -> Tmux:
    folder.mkdir()
    settings = {
        "PYTHONPATH": os.pathsep.join([str(_TESTS), *(path for path in sys.path if path)]),
        "REQUESTS": str(folder / "requests.jsonl"),
        "CHATS": str(chats),
    }
    return Tmux(folder, [sys.executable, str(_TESTS / "terminal" / "fake_chat.py")], settings, (100, 30))


def test_after_a_kill_in_the_middle_of_an_answer_the_chat_goes_on_from_what_was_written(tmp_path: Path) -> None:
    """33, 34. The answer so far is there, marked as broken off, and so is the message that waited behind it."""
    chats = tmp_path / "data" / "chats.db"
    first = window(tmp_path / "first", chats)
    try:
        first.until_shown("Ask anything", "tiny-1b")
        first.type("count on")
        first.enter()
        first.until(lambda: words(chats, 0), "the first words on the disk")
        first.type("and then on")
        first.enter()
        first.until_shown("queued")
        first.until(lambda: words(chats, 0) > 20, "a write")
        os.kill(first.pid, signal.SIGKILL)
        assert first.ended() == 128 + signal.SIGKILL
    finally:
        first.close()
    kept = words(chats, 0)
    second = window(tmp_path / "second", chats)
    try:
        second.until_shown("broken off", f"word{kept - 1}")
        second.until_shown("and then on")  # in the prompt again
        second.enter()
        second.until(lambda: words(chats, 1), "words of the second answer on the disk")
        second.keys("C-q")
        assert second.ended() == 0
    finally:
        second.close()
    turns = opened(chats, LAST).conversation.turns
    assert [turn.prompt for turn in turns] == ["count on", "and then on"]
    assert turns[0].answer and turns[0].answer.ending == "failed"
    assert turns[1].answer and turns[1].answer.ending == "stopped"


def words(chats: Path, turn: int) -> int:
    """Words that are on the disk of an answer."""
    try:
        turns = opened(chats, LAST).conversation.turns
    except EngineError:
        return 0  # no chat yet
    answer = turns[turn].answer if turn < len(turns) else None
    return len(answer.text.split()) if answer else 0
