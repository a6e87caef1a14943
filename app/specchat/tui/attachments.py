"""Files attached to a prompt: looked at when they are attached, read when the prompt is sent."""

from dataclasses import dataclass
from pathlib import Path

from specchat import prompt_text
from specchat.tui.pastes import normalised
from specengine.errors import EngineError

MOST_BYTES = 16_000_000
"""A file larger than this fits no context."""


@dataclass(frozen=True, slots=True)
class Attachment:
    path: Path
    name: str
    """How the prompt and its chip call it."""
    lines: int
    modified_ns: int

    @property
    def size_in_words(self) -> str:
        return f"{self.lines:,} line" if self.lines == 1 else f"{self.lines:,} lines"


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it is now."""

    file: Attachment
    text: str
    complaint: str | None
    """What could not be read of it, in one sentence."""


def read(path: Path, name: str) -> Content:
    """Reads a file. Bytes that are no UTF-8 are shown as U+FFFD; line ends and control characters as in a paste.

    Raises:
        EngineError: it is gone, no file, no text, or too large; one sentence.
    """
    try:
        if path.is_dir():
            raise EngineError(f"{name} is a folder; attach the files in it that matter.")
        if not path.is_file():
            raise EngineError(f"{name} is not there (any more); take its chip out or attach another file.")
        state = path.stat()
        if state.st_size > MOST_BYTES:
            raise EngineError(f"{name} has {state.st_size / 1e6:,.0f} MB, more than any context holds; attach a part.")
        data = path.read_bytes()
    except OSError as error:
        raise EngineError(f"{name} can't be read: {error.strerror or error}.") from None
    if b"\0" in data:
        raise EngineError(f"{name} is not a text file, so it can't be attached.")
    text, complaint = prompt_text.decoded(data, name)
    text = normalised(text)
    lines = text.count("\n") + (not text.endswith("\n")) if text else 0
    return Content(Attachment(path, name, lines, state.st_mtime_ns), text, complaint)
