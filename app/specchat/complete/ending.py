"""Where a completion ends, besides where the model ends it."""

import re
from typing import Literal

Until = Literal["end", "line", "blank", "block"]
"""Goes on to the model's own end, to the end of the line, to a blank line, or to the end of the indented block."""

_LINE_ENDS = re.compile(r"[ \t]*\n\s*")
_CLOSING = ")]}"
_TAB = 4


class Ending:
    """Passes a completion on as it comes, up to its end: no line end behind the last line is part of it.

    Work per character is constant: what is passed on is never looked at again.
    """

    def __init__(self, until: Until, before: str) -> None:
        """`before` is the line of the gap, up to the gap."""
        self.reached = False
        """Nothing more comes."""
        self._until = until
        self._held = ""
        """Line ends, and the indentation behind them, of which it is not known yet whether anything follows."""
        self._begun = False
        """Something else than whitespace was passed on."""
        self._blank = not before.strip()
        """Whether the gap's line has nothing but indentation yet."""
        self._indent = before
        self._least = _indentation(before)
        """Lines indented less are no part of the block."""
        self._opened = False
        """Whether `_least` is the block's own indentation already, not that of the line that it hangs from."""
        self._closing = False
        """The line that closes the block has begun; it ends with it."""

    def push(self, text: str) -> str:
        """The part of `text`, and of what was held back, that belongs to the completion."""
        if self.reached or self._until == "end":
            return "" if self.reached else text
        text, self._held = self._held + text, ""
        start = 0
        for found in _LINE_ENDS.finditer(text):
            if found.end() == len(text):
                self._begin(text[start : found.start()])
                self._held = text[found.start() :]
                self.reached = self._surely_over(found[0])
                return text[: found.start()]
            self._begin(text[start : found.start()])
            start = found.end()
            if self._over(found[0], text[start]):
                self.reached = True
                return text[: found.start()]
        self._begin(text[start:])
        return text

    def _begin(self, text: str) -> None:
        """Takes note of the first line's indentation, which may come in several parts."""
        if self._begun:
            return
        if not text.strip():
            self._indent += text
            return
        self._begun = True
        if self._blank:
            self._least, self._opened = _indentation(self._indent + text), True

    def _surely_over(self, run: str) -> bool:
        """Whether the completion is over whatever follows these line ends."""
        lines = run.count("\n")
        return self._begun and (self._until == "line" or (self._until == "blank" and lines > 1) or self._closing)

    def _over(self, run: str, following: str) -> bool:
        """Whether the completion is over before `following`, the first character of a line behind these line ends."""
        if self._until != "block":
            return self._surely_over(run)
        if self._closing:
            return True
        indentation = _indentation(run.rpartition("\n")[2])
        if not self._begun:
            self._indent = run.rpartition("\n")[2]
            if not self._blank:
                self._least, self._opened = max(self._least, indentation), True
            return False
        if indentation >= self._least:
            if not self._opened:
                self._least, self._opened = indentation, True
            return False
        self._closing = following in _CLOSING
        return not self._closing


def _indentation(line: str) -> int:
    """Columns of whitespace at the start of a line."""
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return len(indent.expandtabs(_TAB))
