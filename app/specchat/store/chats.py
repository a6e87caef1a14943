"""Reading and writing chats. Whatever is written may be written again: it makes no difference."""

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specchat.branches import assembled
from specchat.chat import Answer, Conversation, Settings, Turn
from specchat.sources import Run
from specchat.store import database, search
from specchat.store.database import StoreError
from specchat.store.rows import LISTED, NEWEST_FIRST, settled, storable, turn_of
from specchat.store.values import (
    runs_text,
    settings_of,
    settings_text,
    stats_text,
    token_bytes,
)
from specengine.stats import Stats

UNDO_S: Final = 30 * 24 * 3600.0
"""How long a deleted chat can be brought back, in seconds."""


def new_chat_id() -> str:
    """Ten letters and digits that are easy to type and tell apart."""
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(10))


@dataclass(frozen=True, slots=True)
class Header:
    """What belongs to a chat as a whole, as its window knows it."""

    id: str
    title: str
    """Used until the user names the chat."""
    created_s: float
    system: str = ""
    settings: Settings | None = None
    model: str = ""
    """The name of the model that is to answer next, or its path."""
    draft: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A chat as a line in a list."""

    id: str
    title: str
    created_s: float
    updated_s: float
    deleted_s: float | None
    model: str
    turns: int
    """In the branch that is shown."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A chat as it was left."""

    listed: Listed
    conversation: Conversation
    unanswered: tuple[Turn, ...] = ()
    """Prompts at its end that no answer was begun for."""
    settings: Settings | None = None
    model: str = ""
    draft: str = ""


