"""What the user said, as plain text; long pastes stay collapsed until they are clicked."""

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.widgets.item import Item, rows_of

_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 2000
_EXPANDED_CHARACTERS = 20_000
"""Most that is laid out at once, even expanded; the rest is in the chat all the same."""


class Question(Item):
    choosable = True

    def __init__(self, prompt: str, shown: str, queued: bool = False, turn: int | None = None) -> None:
        """`turn` is the id of the turn that it asks in."""
        super().__init__()
        self.prompt = prompt
        self.turn = turn
        self._place: tuple[int, int] | None = None
        self._collapsed = _collapsed(shown)
        self._expanded = False
        self._queued = queued

    @property
    def text(self) -> str:
        """What is on the screen."""
        if not self._expanded:
            return self._collapsed
        rest = len(self.prompt) - _EXPANDED_CHARACTERS
        return self.prompt if rest <= 0 else f"{self.prompt[:_EXPANDED_CHARACTERS]}\n… {rest:,} more characters"

    @property
    def queued(self) -> bool:
        """Its turn has not come yet."""
        return self._queued

    @queued.setter
    def queued(self, queued: bool) -> None:
        self._queued = queued
        self._show()

    @property
    def place(self) -> tuple[int, int] | None:
        """Which of how many branches begins here; None where there is one only."""
        return self._place

    @place.setter
    def place(self, place: tuple[int, int] | None) -> None:
        if place != self._place:
            self._place = place
            self._show()

    @property
    def copied(self) -> str:
        return self.prompt

    def open(self) -> bool:
        if self.prompt == self._collapsed:
            return False
        self._expanded = not self._expanded
        self._show()
        return True

    def make(self) -> Widget:
        return QuestionView(self)

    def estimate(self, width: int) -> int:
        return rows_of(self.text, width - 5) + 1 + bool(self.place)

    def _show(self) -> None:
        if isinstance(self.widget, QuestionView):
            self.widget.set_class(self.queued, "-queued")
            self.widget.refresh(layout=True)


class QuestionView(Static):
    def __init__(self, question: Question) -> None:
        super().__init__(classes="-queued" if question.queued else "")
        self._question = question

    def render(self) -> Content:
        waiting = Content.styled("\nqueued", "italic") if self._question.queued else ""
        branch = "\n‹ {}/{} ›".format(*self._question.place) if self._question.place else ""
        return Content.assemble(Content(self._question.text), Content.styled(branch, "$foreground 60%"), waiting)

    def on_click(self) -> None:
        if not self.screen.get_selected_text():
            self._question.open()


def _collapsed(shown: str) -> str:
    lines = shown.split("\n")
    head = "\n".join(lines[:_SHOWN_LINES])
    if len(head) > _SHOWN_CHARACTERS:
        return f"{head[:_SHOWN_CHARACTERS]}…\n… {len(shown) - _SHOWN_CHARACTERS:,} more characters, click to see them"
    if len(lines) > _SHOWN_LINES:
        return f"{head}\n… {len(lines) - _SHOWN_LINES:,} more lines, click to see them"
    return shown
