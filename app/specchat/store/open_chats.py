"""Which chats are open in a window now: a file for each, locked as long as the window lives, so that one that was
killed leaves no chat open.
"""

import contextlib
import secrets
from pathlib import Path

from filelock import FileLock, Timeout

from specchat import paths


class OpenChat:
    """What one window has open. Where no file can be locked, nobody is told."""

    def __init__(self, chats_file: Path) -> None:
        self._folder = _folder(chats_file)
        self._chat = ""
        self._lock: FileLock | None = None

    def take(self, chat: str) -> None:
        """The window goes on with this chat, and with no other."""
        if chat == self._chat:
            return
        self.leave()
        with contextlib.suppress(OSError, Timeout):
            paths.ensure(self._folder)
            lock = FileLock(self._folder / f"{chat}.{secrets.token_hex(4)}", thread_local=False)
            lock.acquire(timeout=0)
            self._chat, self._lock = chat, lock

    def leave(self) -> None:
        """The chat is open here no longer."""
        if self._lock is not None:
            _drop(self._lock)
        self._chat, self._lock = "", None


def is_open(chats_file: Path, chat: str) -> bool:
    """Whether any window has the chat open."""
    return any(_held(path) for path in _folder(chats_file).glob(f"{chat}.*"))


def _held(path: Path) -> bool:
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    _drop(lock)  # its window was killed
    return False


def _drop(lock: FileLock) -> None:
    file = Path(lock.lock_file)
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
    lock.release()
    with contextlib.suppress(OSError):  # some systems keep what is open
        file.unlink(missing_ok=True)


def _folder(chats_file: Path) -> Path:
    return chats_file.with_name("open")
