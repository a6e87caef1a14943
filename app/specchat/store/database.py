"""The file itself: how it is opened, and what its failures mean to the user."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from specchat import paths
from specchat.store import migrations
from specengine.errors import EngineError

BUSY_S: Final = 15.0
"""How long one window waits for another one's write. A write takes milliseconds; a machine under load, longer."""


class StoreError(EngineError):
    """Chats can't be read or written; the text is one sentence that says why and what to do."""


def opened(path: Path) -> sqlite3.Connection:
    """Opens the file, makes it if there is none, and brings it up to date.

    It may be used by one thread at a time. Nothing in it changes outside of `transaction`.

    Raises:
        StoreError: it can't be opened, is damaged, or was made by a newer specchat.
    """
    with explained(path):
        paths.ensure(path.parent)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        with explained(path):
            version = migrations.version(connection)
            if version > migrations.NEWEST:
                raise StoreError(
                    f"{path} was made by a newer specchat (version {version} of the file, this one knows "
                    f"{migrations.NEWEST}); update specchat to use these chats."
                )
            _prepare(connection)
            if version < migrations.NEWEST:
                with transaction(connection, path):
                    migrations.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All of what is written inside, or nothing. It holds the lock from the start, so it never has to give up halfway.

    Raises:
        StoreError: it can't be written.
    """
    with explained(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # some failures roll back by themselves
                connection.execute("ROLLBACK")
            raise


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns failures into one sentence.

    Raises:
        StoreError: for each sqlite3.Error and OSError.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(_sentence(error, path)) from error
    except OSError as error:
        raise StoreError(f"{path} can't be used: {error.strerror or error}.") from error


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    end = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # SQLite does not wait for its turn here, as it does everywhere else.
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
    # With WAL, a crash of this process loses nothing even so; a power cut may lose the last seconds.
    connection.execute("PRAGMA synchronous = NORMAL")


def _sentence(error: sqlite3.Error, path: Path) -> str:
    said = str(error)
    if "not a database" in said or "malformed" in said:
        return f"{path} is damaged; move it away, and a new one is begun."
    if "full" in said:
        return f"The disk that holds {path} is full; free some space."
    if "readonly" in said or "unable to open" in said:
        return f"{path} can't be written to; check who owns it and its folder, or choose another place (SPECCHAT_HOME)."
    if "locked" in said or "busy" in said:
        return f"{path} is held by another program; end it, or wait until it is done."
    return f"{path} can't be used: {said}."
