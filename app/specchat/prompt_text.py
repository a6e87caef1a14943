"""A prompt made of files, piped text and the user's own words, in this order."""

import re
from collections.abc import Sequence
from pathlib import Path

from specengine.errors import EngineError


def decoded(data: bytes, name: str) -> tuple[str, str | None]:
    """The text of `data`, and a sentence about what could not be read of it.

    Raises:
        EngineError: it is no text at all.
    """
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        pass
    if b"\x00" in data:
        raise EngineError(f"{name} is not a text file; give text in UTF-8.")
    text = data.decode("utf-8", "replace")
    return text, f"{name} is not valid UTF-8; the bytes that are no text were replaced by {chr(0xFFFD)}."


def attached(file: Path) -> tuple[str, str | None]:
    """A file's text in a fence below its name, and a sentence about what could not be read of it.

    Raises:
        EngineError: it can't be read, or is no text.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}; name another file.") from None
    text, complaint = decoded(data, str(file))
    return fenced(file.name, text), complaint


def fenced(name: str, text: str) -> str:
    """`text` below its name, in a fence that it can't close."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    fence = "`" * max(3, ticks)
    newline = "" if text.endswith("\n") else "\n"
    return f"{name}:\n{fence}\n{text}{newline}{fence}"


def joined(parts: Sequence[str]) -> str:
    """The parts that hold something, a blank line between them."""
    return "\n\n".join(part.rstrip("\n") for part in parts if part.strip())
