"""Where lines of text are broken into rows."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from textual.content import Content

TAB: Final = 8


def breaks(text: str, width: int, start: int = 0) -> list[int]:
    """Where the rows of a line end when it is wrapped at words; the last one at its end.

    Every character belongs to a row. The blank at which a row is broken ends it, and may hang over its width.
    """
    found = []
    while (end := _fitting(text, start, width)) < len(text):
        if text[end] == " ":
            end += 1
        elif (blank := text.rfind(" ", start, end)) > start:
            end = blank + 1
        found.append(end)
        start = end
    return [*found, len(text)]


def in_rows(parts: Sequence[Content], gap: str, width: int) -> Content:
    """Parts with a gap between them, each of them whole in its row where it fits into one."""
    rows: list[list[Content]] = []
    room = 0
    for part in parts:
        room -= part.cell_length + len(gap)
        if room < 0 or not rows:
            rows.append([])
            room = width - part.cell_length
        rows[-1].append(part)
    return Content("\n").join(Content(gap).join(row) for row in rows)


def cells(text: str) -> int:
    """Columns that a line takes."""
    return cell_len(text.expandtabs(TAB))


def _fitting(text: str, start: int, width: int) -> int:
    """Where the longest part ends that fits into the width, one character at least."""
    end = min(len(text), start + width)
    part = text[start:end]
    if part.isascii() and "\t" not in part:
        return max(end, start + 1) if start < len(text) else end
    columns = 0
    for end in range(start, len(text)):
        letter = text[end]
        columns += TAB - columns % TAB if letter == "\t" else get_character_cell_size(letter)
        if columns > width and end > start:
            return end
    return len(text)
