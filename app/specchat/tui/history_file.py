"""Prompts kept between starts: one JSON object a line, newest last, readable by their owner alone.

Several windows may write at once: each line goes in whole, under a lock, and no window writes what it read before.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from specchat import paths
from specchat.tui.attachments import Attachment
from specchat.tui.chips import Chips
from specengine.errors import EngineError

MOST_ENTRIES = 1000
MOST_BYTES = 4_000_000
"""A file that outgrew this loses its older half."""
LARGEST = 500_000
"""Bytes of a line; a prompt with larger pastes is not kept."""
_PATIENCE_S = 1.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A prompt with its chips."""

    text: str
    chips: Chips
    """What the chips in `text` stand for."""


class HistoryFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Entry]:
        """The kept prompts, oldest first; lines that are no prompts are passed over."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError:
            return []
        return [entry for line in lines[-MOST_ENTRIES:] if (entry := _entry(line))]

    def append(self, entry: Entry) -> None:
        """Keeps a prompt.

        Raises:
            EngineError: it can't be written; one sentence.
        """
        line = _line(entry)
        if len(line) > LARGEST:
            return
        try:
            paths.ensure(self.path.parent)
            with FileLock(f"{self.path}.lock", timeout=_PATIENCE_S, mode=0o600):
                self._write(line)
        except Timeout:
            raise EngineError(f"The prompt is not kept for later: another window holds {self.path}.") from None
        except OSError as error:
            why = error.strerror or error
            raise EngineError(f"The prompt is not kept for later: {self.path} can't be written ({why}).") from None

    def _write(self, line: bytes) -> None:
        with os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a write that broke off
                    line = b"\n" + line
            file.write(line)
        if end + len(line) > MOST_BYTES:
            self._shorten()

    def _shorten(self) -> None:
        lines = self.path.read_bytes().splitlines(keepends=True)[-MOST_ENTRIES:]
        size = sum(map(len, lines))
        while size > MOST_BYTES // 2:
            size -= len(lines.pop(0))
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.writelines(lines)
        Path(name).replace(self.path)


class _File(msgspec.Struct, frozen=True):
    """An attachment on disk."""

    path: str
    name: str
    lines: int
    modified_ns: int


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    chips: dict[str, str | _File] = {}


def _line(entry: Entry) -> bytes:
    chips = {label: _kept(stands_for) for label, stands_for in entry.chips.items()}
    return msgspec.json.encode(_Line(entry.text, chips)) + b"\n"


def _kept(stands_for: str | Attachment) -> str | _File:
    if isinstance(stands_for, str):
        return stands_for
    return _File(str(stands_for.path), stands_for.name, stands_for.lines, stands_for.modified_ns)


def _entry(line: bytes) -> Entry | None:
    try:
        kept = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    chips = {
        label: Attachment(Path(on_disk.path), on_disk.name, on_disk.lines, on_disk.modified_ns)
        if isinstance(on_disk, _File)
        else on_disk
        for label, on_disk in kept.chips.items()
    }
    return Entry(kept.text, chips)
