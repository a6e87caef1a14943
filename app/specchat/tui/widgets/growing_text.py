"""Plain text that grows at its end and costs only what is new: finished lines are left alone."""

from typing import Final

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

_LINES: Final = 40
"""Lines of one piece; only the last piece is laid out again."""


class GrowingText(VerticalScroll, can_focus=False):
    """Text goes in by `write` at any rate; `flush` brings it to the screen, and goes with its end unless the user
    scrolled up."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = [_Piece()]
        self._pending = ""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces) + self._pending

    def on_mount(self) -> None:
        self.mount(self.pieces[0])

    def write(self, text: str) -> None:
        self._pending += text

    def flush(self) -> None:
        """Shows what was written since the last time."""
        if not self._pending:
            return
        follows = self.scroll_y >= self.max_scroll_y - 1
        lines, self._pending = self._pending.splitlines(keepends=True), ""
        for line in lines:
            if self.pieces[-1].lines >= _LINES:
                self.pieces[-1].show()
                self.pieces.append(_Piece())
                self.mount(self.pieces[-1])
            self.pieces[-1].add(line)
        self.pieces[-1].show()
        if follows:
            self.call_after_refresh(self.scroll_end, animate=False)

    def mark_from(self, start: int) -> None:
        """Colours everything from a character on."""
        for piece in self.pieces:
            piece.show(max(0, start))
            start -= len(piece.text)


class _Piece(Static):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.lines = 0

    def add(self, line: str) -> None:
        self.text += line
        self.lines += line.endswith("\n")

    def show(self, marked_from: int | None = None) -> None:
        # The break at the end is the next piece's beginning, and no line of its own.
        content = Content(self.text.removesuffix("\n"))
        self.update(content if marked_from is None else content.stylize("$text-warning", marked_from))
