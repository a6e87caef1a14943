"""The chats that were kept: found by typing, looked into, opened, renamed, deleted and brought back."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specchat.store.browse import Row, ago, preview, rows
from specchat.store.chats import Kept, Store
from specchat.store.open_chats import is_open
from specchat.title import ending_with, one_line
from specchat.tui.background import begin
from specchat.tui.widgets.filter import Filter
from specchat.tui.widgets.key_line import KeyLine
from specchat.tui.widgets.line import Line
from specengine.errors import EngineError

_PAUSE_S: Final = 0.12
"""Typing that goes on sooner starts no search yet."""
Result = TypeVar("Result")


class Resume(ModalScreen[Kept | None]):
    """Gives back the chat to go on with."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Go on with the chat", id="resume.open"),
        Binding("f2", "rename", "Rename the chat", id="resume.rename"),
        Binding("delete", "delete", "Delete the chat", id="resume.delete"),
        Binding("ctrl+z", "undo", "Bring back the chat that was deleted last", id="resume.undo"),
        Binding("escape,ctrl+r,ctrl+c", "back", "Close", id="resume.close"),
        Binding("up", "move('cursor_up')", show=False, id="resume.up"),
        Binding("down", "move('cursor_down')", show=False, id="resume.down"),
        Binding("pageup", "move('page_up')", show=False, id="resume.page_up"),
        Binding("pagedown", "move('page_down')", show=False, id="resume.page_down"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (90, "-wide")]  # noqa: RUF012 - as Screen declares it

    def __init__(self, file: Path, open_chat: str, words: str = "") -> None:
        """`open_chat` is the id of the chat behind this screen."""
        super().__init__()
        self._file = file
        self._open_chat = open_chat
        self._words = words
        self._rows: list[Row] = []
        self._listed_for: str | None = None
        """The words that the rows were found by."""
        self._deleted: list[tuple[str, str]] = []
        """Ids and titles of what was deleted here, the last one last."""

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Chats"
            hint = "type to find words in titles, prompts and answers"
            yield Filter(self._words, placeholder=hint, compact=True, classes="find")
            yield Line(placeholder="the chat's name", compact=True, classes="name")
            with Horizontal():
                yield OptionList(markup=False, compact=True)
                with VerticalScroll(can_focus=False):
                    yield Static(classes="preview")
            yield Static(classes="news")
            yield KeyLine()

    def on_mount(self) -> None:
        self._list.can_focus = False
        self._naming.display = False
        self._find.focus()
        self._fill()

    # What keys do.

    def action_open(self) -> None:
        begin(self, self._opened, "open", exclusive=True)

    def action_back(self) -> None:
        if self._naming.display:
            self._end_naming()
        else:
            self.dismiss(None)

    def action_move(self, how: str) -> None:
        getattr(self._list, f"action_{how}")()

    def action_delete(self) -> None:
        row = self._chosen
        if row is None:
            return
        if row.chat.id == self._open_chat:
            self._say("This chat is open; open another or begin a new one first.")
            return
        self._deleted.append((row.chat.id, row.chat.title))
        news = f"Deleted: {ending_with(row.chat.title)} Ctrl+Z brings it back."
        if is_open(self._file, row.chat.id):
            news += " It is open in another window, and comes back if it goes on there."
        self._change(lambda store: store.delete(row.chat.id, time.time()), news)

    def action_undo(self) -> None:
        if not self._deleted:
            self._say("Nothing was deleted here.")
        else:
            id, title = self._deleted.pop()
            self._change(lambda store: store.restore(id), f"Back again: {ending_with(title)}")

    def action_rename(self) -> None:
        if row := self._chosen:
            self._naming.value = row.chat.title
            self._find.display, self._naming.display = False, True
            self._naming.focus()
            self._say("Enter gives it this name, esc leaves it as it is.")

    @on(OptionList.OptionSelected)
    def _clicked(self) -> None:
        self.action_open()

    @on(Input.Submitted, ".name")
    def _named(self) -> None:
        row, title = self._chosen, one_line(self._naming.value)
        self._end_naming()
        if row and title:
            self._change(lambda store: store.rename(row.chat.id, title), f"Now called: {ending_with(title)}")

    @on(Input.Changed, ".find")
    def _typed(self) -> None:
        self._say("")
        self._fill(_PAUSE_S)

    @on(OptionList.OptionHighlighted)
    def _look(self) -> None:
        begin(self, self._previewed, "preview", exclusive=True)

    # What the file holds; read and written outside the loop.

    def _fill(self, pause_s: float = 0.0) -> None:
        begin(self, partial(self._filled, pause_s), "list", exclusive=True)

    async def _filled(self, pause_s: float = 0.0) -> None:
        await asyncio.sleep(pause_s)
        words, chosen, at = self._find.value, self._chosen, self._list.highlighted or 0
        found = await self._asked(lambda: rows(self._file, words))
        if found is None:
            return
        self._rows, total = found
        self._listed_for = words
        self._list.set_options(Option(_line(row, row.chat.id == self._open_chat)) for row in self._rows)
        ids = [row.chat.id for row in self._rows]
        if self._rows:
            self._list.highlighted = (
                ids.index(chosen.chat.id) if chosen and chosen.chat.id in ids else min(at, len(ids) - 1)
            )
        else:
            self._preview.update("")
        nothing = "No chat holds these words." if words.strip() else "There are no chats yet."
        more = f" · {total - len(ids):,} more: type to find them" if total > len(ids) else ""
        panel = self.query_one(Vertical)
        panel.border_subtitle = nothing if not ids else f"{total:,} chat{'s' * (total != 1)}{more}"

    async def _previewed(self) -> None:
        row = self._chosen
        if row is not None and (kept := await self._kept(row.chat.id)):
            self._preview.update(Content(preview(kept)))
            self._preview.parent.scroll_home(animate=False)  # type: ignore[union-attr]

    async def _opened(self) -> None:
        if self._listed_for != self._find.value:  # enter came right behind what was typed
            await self._filled()
        if (row := self._chosen) and (kept := await self._kept(row.chat.id)):
            self.dismiss(kept)

    async def _kept(self, id: str) -> Kept | None:
        def read() -> Kept:
            with Store(self._file) as store:
                return store.kept(id)

        return await self._asked(read)

    def _change(self, change: Callable[[Store], None], news: str) -> None:
        def write() -> bool:
            with Store(self._file) as store, store.writing():
                change(store)
            return True

        async def changed() -> None:
            if await self._asked(write):
                self._say(news)
                self._fill()

        begin(self, changed, "change")

    async def _asked(self, work: Callable[[], Result]) -> Result | None:
        """What `work` returns, or None and a sentence on the screen."""
        try:
            return await asyncio.to_thread(work)
        except EngineError as error:
            self._say(str(error))
            return None

    def _end_naming(self) -> None:
        self._find.display, self._naming.display = True, False
        self._find.focus()
        self._say("")

    def _say(self, text: str) -> None:
        self.query_one(".news", Static).update(Content(text))

    @property
    def _chosen(self) -> Row | None:
        at = self._list.highlighted
        return self._rows[at] if at is not None and at < len(self._rows) else None

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def _find(self) -> Input:
        return self.query_one(".find", Input)

    @property
    def _naming(self) -> Input:
        return self.query_one(".name", Input)

    @property
    def _preview(self) -> Static:
        return self.query_one(".preview", Static)


def _line(row: Row, is_open: bool) -> Content:
    chat = row.chat
    facts = [ago(chat.updated_s, time.time()), f"{chat.turns} turn{'s' * (chat.turns != 1)}", chat.model]
    if is_open:
        facts.insert(0, "open")
    parts = [Content(chat.title), Content.styled("\n" + " · ".join(fact for fact in facts if fact), "$foreground 60%")]
    if row.snippet:
        parts.append(Content.styled(f"\n{row.snippet}", "$foreground 60% italic"))
    return Content.assemble(*parts)
