"""Text of the command line that fits a terminal: broken between words there, and whole in a pipe or a file."""

import os
import re
import sys
from collections.abc import Iterator
from typing import IO, Final

from rich.cells import cell_len

_NARROWEST: Final = 30
"""Text is never folded into less; where there is no room for that beside what stands before it, it goes below."""
_INDENT: Final = 4
_WORD: Final = re.compile(r"`[^`\s]+(?: [^`\s]+)*`\S*|\S+")
"""A word, or a command between backticks: it is to be copied, so it stays together if it can."""
_SEPARATOR: Final = re.compile(r"[/\\,;=&?_-]")


def columns(stream: IO[str]) -> int | None:
    """Width of the terminal that the stream goes to; None where it goes elsewhere and lines stay whole."""
    try:
        if not stream.isatty():
            return None
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):  # closed, or a stream without a file
        return None


def folded(text: str, width: int | None, hanging: int = 0) -> str:
    """Lines of at most `width` columns, broken between words; what is longer than a line, at a separator.

    Args:
        hanging: columns at the start of each line that stay as they are; its further rows begin below their end.
    """
    if width is None:
        return text
    return "\n".join(_folded_line(line, width, hanging) for line in text.split("\n"))


def say(text: str, hanging: int = 0) -> None:
    """A sentence on stderr, folded there; where nobody can read it, nothing happens."""
    try:
        print(folded(text, columns(sys.stderr), hanging), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # closed by whoever started this
        return


def _folded_line(line: str, width: int, hanging: int) -> str:
    if cell_len(line) <= width:
        return line
    head, rest = line[:hanging], line[hanging:]
    if head.strip() and width - hanging < _NARROWEST:
        hanging = len(line) - len(line.lstrip()) + _INDENT
        head = f"{head.rstrip()}\n{' ' * hanging}"
    return head + f"\n{' ' * hanging}".join(rows(rest, max(width - hanging, 1)))


def rows(text: str, width: int) -> Iterator[str]:
    """The rows that the words of one line fill."""
    row = ""
    for word in _words(text, width):
        if row and cell_len(row) + 1 + cell_len(word) > width:
            yield row
            row = word
        else:
            row = f"{row} {word}" if row else word
        while cell_len(row) > width:
            end = _break(row, width)
            yield row[:end]
            row = row[end:]
    yield row


def _words(text: str, width: int) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield from [word] if cell_len(word) <= width else word.split()


def _break(word: str, width: int) -> int:
    """Where a word that is too long is broken: behind the last separator that fits, else where the row ends."""
    fitting = 1
    while cell_len(word[: fitting + 1]) <= width:
        fitting += 1
    ends = [found.end() for found in _SEPARATOR.finditer(word, 0, fitting)]
    return ends[-1] if ends else fitting
