"""Where in a text the gap is: a line and column, or a mark in the text itself."""

import re
from dataclasses import dataclass

from specengine.errors import EngineError

MARK = "<|cursor|>"
"""Stands in a text for the gap to be filled."""
STDIN = "-"

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<column>\d+))?", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Place:
    """What FILE[:LINE[:COL]] says."""

    file: str
    line: int | None = None
    """From 1; None for the mark, or the end of piped text."""
    column: int | None = None
    """From 1, in characters; None for the end of the line."""

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets in a text, in characters; what lies between them (the mark, if anything) makes way."""

    start: int
    end: int


def parsed(argument: str) -> Place:
    """Reads FILE, FILE:LINE or FILE:LINE:COL. A drive letter is part of the file."""
    found = _PLACE.fullmatch(argument)
    if found is None:
        return Place(argument)
    column = found["column"]
    return Place(found["file"], int(found["line"]), None if column is None else int(column))


def gap(text: str, place: Place) -> Gap:
    """Where in `text` the place lies.

    Raises:
        EngineError: there is no such line or column, or no mark to go by.
    """
    if place.line is None:
        return _marked(text, place)
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
    if not 1 <= place.line <= len(starts):
        lines = len(starts) - (starts[-1] == len(text))  # what follows the last line end is a place, but no line yet
        raise EngineError(f"{place.file} has {_count(lines, 'line')}: there is no line {place.line}.")
    start = starts[place.line - 1]
    end = found.start() if (found := _LINE_END.search(text, start)) else len(text)
    if place.column is None:
        return Gap(end, end)
    if not 1 <= place.column <= end - start + 1:
        raise EngineError(
            f"Line {place.line} of {place.file} has {_count(end - start, 'character')}: "
            f"there is no column {place.column}."
        )
    at = start + place.column - 1
    return Gap(at, at)


def line_start(text: str, at: int) -> int:
    """Where the line begins that holds offset `at`."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def line_end_style(text: str, at: int) -> str:
    """How the line at offset `at` ends; where it ends with the text, how the first line does."""
    found = _LINE_END.search(text, at) or _LINE_END.search(text)
    return found[0] if found else "\n"


def newlines(text: str) -> str:
    """`text` with every line ended by a newline, as models read it."""
    return _LINE_END.sub("\n", text)


def _marked(text: str, place: Place) -> Gap:
    marks = text.count(MARK)
    if marks == 1:
        start = text.index(MARK)
        return Gap(start, start + len(MARK))
    if marks > 1:
        raise EngineError(f"{place.file} holds the mark {MARK} {marks} times; leave one.")
    if place.file == STDIN:
        return Gap(len(text), len(text))
    raise EngineError(f"Say where: {place.file}:LINE, {place.file}:LINE:COL, or put {MARK} into the text.")


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
