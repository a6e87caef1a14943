"""A file as bytes and as text at once, so that what is inserted leaves every other byte as it was."""

import codecs
import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from specchat.complete.place import STDIN, Gap, line_end_style, newlines
from specengine.errors import EngineError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks, and the encodings that they announce."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    name: str
    data: bytes
    text: str
    """Bytes that are no text stand in it as lone surrogates, each for one byte."""
    codec: str
    bom: bytes
    path: Path | None
    """The file itself, behind symbolic links; None for piped text."""

    def readable(self, start: int, end: int | None = None) -> str:
        """A part of the text as a model reads it: newlines end its lines, and U+FFFD stands for what is no text."""
        return newlines(_LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", self.text[start:end]))

    def filled(self, gap: Gap, completion: str) -> bytes:
        """The bytes of the file with `completion` in the gap, its lines ended as the file ends them.

        Raises:
            EngineError: the completion holds characters that don't fit the file's encoding.
        """
        inserted = completion.replace("\n", line_end_style(self.text, gap.start))
        if self.codec == "utf-8" and not inserted.isascii() and _LONE_SURROGATE.search(self.text):
            raise EngineError(
                f"{self.name} is not valid UTF-8 and the completion has characters beyond ASCII: nothing was written."
            )
        return b"".join(
            (self.data[: self._offset(gap.start)], self._encoded(inserted), self.data[self._offset(gap.end) :])
        )

    def _offset(self, at: int) -> int:
        return len(self.bom) + len(self._encoded(self.text[:at]))

    def _encoded(self, text: str) -> bytes:
        return text.encode(self.codec, _errors(self.codec))


def read(file: str) -> Document:
    """A file, or what is piped in for "-".

    Raises:
        EngineError: it can't be read, or is no text.
    """
    if file == STDIN:
        return _document("The piped text", sys.stdin.buffer.read(), None)
    try:
        path = Path(file).expanduser().resolve(strict=True)
        if path.is_dir():
            raise EngineError(f"{file} is a folder; name a file.")
        return _document(file, path.read_bytes(), path)
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}; name another file.") from None


def check_writable(document: Document) -> None:
    """Sees before any work that the file could be replaced.

    Raises:
        EngineError: it can't.
    """
    path = document.path
    if path is None or not path.is_file():
        raise EngineError(f"{document.name} is no file that could be changed; leave --apply out.")
    for needed in (path, path.parent):
        if not os.access(needed, os.W_OK):
            raise EngineError(f"{document.name} can't be changed: {needed} is not writable.")


def write(document: Document, data: bytes) -> None:
    """Puts `data` in the place of the document's bytes, all at once: nobody ever sees half of it. Its permissions
    stay.

    Raises:
        EngineError: the file changed since it was read, or can't be written; it is as it was.
    """
    path = document.path
    assert path is not None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        raise EngineError(f"{document.name} can't be changed: {error.strerror or error}.") from None
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _like(new, path)
        if path.read_bytes() != document.data:
            raise EngineError(f"{document.name} changed meanwhile, so it was left alone; try again.")
        new.replace(path)
    except OSError as error:
        raise EngineError(f"{document.name} can't be changed: {error.strerror or error}.") from None
    finally:
        new.unlink(missing_ok=True)


def _like(new: Path, old: Path) -> None:
    """Gives a new file the owner, permissions and attributes of the old one, as far as this user may."""
    state = old.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(new, state.st_uid, state.st_gid)
    shutil.copystat(old, new)
    new.chmod(stat.S_IMODE(state.st_mode))
    os.utime(new)


def _document(name: str, data: bytes, path: Path | None) -> Document:
    bom, codec = next(((bom, codec) for bom, codec in _MARKS if data.startswith(bom)), (b"", "utf-8"))
    try:
        text = data[len(bom) :].decode(codec, _errors(codec))
        whole = bom + text.encode(codec, _errors(codec)) == data
    except UnicodeError:
        text, whole = "", False
    if not whole or "\0" in text:
        raise EngineError(f"{name} is not a text file; give text in UTF-8 or UTF-16.")
    return Document(name, data, text, codec, bom, path)


def _errors(codec: str) -> str:
    return "surrogateescape" if codec == "utf-8" else "surrogatepass"
