"""Writes a chat to disk while it goes on, in a thread of its own: the screen never waits for the disk.

Text that streams is written about once a second, everything else at once. What can't be written is kept in memory and
tried again, so a full disk costs nothing once there is room.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from specchat.chat import Answer, Turn
from specchat.store.chats import UNDO_S, Header, Store
from specchat.store.database import StoreError

TEXT_S: Final = 1.0
"""Streamed text waits this long for more, so that a second of it is one write."""
RETRY_S: Final = 5.0
_CLOSE_S: Final = 5.0

Change = Callable[[Store], None]


class Recorder:
    """Every method returns at once."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        """`say` is given a sentence when saving begins to fail, and when it works again; called from the thread."""
        self._path = path
        self._say = say
        self._more = threading.Condition()
        self._changes: list[Change | _Text] = []
        self._urgent = False
        self._closing = False
        self._store: Store | None = None
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def prompt(self, header: Header, turn: Turn) -> None:
        """A prompt was sent, or its answer begins."""
        now_s = time.time()
        self.change(lambda store: store.keep_prompt(header, turn, now_s))

    def text(self, turn: int, text: str) -> None:
        """The answer goes on."""
        with self._more:
            self._changes.append(_Text(turn, text))
            self._more.notify()

    def answer(self, turn: int, answer: Answer) -> None:
        """The answer has ended."""
        self.change(lambda store: store.keep_answer(turn, answer))

    def change(self, change: Change) -> None:
        """Runs `change` inside a transaction, after all that came before it."""
        with self._more:
            self._changes.append(change)
            self._urgent = True
            self._more.notify()

    def close(self) -> None:
        """Writes what is left, if that can be done within some seconds. The one method that takes its time."""
        with self._more:
            self._closing = True
            self._more.notify()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        self.change(lambda store: store.purge(time.time() - UNDO_S))
        try:
            while not self._closing or self._changes:
                changes = self._taken()
                if not self._written(changes):
                    with self._more:
                        self._changes[:0] = changes
                        if self._closing:
                            return
                        self._more.wait_for(lambda: self._closing, RETRY_S)
        finally:
            if self._store is not None:
                self._store.close()

    def _taken(self) -> list["Change | _Text"]:
        """Everything there is to write, once there is something and it is time."""
        with self._more:
            self._more.wait_for(lambda: self._changes or self._closing)
            self._more.wait_for(lambda: self._urgent or self._closing, TEXT_S)
            changes, self._changes, self._urgent = self._changes, [], False
        return changes

    def _written(self, changes: list["Change | _Text"]) -> bool:
        """Writes all of it, or nothing."""
        try:
            if self._store is None:
                self._store = Store(self._path)
            with self._store.writing():
                for change in _joined(changes):
                    if isinstance(change, _Text):
                        self._store.keep_text(change.turn, change.text)
                    else:
                        change(self._store)
        except StoreError as error:
            self._fail(str(error))
            return False
        except Exception as error:  # a thread that dies of what nobody foresaw would lose the rest in silence
            self._fail(f"{self._path} can't be written ({type(error).__name__}: {error}).")
            return False
        if self._failing:
            self._failing = False
            self._say("This chat is saved again, with all that was not.")
        return True

    def _fail(self, sentence: str) -> None:
        if not self._failing:
            self._failing = True
            self._say(f"This chat is not being saved: {sentence} It goes on meanwhile.")


class _Text:
    __slots__ = ("text", "turn")

    def __init__(self, turn: int, text: str) -> None:
        self.turn = turn
        self.text = text


def _joined(changes: list[Change | _Text]) -> list[Change | _Text]:
    """Neighbouring texts of one answer made one."""
    joined: list[Change | _Text] = []
    parts: list[str] = []
    for index, change in enumerate(changes):
        if not isinstance(change, _Text):
            joined.append(change)
            continue
        parts.append(change.text)
        following = changes[index + 1] if index + 1 < len(changes) else None
        if not isinstance(following, _Text) or following.turn != change.turn:
            joined.append(_Text(change.turn, "".join(parts)))
            parts.clear()
    return joined
