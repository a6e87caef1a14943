"""A stretch of an answer's prose: Markdown that grows at its end until it is closed."""

from markdown_it import MarkdownIt
from textual import on
from textual.widget import Widget
from textual.widgets import Markdown

from specchat.tui.segments import PROSE_CHARACTERS
from specchat.tui.widgets.grows import Grows
from specchat.tui.widgets.item import Item, rows_of

_LINE_BREAKS = str.maketrans("\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x85", "        ")
"""Line breaks to Python but not to Markdown; Textual counts lines with both."""


class Stretch(Item):
    def __init__(self) -> None:
        super().__init__()
        self.source = ""
        self.closed = False
        """Nothing more comes."""
        self.tight = False
        """A list goes on in the next stretch."""
        self.appends = 0
        """Calls of Markdown.append so far."""
        self.parsed_characters = 0
        """Characters of Markdown handed to the parser so far, at most."""
        self._given = 0
        """Characters of the source that the widget has."""

    def add(self, text: str) -> None:
        self.source += text.translate(_LINE_BREAKS)
        if self.widget is None:
            self.width = 0  # what was known of its height holds no longer

    def close(self, tight: bool = False) -> None:
        self.closed, self.tight = True, tight

    def make(self) -> Widget:
        self._given = len(self.source) if self.closed else 0
        self.parsed_characters += self._given
        widget = StretchView(self.source if self.closed else None)
        widget.set_class(self.tight, "-tight")
        return widget

    async def fill(self) -> None:
        """Appends what is new. Once closed it is rendered again as a whole, whatever streaming did to it."""
        if not isinstance(self.widget, StretchView):
            return
        new = len(self.source) - self._given
        if self.closed and not self.widget.whole:
            self.widget.whole = True
            self.widget.set_class(self.tight, "-tight")
            self.parsed_characters += len(self.source)
            await self.widget.update(self.source)
        elif new and not self.closed and not self._too_little(new):
            self.appends += 1
            self.parsed_characters += len(self.source)
            await self.widget.append(self.source[self._given :])
        else:
            return
        self._given = len(self.source)

    def _too_little(self, new: int) -> bool:
        """Waits for more where one block grows long, so that the cost stays linear."""
        block = self._given - (self.source.rfind("\n\n", 0, self._given) + 1)
        return block > PROSE_CHARACTERS and new < block / 8

    def estimate(self, width: int) -> int:
        return rows_of(self.source, width - 4)


class StretchView(Grows, Markdown):
    """Started with a whole source, or empty and then only appended to until its last `update`: anything else loses
    text."""

    def __init__(self, source: str | None) -> None:
        super().__init__(source, parser_factory=_parser, open_links=False)
        self.whole = source is not None

    @on(Markdown.LinkClicked)
    def _open(self, event: Markdown.LinkClicked) -> None:
        """Opens web pages only; the model may have made up anything else."""
        event.stop()
        if event.href.startswith(("https://", "http://")):
            self.app.open_url(event.href)
        else:
            self.notify(event.href, title="This link was not opened", markup=False)


def _parser() -> MarkdownIt:
    return MarkdownIt("gfm-like", {"html": False})  # HTML is shown as it was written; Textual would drop it
