"""Drives a column, and an answer in it, step by step, without a chat around them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

import specchat.tui.app
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.column import Column
from specchat.tui.widgets.item import Item
from specchat.tui.widgets.rows import Rows
from specengine.protocol import Token

Kind = TypeVar("Kind", bound=Item)


class Host(App[None]):
    """A column alone on the screen."""

    CSS_PATH = Path(specchat.tui.app.__file__).with_name("specchat.tcss")

    def __init__(self) -> None:
        super().__init__()
        self.column = Column()

    def compose(self) -> ComposeResult:
        yield self.column

    def items(self, kind: type[Kind]) -> list[Kind]:
        return [item for item in self.column.items if isinstance(item, kind)]

    @property
    def shown(self) -> str:
        """The text of everything that is mounted and displayed."""
        parts = [str(part.render()) for part in self.column.query(Static) if part.display]
        rows = [rows.row(y)[0].plain for rows in self.column.query(Rows) if rows.display for y in range(rows.count)]
        return "\n".join(parts + rows)

    @property
    def screen_text(self) -> list[str]:
        """What stands on the screen, line by line."""
        lines = self.screen._compositor.render_strips()
        return ["".join(segment.text for segment in line).rstrip() for line in lines]


@asynccontextmanager
async def hosting(size: tuple[int, int] = (80, 24)) -> AsyncGenerator[tuple[Host, Pilot[None]]]:
    app = Host()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def tokens(text: str, length: int = 4, source: str = "target") -> list[Token]:
    """The text in tokens of so many characters."""
    return [Token(text[start : start + length], source) for start in range(0, len(text), length)]


async def stream(app: Host, text: str, length: int = 50) -> Answer:
    """An answer that came in fragments, each shown at once, and ended."""
    answer = Answer(app.column)
    for token in tokens(text, length):
        answer.write([token])
        await answer.flush()
    await answer.finish("done")
    return answer
