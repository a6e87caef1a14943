"""How high the items of a column are, and which of them lies how far from another."""

from collections.abc import Sequence

from specchat.tui.widgets.item import Item

Place = tuple[Item, int]
"""An item, and rows below its top."""


def up(items: Sequence[Item], width: int, index: int, rows: int) -> int:
    """The item that begins `rows` above item `index`, or more."""
    while rows > 0 and index > 0:
        index -= 1
        rows -= items[index].rows_at(width)
    return index


def down(items: Sequence[Item], width: int, index: int, rows: int) -> int:
    """The item that begins `rows` below the top of item `index`, or more."""
    while rows > 0 and index < len(items):
        rows -= items[index].rows_at(width)
        index += 1
    return index


def between(items: Sequence[Item], width: int, start: int, stop: int) -> int:
    """Rows from the top of one item to that of another; less than 0 where that one is above."""
    if stop < start:
        return -between(items, width, stop, start)
    return sum(item.rows_at(width) for item in items[start:stop])


def place_at(items: Sequence[Item], width: int, index: int, top: int, y: int) -> Place:
    """The place at row `y`, counted from item `index`, which begins at row `top`."""
    while y < top and index > 0:
        index -= 1
        top -= items[index].rows_at(width)
    while index + 1 < len(items) and y >= top + items[index].rows_at(width):
        top += items[index].rows_at(width)
        index += 1
    return items[index], y - top


def same_place(old: Sequence[Item], new: Sequence[Item], width: int, place: Place) -> Place | None:
    """The place among `new` that corresponds to one among `old`; None where there are no new ones."""
    if not new:
        return None
    item, offset = place
    row = between(old, width, 0, old.index(item)) + offset
    row = row * between(new, width, 0, len(new)) // max(1, between(old, width, 0, len(old)))
    return place_at(new, width, 0, 0, row)
