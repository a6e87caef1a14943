"""The thinking block of an answer: one line that opens, so that nobody has to scroll past it."""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from specchat.tui.widgets.grows import Grows
from specchat.tui.widgets.item import Item
from specchat.tui.widgets.wrapped_rows import WrappedRows


class Thought(Item):
    choosable = True

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self.tokens = 0
        self.closed = False
        """Nothing more comes."""
        self._is_open = False
        self._newlines = ""
        """Newlines at the end, held back: the last ones are not shown."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def copied(self) -> str:
        return self.text

    @property
    def title(self) -> str:
        tokens = "token" if self.tokens == 1 else "tokens"
        return f"thought for {self.tokens:,} {tokens}" if self.closed else f"thinking… {self.tokens:,} {tokens}"

    def add(self, text: str) -> None:
        text = text.lstrip("\n") if self.lines == [""] else self._newlines + text
        shown = text.rstrip("\n")
        self._newlines = text[len(shown) :]
        first, *more = shown.split("\n")
        self.lines[-1] += first
        self.lines += more

    def close(self) -> None:
        self.closed = True

    def open(self) -> bool:
        """Shows the thoughts, or folds them again."""
        self._is_open = not self._is_open
        if isinstance(self.widget, ThoughtView):
            self.widget.show(self._is_open)
        return True

    def make(self) -> Widget:
        return ThoughtView(self)

    async def fill(self) -> None:
        if isinstance(self.widget, ThoughtView):
            self.widget.show(self._is_open)

    def estimate(self, width: int) -> int:
        return 2 + len(self.lines) * self._is_open


class ThoughtRows(WrappedRows):
    def __init__(self, thought: Thought) -> None:
        super().__init__()
        self._thought = thought

    def plain_lines(self) -> list[str]:
        return self._thought.lines


class ThoughtView(Grows, Vertical):
    def __init__(self, thought: Thought) -> None:
        super().__init__()
        self._thought = thought
        self._title = Static(classes="title")
        self._rows = ThoughtRows(thought)

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._rows

    def show(self, is_open: bool) -> None:
        """Brings title and text up to date."""
        self._title.update(Content(f"{'▾' if is_open else '▸'} {self._thought.title}"))
        self._rows.display = is_open
        if is_open:
            self._rows.grown()

    def on_click(self) -> None:
        if not self.screen.get_selected_text():
            self._thought.open()
