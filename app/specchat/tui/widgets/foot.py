"""The line under an answer: what it waits for, then its figures; in the view by source, who wrote how much."""

from collections.abc import Mapping
from typing import Protocol

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.by_source import legend
from specchat.tui.widgets.item import Item


class Answered(Protocol):
    """The answer that a foot belongs to."""

    @property
    def text(self) -> str: ...

    @property
    def items(self) -> list[Item]: ...


class Foot(Item):
    """Stands for the answer as a whole: it is always there, if only as a place."""

    choosable = True

    def __init__(self, answer: Answered) -> None:
        super().__init__()
        self.text = ""
        self.waiting = "…"
        """What stands there until the first token."""
        self.tokens: Mapping[str, int] | None = None
        """Tokens by source, where they are to be told."""
        self._answer = answer

    @property
    def copied(self) -> str:
        return self._answer.text

    @property
    def group(self) -> list[Item]:
        return self._answer.items

    def make(self) -> Widget:
        return FootView()

    async def fill(self) -> None:
        self.show()

    def show(self) -> None:
        """Brings the screen up to date."""
        if not isinstance(self.widget, FootView):
            return
        lines = [legend(self.tokens, self.widget.app.no_color)] if self.tokens else []
        if self.text or self.waiting:
            lines.append(Content.styled(self.text or self.waiting, "$foreground 60%"))
        self.widget.update(Content("\n").join(lines))
        self.widget.display = bool(lines)

    def estimate(self, width: int) -> int:
        return 1 + bool(self.text or self.waiting) + bool(self.tokens)


class FootView(Static):
    pass
