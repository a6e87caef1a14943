"""Help on the command line, laid out for the terminal's width: examples and lists too."""

import re
import sys
from collections.abc import Sequence
from typing import Final

import click

from specchat.folding import columns, folded, rows

_COLUMN: Final = re.compile(r"\S {2,}(?=\S)")
"""The gap before a column of a list."""
_FURTHER: Final = 4
"""Columns that further rows of a command stand behind its first."""


class HelpFormatter(click.HelpFormatter):
    """Folds what click leaves as it is (paragraphs marked with a backspace) where the terminal is too narrow for it."""

    def write_text(self, text: str) -> None:
        room = self.width - self.current_indent
        indent = " " * self.current_indent
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", text):
            first, *lines = paragraph.split("\n")
            drawn = as_drawn(lines, room) if first.strip() == "\b" else list(rows(paragraph, room))
            paragraphs.append("\n".join(f"{indent}{line}".rstrip() for line in drawn))
        self.write("\n\n".join(paragraphs) + "\n")


def as_drawn(lines: Sequence[str], width: int) -> list[str]:
    """Lines that mean to stay as they are; on a terminal too narrow for them, each is folded below its last column."""
    if columns(sys.stdout) is None or all(len(line) <= width for line in lines):
        return list(lines)
    joined: list[str] = []
    for line in lines:
        if joined and 0 < _last_column(joined[-1]) == _indent(line):  # it goes on with the text of that column
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return [
        row
        for line in joined
        for row in folded(line, width, _last_column(line) or _indent(line) + _FURTHER).split("\n")
    ]


def _last_column(line: str) -> int:
    return max((gap.end() for gap in _COLUMN.finditer(line)), default=0)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