class Store:
    """An open file. One thread at a time may use it; every method that changes something goes inside `writing`."""

    def __init__(self, path: Path) -> None:
        """Opens the file, and makes it if there is none.

        Raises:
            StoreError: it can't be used.
        """
        self.path = path
        self.connection = database.opened(path)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All of what is changed inside, or nothing.

        Raises:
            StoreError: it can't be written.
        """
        with database.transaction(self.connection, self.path):
            yield

    # What a window writes while a chat goes on.

    def keep_chat(self, header: Header, now_s: float) -> None:
        """Writes the chat; one that was deleted in another window comes back, since it is used here."""
        self._run(
            """
            INSERT INTO chat (id, title, created, updated, system, settings, model, draft)
            VALUES (:id, :title, :created, :now, :system, :settings, :model, :draft)
            ON CONFLICT (id) DO UPDATE SET
                title = CASE WHEN named THEN title ELSE excluded.title END, updated = excluded.updated, deleted = NULL,
                system = excluded.system, settings = excluded.settings, model = excluded.model, draft = excluded.draft
            """,
            id=header.id,
            title=header.title,
            created=header.created_s,
            now=now_s,
            system=header.system,
            settings=settings_text(header.settings),
            model=header.model,
            draft=header.draft,
        )

    def keep_prompt(self, header: Header, turn: Turn, now_s: float, others: Sequence[Turn] = ()) -> bool:
        """Writes what was asked, and makes its branch the one that is shown. Written again when its answer begins, it
        takes its last place; then `turn.answer` says which model answers and how.

        Args:
            others: the chat's other turns, empty for a new chat. Where it was deleted for good, they are written again.

        Returns:
            Whether the chat had been deleted.
        """
        row = self._row("SELECT deleted FROM chat WHERE id = :chat", chat=header.id)
        self.keep_chat(header, now_s)
        if row is None:
            for other in others:
                self._keep_turn(header.id, other)
                if other.answer:
                    self.keep_answer(other.id, other.answer)
        self._keep_turn(header.id, turn)
        self.show(header.id, turn.id)
        return bool(others) if row is None else row["deleted"] is not None

    def _keep_turn(self, chat: str, turn: Turn) -> None:
        self._run(
            """
            INSERT INTO turn (id, chat, parent, prompt, shown, asked, model, draft, settings)
            VALUES (:id, :chat, :parent, :prompt, :shown, :asked, :model, :draft, :settings)
            ON CONFLICT (id) DO UPDATE SET
                parent = excluded.parent, model = excluded.model, draft = excluded.draft, settings = excluded.settings
            """,
            id=turn.id,
            chat=chat,
            parent=turn.parent,
            prompt=turn.prompt,
            shown=None if turn.shown == turn.prompt else turn.shown,
            asked=turn.asked_s,
            model=turn.answer.model if turn.answer else "",
            draft=turn.answer.draft if turn.answer else "",
            settings=settings_text(turn.answer.settings if turn.answer else None),
        )

    def show(self, chat: str, leaf: int | None) -> None:
        """Remembers which branch is shown, by its last turn."""
        self._run("UPDATE chat SET leaf = :leaf WHERE id = :chat", chat=chat, leaf=leaf)

    def keep_text(self, turn: int, text: str, runs: tuple[Run, ...] = (), stats: Stats | None = None) -> None:
        """Adds to an answer that is being written: text, who wrote it, and the counters of the answer so far."""
        self._run(
            """
            INSERT INTO piece (turn, number, text, runs)
            SELECT :turn, (SELECT COALESCE(MAX(number), -1) + 1 FROM piece WHERE turn = :turn), :text, :runs
            WHERE EXISTS (SELECT 1 FROM turn WHERE id = :turn)
            """,
            turn=turn,
            text=text,
            runs=runs_text(runs),
        )
        if stats is not None:
            self._run("UPDATE turn SET stats = :stats WHERE id = :turn", turn=turn, stats=stats_text(stats))

    def keep_answer(self, turn: int, answer: Answer) -> None:
        """Writes an answer that has ended; its pieces go."""
        self._forget_words(turn)
        self._run(
            """
            UPDATE turn SET answer = :text, ending = :ending, ended = :ended, tokens = :tokens, model = :model,
                draft = :draft, settings = :settings, stats = :stats, runs = :runs, indexed = 0 WHERE id = :turn
            """,
            turn=turn,
            text=answer.text,
            ending=answer.ending,
            ended=answer.ended_s,
            tokens=token_bytes(answer.tokens),
            model=answer.model,
            draft=answer.draft,
            settings=settings_text(answer.settings),
            stats=stats_text(answer.stats),
            runs=runs_text(answer.runs),
        )
        self._run("DELETE FROM piece WHERE turn = :turn", turn=turn)
        self._run(
            "UPDATE chat SET updated = MAX(updated, :now) WHERE id = (SELECT chat FROM turn WHERE id = :turn)",
            turn=turn,
            now=answer.ended_s,
        )

    def reopen(self, turn: int, answer: Answer) -> None:
        """An answer goes on from what there is of it: until it ends again, it counts as broken off."""
        self.keep_answer(turn, answer)
        self._run("UPDATE turn SET ending = NULL, ended = NULL WHERE id = :turn", turn=turn)

    def drop_turn(self, turn: int) -> None:
        """Forgets a turn without an answer; turns below it move up."""
        row = self._row("SELECT chat, parent FROM turn WHERE id = :turn", turn=turn)
        if row is None:
            return
        self._forget_words(turn)
        self._run("UPDATE turn SET parent = :parent WHERE parent = :turn", parent=row["parent"], turn=turn)
        self._run("UPDATE chat SET leaf = :parent WHERE leaf = :turn", parent=row["parent"], turn=turn)
        self._run("DELETE FROM turn WHERE id = :turn", turn=turn)
        self._run(
            "DELETE FROM chat WHERE id = :chat AND NOT EXISTS (SELECT 1 FROM turn WHERE chat = :chat)",
            chat=row["chat"],
        )

    # What the user does to a chat as a whole.

    def rename(self, chat: str, title: str) -> None:
        self._run("UPDATE chat SET title = :title, named = 1 WHERE id = :chat", chat=chat, title=title)

    def delete(self, chat: str, now_s: float) -> None:
        """Hides the chat; `restore` brings it back until it is purged."""
        self._run("UPDATE chat SET deleted = :now WHERE id = :chat", chat=chat, now=now_s)

    def restore(self, chat: str) -> None:
        self._run("UPDATE chat SET deleted = NULL WHERE id = :chat", chat=chat)

    def purge(self, before_s: float) -> None:
        """Removes for good what was deleted before then."""
        gone = "SELECT id FROM chat WHERE deleted < :before"
        for row in self.rows(f"SELECT id FROM turn WHERE indexed AND chat IN ({gone})", before=before_s):
            self._forget_words(row["id"])
        self._run(f"DELETE FROM chat WHERE id IN ({gone})", before=before_s)

    # Reading.

    def listed(self, deleted: bool = False) -> list[Listed]:
        """The chats, the one used last first; or those that were deleted and can be brought back.

        Raises:
            StoreError: they can't be read.
        """
        which = "NOT NULL" if deleted else "NULL"
        return [_listed(row) for row in self.rows(f"{LISTED} WHERE deleted IS {which} {NEWEST_FIRST}")]

    def last(self) -> str | None:
        """The chat that was used last."""
        row = self._row(f"SELECT id FROM chat WHERE deleted IS NULL {NEWEST_FIRST} LIMIT 1")
        return None if row is None else str(row["id"])

    def find(self, beginning: str, deleted: bool = False) -> str:
        """The id that begins so.

        Raises:
            StoreError: none does, or more than one.
        """
        which = "NOT NULL" if deleted else "NULL"
        found = [
            str(row["id"])
            for row in self.rows(f"SELECT id FROM chat WHERE deleted IS {which}")
            if row["id"].startswith(beginning)
        ]
        if beginning in found:
            return beginning
        if len(found) != 1 or not beginning:
            what = f"More than one chat's ID begins with {beginning!r}" if found else f"There is no chat {beginning!r}"
            shows = "specchat chats list --deleted" if deleted else "specchat chats list"
            raise StoreError(f"{what}; `{shows}` shows them.")
        return found[0]

    def kept(self, chat: str) -> Kept:
        """A chat as it was left, by its whole id.

        Raises:
            StoreError: it can't be read, or is gone.
        """
        row = self._row(f"SELECT * FROM ({LISTED}) WHERE id = :chat", chat=chat)
        if row is None:
            raise StoreError(f"There is no chat {chat!r} any more; `specchat chats list` shows those there are.")
        pieces: dict[int, list[sqlite3.Row]] = {}
        of_chat = "SELECT piece.* FROM piece JOIN turn ON turn.id = turn WHERE chat = ?1 ORDER BY turn, number"
        for piece in self.rows(of_chat, chat):
            pieces.setdefault(piece["turn"], []).append(piece)
        turns = [
            turn_of(turn, pieces.get(turn["id"], ())) for turn in self.rows("SELECT * FROM turn WHERE chat = ?1", chat)
        ]
        conversation, unanswered = settled(assembled(row["system"], turns, row["leaf"]))
        return Kept(
            _listed(row), conversation, unanswered, settings_of(row["settings"]), row["next_model"], row["draft"]
        )

    def rows(self, sql: str, *values: object, **named: object) -> list[sqlite3.Row]:
        """All rows of a query.

        Raises:
            StoreError: they can't be read.
        """
        with database.explained(self.path):
            cursor = self.connection.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(sql, values or named).fetchall()

    def _row(self, sql: str, **values: object) -> sqlite3.Row | None:
        return next(iter(self.rows(sql, **values)), None)

    def _run(self, sql: str, **values: object) -> None:
        assert self.connection.in_transaction, "changes go inside `writing`"
        self.connection.execute(sql, {name: storable(value) for name, value in values.items()})

    def _forget_words(self, turn: int) -> None:
        """Takes the turn out of the search index; afterwards it counts as not indexed."""
        row = self._row("SELECT indexed FROM turn WHERE id = :turn", turn=turn)
        if row is not None and row["indexed"] and search.available(self.connection):
            self._run("DELETE FROM search WHERE rowid = :turn", turn=turn)


def _listed(row: sqlite3.Row) -> Listed:
    return Listed(
        row["id"], row["title"], row["created"], row["updated"], row["deleted"], row["last_model"], row["turns"]
    )
