"""Writes a chat to disk while it goes on, in a thread of its own: the screen never waits for the disk.

Text that streams is written about once a second, everything else at once. What can't be written is kept in memory and
tried again, so a full disk costs nothing once there is room.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specchat.chat import Answer, Turn
from specchat.sources import Run, Runs, runs_joined
from specchat.store.chats import UNDO_S, Header, Store
from specchat.store.database import StoreError
from specchat.store.open_chats import OpenChat
from specengine.protocol import Token
from specengine.stats import Stats

TEXT_S: Final = 1.0
"""Streamed text waits this long for more, so that a second of it is one write."""
RETRY_S: Final = 5.0
_CLOSE_S: Final = 5.0
_BACK: Final = "This chat was deleted in another window; since it goes on here, it is kept again, whole."

Change = Callable[[Store], None]


class Recorder:
    """Every method returns at once."""

    def __init__(
        self, path: Path, say: Callable[[str], None], say_of: Callable[[str, int], None] | None = None
    ) -> None:
        """`say` is given a sentence when saving begins to fail, when it works again, and when a deleted chat comes
        back; that one goes to `say_of`, where there is one, with the turn that brought the chat back. Both are called
        from the thread."""
        self._path = path
        self.open_chat = OpenChat(path)
        self._say = say
        self._say_of = say_of or (lambda text, _turn: say(text))
        self._more = threading.Condition()
        self._changes: list[Change | _Text] = []
        self._urgent = False
        self._closing = False
        self._store: Store | None = None
        self._failing = False
        self._back: int | None = None
        """The turn with which a chat was written that had been deleted."""
        self._writing = 0
        """The turn that text came for last."""
        self._runs = Runs()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def prompt(self, header: Header, turn: Turn, others: Sequence[Turn] = ()) -> None:
        """A prompt was sent, or its answer begins. `others` are the chat's other turns, none for a new chat; they are
        written again where the chat was deleted in another window, which is said."""
        now_s = time.time()

        def keep(store: Store) -> None:
            if store.keep_prompt(header, turn, now_s, others):
                self._back = self._back or turn.id

        self.change(keep)

    def text(self, turn: int, text: str, tokens: Sequence[Token] = (), stats: Stats | None = None) -> None:
        """The answer goes on: with these tokens, and these counters since its start."""
        with self._more:
            if turn != self._writing:
                self._writing, self._runs = turn, Runs()
            self._runs.add(tokens)
            self._changes.append(_Text(turn, text, self._runs.taken(), stats))
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
        self.open_chat.leave()

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
                        self._store.keep_text(change.turn, change.text, change.runs, change.stats)
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
        if self._back:
            back, self._back = self._back, None
            self._say_of(_BACK, back)
        return True

    def _fail(self, sentence: str) -> None:
        if not self._failing:
            self._failing = True
            self._say(f"This chat is not being saved: {sentence} It goes on meanwhile.")


@dataclass(frozen=True, slots=True)
class _Text:
    turn: int
    text: str
    runs: tuple[Run, ...]
    stats: Stats | None


def _joined(changes: list[Change | _Text]) -> list[Change | _Text]:
    """Neighbouring texts of one answer made one."""
    joined: list[Change | _Text] = []
    parts: list[_Text] = []
    for index, change in enumerate(changes):
        if not isinstance(change, _Text):
            joined.append(change)
            continue
        parts.append(change)
        following = changes[index + 1] if index + 1 < len(changes) else None
        if not isinstance(following, _Text) or following.turn != change.turn:
            text = "".join(part.text for part in parts)
            joined.append(_Text(change.turn, text, runs_joined(*(part.runs for part in parts)), change.stats))
            parts.clear()
    return joined
