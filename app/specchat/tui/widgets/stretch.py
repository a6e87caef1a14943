"""A stretch of an answer's prose: Markdown that grows at its end until it is closed."""

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from specchat.tui.markdown import Block, Line, Row, laid_out, parsed
from specchat.tui.segments import PROSE_CHARACTERS
from specchat.tui.widgets.item import Item, rows_of
from specchat.tui.widgets.rows import Rows


class Stretch(Item):
    def __init__(self) -> None:
        super().__init__()
        self.source = ""
        self.closed = False
        """Nothing more comes."""
        self.tight = False
        """A list goes on in the next stretch."""
        self.settled: list[Line] = []
        """Lines of all blocks but the last one, which may still become another as it grows."""
        self.last: list[Line] = []
        """Lines of the last block."""
        self.parsed_characters = 0
        """Characters handed to the parser so far."""
        self._last_from = 0
        """Where the last block starts in the source."""
        self._parsed_to = 0
        """How much of the source `settled` and `last` show."""
        self._whole = False
        """They show the whole source, parsed in one go."""

    def add(self, text: str) -> None:
        self.source += text
        if self.widget is None:
            self.width = 0  # what was known of its height holds no longer

    def close(self, tight: bool = False) -> None:
        self.closed, self.tight = True, tight

    def make(self) -> Widget:
        self._parse()
        return StretchRows(self)

    async def fill(self) -> None:
        """Shows what is new. Once closed it is parsed again as a whole: links may be defined at the end of a text."""
        if isinstance(self.widget, StretchRows):
            again = self.closed and not self._whole
            if again or not self._too_little():
                self._parse()
                self.widget.grown(again)

    def _too_little(self) -> bool:
        """Nothing is new; or too little where one block grows long, so that the cost stays linear."""
        block, new = len(self.source) - self._last_from, len(self.source) - self._parsed_to
        return new == 0 or (block > PROSE_CHARACTERS and new < block / 8)

    def _parse(self) -> None:
        if self.closed and not self._whole:
            self.settled, self._last_from, self._whole = [], 0, True
        elif self._parsed_to == len(self.source):
            return
        source = self.source[self._last_from :]
        self.parsed_characters += len(source)
        self._parsed_to = len(self.source)
        *blocks, last = parsed(source) or [Block([], 0)]
        for block in blocks:
            self.settled += [*block.lines, Line(Content())]
        self.last = last.lines
        for _ in range(last.source_line):
            self._last_from = self.source.index("\n", self._last_from) + 1

    def estimate(self, width: int) -> int:
        return rows_of(self.source, width - 4) + 1


class StretchRows(Rows):
    INDENT = 2

    def __init__(self, stretch: Stretch) -> None:
        super().__init__()
        self.set_class(stretch.tight, "-tight")
        self._stretch = stretch
        self._rows: list[Row] = []
        self._lines: list[str] = []
        """The lines of text that the rows belong to."""
        self._places: list[tuple[int, int]] = []
        """Of each row: its line, and which column of that is its first one."""
        self._settled = (0, 0, 0)
        """How many lines of Markdown are laid out for good, in how many rows, of how many lines of text."""

    @property
    def count(self) -> int:
        return len(self._rows)

    def row(self, y: int) -> tuple[Content, int, int]:
        return self._rows[y].content, *self._places[y]

    def plain_lines(self) -> Sequence[str]:
        return self._lines

    def grown(self, again: bool = False) -> None:
        """The stretch has more lines; or, if it was parsed again, other ones."""
        self.set_class(self._stretch.tight, "-tight")
        if again:
            self._settled = (0, 0, 0)
        if self.fitted:
            before, kept = len(self._rows), self._settled[1]
            self._lay_out()
            self.changed_from(kept, before)

    def lay_out(self) -> None:
        self._settled = (0, 0, 0)
        self._lay_out()

    def _lay_out(self) -> None:
        """Lays out what is not settled yet, and the last block again."""
        lines, rows, texts = self._settled
        del self._rows[rows:], self._places[rows:], self._lines[texts:]
        self._append(self._stretch.settled[lines:])
        self._settled = len(self._stretch.settled), len(self._rows), len(self._lines)
        self._append(self._stretch.last)

    def _append(self, lines: list[Line]) -> None:
        for row in laid_out(lines, self.fitted - self.INDENT):
            if row.begins:
                self._places.append((len(self._lines), 0))
                self._lines.append(row.content.plain)
            else:
                self._places.append((len(self._lines) - 1, len(self._lines[-1]) - row.indent))
                self._lines[-1] += row.content.plain[row.indent :]
            self._rows.append(row)

    def action_link(self, href: str) -> None:
        """Opens web pages only; the model may have made up anything else."""
        if href.startswith(("https://", "http://")):
            self.app.open_url(href)
        else:
            self.notify(href, title="This link was not opened", markup=False)
