"""Streamed Markdown cut into pieces whose cost stays bounded: stretches of prose, and blocks of code.

A Markdown widget parses its last block again at each append, and highlights an open fence from its start. So code
goes around Markdown, line by line, and prose is cut where nothing is lost once a stretch is long enough.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

PROSE_CHARACTERS = 1200
"""A stretch of prose this long is closed at the next paragraph."""
ITEM_CHARACTERS = 240
"""One this long is closed at the next item of a list: Textual builds a whole list again at each append."""

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_MAYBE_FENCE = re.compile(r"^\s*(?:`{0,2}|~{0,2}|`{3,}[^`]*|~{3,}.*)$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,9}[.)])\s")
_MAYBE_ITEM = re.compile(r"^(?:[-*+]|\d{1,9}[.)]?)$")


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown to append to the open stretch."""

    text: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The open stretch of prose ends. `tight` where a list goes on in the next one."""

    tight: bool


@dataclass(frozen=True, slots=True)
class CodeStart:
    language: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text of the open block of code, without the indentation of its fence."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeEnd:
    pass


Step = Prose | Cut | CodeStart | Code | CodeEnd


class Segmenter:
    """Cuts text that arrives in fragments. A line that may become a fence is held back until it can be told."""

    def __init__(self) -> None:
        self._line = ""
        """The unfinished last line, whether shown already or held back."""
        self._shown = 0
        """Characters of `_line` that were passed on."""
        self._fence: str | None = None
        """The mark that opened the block of code; None in prose."""
        self._indent = 0
        """Indentation of the last fence; prose that follows it in a list is shifted back by as much."""
        self._length = 0
        self._blank = False
        """Whether the line before was blank."""

    def feed(self, text: str) -> Iterator[Step]:
        """Takes a fragment of any size."""
        lines = (self._line + text).split("\n")
        for line in lines[:-1]:
            self._line = line
            yield from self._whole_line()
            self._line, self._shown = "", 0
        self._line = lines[-1]
        yield from self._part_of_line()

    def end(self) -> Iterator[Step]:
        """Passes on what was held back, and closes what is open."""
        if self._line:
            yield from self._whole_line(newline="")
            self._line, self._shown = "", 0
        if self._fence is not None:
            self._fence = None
            yield CodeEnd()

    def _whole_line(self, newline: str = "\n") -> Iterator[Step]:
        fence = _FENCE.match(self._line) if not self._shown else None
        if self._fence is not None:
            if fence and fence["mark"].startswith(self._fence) and not fence["info"].strip():
                self._fence = None
                yield CodeEnd()
            else:
                yield from self._pass_on(Code, newline)
        elif fence:
            self._fence, self._indent, self._length = fence["mark"], len(fence["indent"]), 0
            words = fence["info"].split()
            yield Cut(tight=False)
            yield CodeStart(words[0] if words else "")
        else:
            if not self._shown:
                yield from self._maybe_cut()
            yield from self._pass_on(Prose, newline)
            self._blank = not self._line.strip()

    def _part_of_line(self) -> Iterator[Step]:
        if not self._line or (not self._shown and self._undecided()):
            return
        if self._fence is None and not self._shown:
            yield from self._maybe_cut()
        yield from self._pass_on(Code if self._fence is not None else Prose, "")

    def _undecided(self) -> bool:
        """Whether the line so far may still become a fence, or an item that tells where to cut."""
        return bool(_MAYBE_FENCE.match(self._line)) or (self._fence is None and bool(_MAYBE_ITEM.match(self._line)))

    def _maybe_cut(self) -> Iterator[Step]:
        item = bool(_ITEM.match(self._line))
        starts = bool(self._line.strip()) and not self._line[0].isspace()
        enough = ITEM_CHARACTERS if item else PROSE_CHARACTERS
        if self._length > enough and starts and (self._blank or item):
            self._length = 0
            yield Cut(tight=item and not self._blank)

    def _pass_on(self, kind: type[Prose] | type[Code], newline: str) -> Iterator[Step]:
        line = self._line
        indent = len(line) - len(line.lstrip(" "))
        if self._indent and kind is Prose and line.strip() and indent < self._indent:
            self._indent = 0
        shift = min(self._indent, indent)
        text = line[max(self._shown, shift) :] + newline
        self._shown = len(line)
        if kind is Prose:
            self._length += len(text)
        if text:
            yield kind(text)
