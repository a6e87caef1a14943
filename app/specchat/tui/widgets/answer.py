"""An answer on the screen, while it streams and after: as Markdown, or as it was written with who wrote it."""

from collections.abc import Callable, Sequence

from specchat import chat
from specchat.sources import Runs
from specchat.tui.figures import footer
from specchat.tui.rendered import Rendered
from specchat.tui.widgets.column import Column
from specchat.tui.widgets.foot import Foot
from specchat.tui.widgets.item import Item
from specchat.tui.widgets.written import Written
from specengine.protocol import Token


class Answer:
    """Tokens go in by `write` at any rate; `flush` brings them to the column, as often as the screen can bear."""

    def __init__(
        self, column: Column, before: Item | None = None, by_source: bool = False, given: chat.Answer | None = None
    ) -> None:
        """Stands before an item of the column, or at its end; `given` is an answer of earlier, whole."""
        self._column = column
        self._text = [given.text] if given else []
        self._runs = Runs(given.runs if given else ())
        self._pending: list[Token] = []
        self._over = given is not None
        """Nothing more comes."""
        self._gone = False
        self._rendered = Rendered()
        self._written = self._as_written() if by_source else None
        self._foot = Foot(self)
        if by_source:
            self._foot.tokens = self._runs.tokens
        if given:
            self._foot.text, self._foot.waiting = footer(given), ""
            if not by_source:
                self._render_rest()
        column.add(*self.items, before=before)

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def items(self) -> list[Item]:
        """What stands in the column for it."""
        return [*(self._rendered.items if self._written is None else [self._written]), self._foot]

    @property
    def footer(self) -> str:
        """The line under it."""
        return self._foot.text

    def wait(self, text: str) -> None:
        """Says what happens before the first token."""
        self._foot.waiting = text
        self._foot.show()

    def write(self, tokens: Sequence[Token]) -> None:
        self._pending += tokens
        self._text += [token.text for token in tokens]
        self._runs.add(tokens)

    async def flush(self) -> None:
        """Shows what was written since the last time."""
        async with self._column.turn:
            if self._pending and not self._gone:
                await self._show(self._absorb())

    async def finish(self, foot: str) -> None:
        """The answer is complete."""
        async with self._column.turn:
            if self._gone:
                return
            changed = self._absorb()
            self._over = True
            if self._written is None:
                changed += self._render(self._rendered.end)
            self._foot.text, self._foot.waiting = foot, ""
            await self._show(changed)

    async def discard(self) -> None:
        """Leaves the screen; a flush or finish that comes later does nothing."""
        async with self._column.turn:
            self._gone = True
            self._column.replace(self.items, [])
            await self._column.settle()

    def colour(self, by_source: bool) -> None:
        """Changes to the text by source, or back. Needs the column's `turn`, and a `settle` afterwards."""
        if self._gone or by_source == (self._written is not None):
            return
        self._absorb()
        before = self.items
        self._written = self._as_written() if by_source else None
        self._foot.tokens = self._runs.tokens if by_source else None
        if not by_source:
            self._render_rest()
        self._column.replace(before, self.items)

    def _absorb(self) -> list[Item]:
        """Gives what is pending to the items; returns those that changed."""
        tokens, self._pending = self._pending, []
        if tokens:
            self._foot.waiting = ""
        if self._written is None:
            return self._render(lambda: self._rendered.feed("".join(token.text for token in tokens)))
        for token in tokens:
            self._written.add(token.text, token.source)
        return [self._written]

    def _render(self, grow: Callable[[], list[Item]]) -> list[Item]:
        known = len(self._rendered.items)
        changed = grow()
        if self._rendered.thought:
            self._rendered.thought.tokens = self._runs.thought
        new = self._rendered.items[known:]
        for item in new:
            item.chosen = self._foot.chosen
        self._column.add(*new, before=self._foot)
        return changed

    def _render_rest(self) -> None:
        """Brings the Markdown up to date, for items that are not in the column yet."""
        self._rendered.feed(self.text[self._rendered.characters :])
        if self._over and not self._rendered.over:
            self._rendered.end()
        if self._rendered.thought:
            self._rendered.thought.tokens = self._runs.thought

    def _as_written(self) -> Written:
        written, text, start = Written(), self.text, 0
        for run in self._runs.runs:
            written.add(text[start : start + run.characters], run.source)
            start += run.characters
        written.add(text[start:], "")
        return written

    async def _show(self, changed: list[Item]) -> None:
        with self._column.app.batch_update():
            await self._column.settle()
            for item in changed:
                await item.fill()
            self._foot.show()
        self._column.unseen = not self._column.following
