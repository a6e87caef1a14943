"""Tables of the command line: as wide as the terminal allows, and one whole line a row in a pipe or a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len, set_cell_size

from specchat.folding import folded, rows

_GAP: Final = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and what happens to it where a terminal is too narrow for the table."""

    heading: str
    called: str = ""
    """What it is called where it is left out; by default as its heading."""
    spare: int = 0
    """Columns are left out in this order, from 1 on; 0: never."""
    right: bool = False
    """Flush right, for numbers."""
    least: int = 0
    """It may be made as narrow as this; 0: it stays as wide as it is."""
    cut: bool = False
    """Where it is narrower than its text: shortened with an ellipsis instead of folded."""


def table(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None, headed: bool = False
) -> list[str]:
    """The lines of a table; columns without any text take no room.

    Args:
        cells: rows with a text for each column; an empty row is a blank line.
        width: of the terminal; None where nothing is to be folded, shortened or left out.
        headed: the headings stand above the columns.
    """
    used = [at for at in range(len(columns)) if any(row and row[at] for row in cells)]
    above = [[column.heading for column in columns]] if headed else []
    natural = {at: max((cell_len(row[at]) for row in [*above, *cells] if row), default=0) for at in used}
    widths = natural if width is None else _fitted(columns, natural, width)
    lines = [line for row in [*above, *cells] for line in _lines(columns, row, widths)]
    if left_out := [columns[at].called or columns[at].heading for at in natural if at not in widths]:
        lines += ["", *folded(f"A wider terminal also shows: {', '.join(left_out)}.", width).split("\n")]
    return lines


def _fitted(columns: Sequence[Column], natural: dict[int, int], width: int) -> dict[int, int]:
    """Widths that fit together if they can: what can be spared goes, then the widest columns shrink."""

    def total() -> int:
        return sum(widths.values()) + _GAP * (len(widths) - 1)

    widths = dict(natural)
    least = {at: min(columns[at].least or size, size) for at, size in natural.items()}
    for at in sorted((at for at in natural if columns[at].spare), key=lambda at: columns[at].spare):
        if sum(least[at] for at in widths) + _GAP * (len(widths) - 1) > width:
            del widths[at]
    while total() > width and (able := [at for at in widths if widths[at] > least[at]]):
        widths[max(able, key=lambda at: widths[at])] -= 1
    return widths


def _lines(columns: Sequence[Column], row: Sequence[str], widths: dict[int, int]) -> list[str]:
    if not row:
        return [""]
    folds = [_cell(row[at], widths[at], columns[at].cut) for at in widths]
    lines = []
    for parts in zip_longest(*folds, fillvalue=""):
        padded = [
            " " * (size - cell_len(part)) + part if columns[at].right else part + " " * (size - cell_len(part))
            for (at, size), part in zip(widths.items(), parts, strict=True)
        ]
        lines.append((" " * _GAP).join(padded).rstrip())
    return lines


def _cell(text: str, width: int, cut: bool) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    return [set_cell_size(text, width - 1).rstrip() + "…"] if cut else list(rows(text, width))
