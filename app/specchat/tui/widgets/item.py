"""What stands in a column: data, whose widget comes and goes with the view."""

from typing import Literal

from textual.message import Message
from textual.widget import Widget


class Item:
    """One thing in a column. It outlives its widget, which is made anew each time that it comes near the view."""

    def __init__(self) -> None:
        self.widget: Widget | None = None
        """Its widget while it is mounted."""
        self.filled = False
        """The widget shows everything, so that its height counts."""
        self.rows = 0
        """Height with the margin below, as laid out last; an estimate before that, and at another width."""
        self.width = 0
        """Columns that `rows` holds for."""
        self.chosen = False
        """It is marked, as what keys act on."""

    choosable = False
    """Whether keys can choose it."""

    def make(self) -> Widget:
        """A new widget for the item as it is now."""
        raise NotImplementedError

    async def fill(self) -> None:
        """Brings what is new into the mounted widget."""

    def estimate(self, width: int) -> int:
        """Rows it takes at a width, roughly."""
        raise NotImplementedError

    def rows_at(self, width: int) -> int:
        """Its height, or the best guess at it."""
        if self.width != width:
            self.rows = self.rows * self.width // width if self.width else self.estimate(width)
            self.width = width
        return self.rows

    @property
    def copied(self) -> str:
        """What copying it gives; empty where there is nothing to copy."""
        return ""

    @property
    def group(self) -> "list[Item]":
        """The items that are marked when this one is chosen."""
        return [self]

    def choose(self, chosen: bool) -> None:
        """Marks it and its group, or no longer."""
        for item in self.group:
            item.chosen = chosen
            if item.widget:
                item.widget.set_class(chosen, "-chosen")

    def open(self) -> bool:
        """Shows more of it, or less again; false where it is whole."""
        return False


class CopyItem(Message):
    """The user wants what an item holds in the clipboard."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item


class SaveItem(Message):
    """The user wants it in a file."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item


class ChangeTurn(Message):
    """The user wants something done to the turn that an item belongs to."""

    def __init__(self, turn: int, act: Literal["edit", "retry", "next", "back"]) -> None:
        super().__init__()
        self.turn = turn
        self.act = act


def rows_of(text: str, width: int) -> int:
    """About how many rows a text takes, were all characters of one column and all rows filled."""
    return sum(-(-len(line) // max(width, 1)) or 1 for line in text.split("\n"))
