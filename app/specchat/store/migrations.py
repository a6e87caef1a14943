"""What the file looks like, as the steps that lead there. A step that was released is never changed again."""

import sqlite3
from typing import Final


def version(connection: sqlite3.Connection) -> int:
    """How many steps the file has behind it."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    assert isinstance(found, int)
    return found


def migrate(connection: sqlite3.Connection) -> None:
    """Takes the steps that are still missing; inside a transaction, so that all are taken or none."""
    for number in range(version(connection), NEWEST):
        for statement in STEPS[number]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {NEWEST}")


_CHATS_AND_TURNS = (
    """
    CREATE TABLE chat (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        named INTEGER NOT NULL DEFAULT 0,  -- the user chose the title
        created REAL NOT NULL,             -- times are seconds since 1970
        updated REAL NOT NULL,
        deleted REAL,                      -- NULL: it is not
        system TEXT NOT NULL DEFAULT '',
        settings TEXT,                     -- JSON of chat.Settings
        model TEXT NOT NULL DEFAULT '',
        draft TEXT NOT NULL DEFAULT '',
        leaf INTEGER                       -- the last turn of the branch that was shown
    )
    """,
    "CREATE INDEX chat_updated ON chat (updated)",
    """
    CREATE TABLE turn (
        id INTEGER PRIMARY KEY,
        chat TEXT NOT NULL REFERENCES chat (id) ON DELETE CASCADE,
        parent INTEGER,                    -- the turn before it in its branch
        prompt TEXT NOT NULL,
        shown TEXT,                        -- NULL: the same as the prompt
        asked REAL NOT NULL,
        answer TEXT,
        ending TEXT,                       -- NULL: not ended, or broken off; more of the answer is in piece
        ended REAL,
        tokens BLOB,                       -- emitted ids, 4 bytes each, little-endian
        model TEXT NOT NULL DEFAULT '',
        draft TEXT NOT NULL DEFAULT '',
        settings TEXT,                     -- JSON of chat.Settings
        stats TEXT,                        -- JSON of specengine.stats.Stats
        runs TEXT                          -- JSON of sources.Run, from the answer's start to its end
    )
    """,
    "CREATE INDEX turn_chat ON turn (chat)",
    """
    CREATE TABLE piece (                   -- an answer that is still being written, as it comes
        turn INTEGER NOT NULL REFERENCES turn (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (turn, number)
    ) WITHOUT ROWID
    """,
)

# indexed: the turn stands in the table `search`, which is made by whoever searches first.
_SEARCH = ("ALTER TABLE turn ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0",)

_PIECES_BY_SOURCE = ("ALTER TABLE piece ADD COLUMN runs TEXT",)  # JSON of sources.Run

STEPS: Final = (_CHATS_AND_TURNS, _SEARCH, _PIECES_BY_SOURCE)
NEWEST: Final = len(STEPS)
