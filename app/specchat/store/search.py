"""Which chats hold some words: in their title, a prompt or an answer.

An index of letter triples (SQLite's FTS5) narrows the search where this SQLite has it; each find is looked at again, so
the result is the same without it. Turns enter the index when somebody searches, never while an answer is written.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specchat.store import database

if TYPE_CHECKING:
    from specchat.store.chats import Store

_INDEXED_CHARACTERS: Final = 3
_AROUND: Final = 60


@dataclass(frozen=True, slots=True)
class Found:
    """A chat that holds the words."""

    chat: str
    snippet: str
    """Where they were found, on one line; empty where only the title holds them."""


def find(store: "Store", text: str) -> list[Found]:
    """Chats that hold all words of `text`, in one turn or in the title, in any case; the one used last first.

    Raises:
        StoreError: they can't be read.
    """
    words = text.lower().split()
    if not words:
        return []
    by_chat = {row["id"]: "" for row in store.rows(_TITLES) if _holds(row["title"], words)}
    for row in _turns(store, words):
        body = row["prompt"] if _holds(row["prompt"], words) else row["answer"] or ""
        if not by_chat.get(row["chat"]) and _holds(f"{row['prompt']}\n{row['answer'] or ''}", words):
            by_chat[row["chat"]] = _snippet(body, words)
    order = [row["id"] for row in store.rows(_TITLES)]
    return [Found(chat, by_chat[chat]) for chat in order if chat in by_chat]


def available(connection: sqlite3.Connection) -> bool:
    """Whether there is an index, and this SQLite can use it."""
    try:
        connection.execute("SELECT rowid FROM search LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _turns(store: "Store", words: list[str]) -> Iterator[sqlite3.Row]:
    sought = [word for word in words if len(word) >= _INDEXED_CHARACTERS]
    if sought and _index(store):
        wanted = " AND ".join('"' + word.replace('"', '""') + '"' for word in sought)
        yield from store.rows(f"{_TURNS} AND turn.id IN (SELECT rowid FROM search WHERE search MATCH ?1)", wanted)
        # What is being written right now is in no index yet.
        yield from store.rows(f"{_TURNS} AND NOT turn.indexed")
    else:
        yield from store.rows(_TURNS)


def _index(store: "Store") -> bool:
    """Brings the index up to date; false where there can be none."""
    connection = store.connection
    if not available(connection):
        try:
            with store.writing():
                connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS search USING fts5 (text, tokenize = 'trigram')")
        except database.StoreError:
            return False
    if store.rows(f"SELECT 1 FROM turn WHERE {_NEW} LIMIT 1"):
        with store.writing():
            connection.execute(
                f"REPLACE INTO search (rowid, text) SELECT id, prompt || char(10) || answer FROM turn WHERE {_NEW}"
            )
            connection.execute(f"UPDATE turn SET indexed = 1 WHERE {_NEW}")
    return True


_NEW: Final = "NOT indexed AND ending IS NOT NULL"
_TITLES: Final = "SELECT id, title FROM chat WHERE deleted IS NULL ORDER BY updated DESC, created DESC, id"
_TURNS: Final = """
SELECT turn.chat, prompt,
    COALESCE(answer, '') || COALESCE(
        (SELECT group_concat(text, '') FROM (SELECT text FROM piece WHERE turn = turn.id ORDER BY number)), ''
    ) AS answer
FROM turn JOIN chat ON chat.id = turn.chat WHERE chat.deleted IS NULL
"""


def _holds(text: str, words: list[str]) -> bool:
    folded = text.lower()
    return all(word in folded for word in words)


def _snippet(text: str, words: list[str]) -> str:
    places = [place for word in words if (place := text.lower().find(word)) >= 0]
    start = max(0, min(places, default=0) - _AROUND // 2)
    return " ".join(text[start : start + 2 * _AROUND].split())
