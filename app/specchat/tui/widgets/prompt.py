"""Where the user types: multi-line, with history, and with chips in place of long pastes."""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Location

from specchat.tui.history import Entry, History
from specchat.tui.pastes import (
    BURST_QUIET_S,
    ENTER_AFTER_PASTE_S,
    ONE_PASTE_S,
    Burst,
    chip,
    chip_at,
    expanded,
    normalised,
    worth_a_chip,
)

_KEYS_OF_TEXT = {"enter": "\n", "ctrl+j": "\n", "tab": "\t"}


class Prompt(TextArea):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="prompt.send"),
        Binding("ctrl+j,shift+enter,alt+enter,ctrl+enter", "newline", "New line", id="prompt.newline"),
        Binding("up", "earlier", "Earlier prompt, from the first line", id="prompt.earlier"),
        Binding("down", "later", "Later prompt, from the last line", id="prompt.later"),
        Binding("end,ctrl+e", "end", "End of line, then of the chat", show=False, id="prompt.end"),
        Binding("pageup", "screen.page(-1)", show=False, id="chat.up"),
        Binding("pagedown", "screen.page(1)", show=False, id="chat.down"),
        Binding("ctrl+c,super+c", "screen.interrupt", show=False, id="chat.interrupt"),
        Binding("ctrl+d", "delete_or_quit", show=False),
    ]

    class Submitted(Message):
        """The user sent `prompt`; `shown` is the same with its chips."""

        def __init__(self, prompt: str, shown: str) -> None:
            super().__init__()
            self.prompt = prompt
            self.shown = shown

    def __init__(self, clock: Callable[[], float] = lambda: Message().time) -> None:
        """`clock` must be the one that keys are stamped with; it differs between systems."""
        super().__init__(
            placeholder="Ask anything, or paste some code",
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
        )
        self.match_cursor_bracket = False
        self.clock = clock
        self.pastes: dict[str, str] = {}
        """What the chips in the text stand for."""
        self.history_of_prompts = History()
        self._number = 0
        self._burst = Burst()
        self._burst_timer: Timer | None = None
        self._burst_chip: tuple[str, float] | None = None
        """Label and time of the chip that the last burst became."""
        self._paste_ended_s = float("-inf")
        """When a bracketed paste that ends in a newline arrived."""

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._place_cursor())

    def recall(self, text: str, pastes: dict[str, str]) -> None:
        """Shows an earlier prompt, ready to be edited."""
        self.pastes = dict(pastes)
        self.load_text(text)
        self.move_cursor(self.document.end)

    def remember(self, text: str) -> None:
        """Adds a prompt that was not typed here to the history."""
        self.history_of_prompts.add(Entry(text, {}))

    def bring_back(self, shown: str) -> None:
        """Shows a sent prompt again, chips and all, unless another one is being typed."""
        if not self.text and (entry := self.history_of_prompts.find(shown)):
            self.recall(entry.text, dict(entry.pastes))

    def empty(self) -> None:
        self.recall("", {})

    async def action_send(self) -> None:
        if not self.text.strip():
            return
        shown, prompt = self.text, expanded(self.text, self.pastes)
        self.history_of_prompts.add(Entry(shown, self.pastes))
        self.empty()
        self.post_message(self.Submitted(prompt, shown))

    def action_newline(self) -> None:
        self._type("\n")

    def action_earlier(self) -> None:
        if not self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_cursor_up()
        elif entry := self.history_of_prompts.earlier(Entry(self.text, self.pastes)):
            self.recall(entry.text, dict(entry.pastes))

    def action_later(self) -> None:
        if not self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_cursor_down()
        elif entry := self.history_of_prompts.later():
            self.recall(entry.text, dict(entry.pastes))

    async def action_end(self) -> None:
        if self.cursor_location == self.document.end:
            await self.run_action("screen.follow")
        else:
            self.action_cursor_line_end()

    async def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("screen.arm_quit('chat.end')")

    async def _on_key(self, event: events.Key) -> None:
        now_s = event.time  # stamped on arrival: keys that waited for a busy screen still count as one burst
        character = _KEYS_OF_TEXT.get(event.key) or (event.character if event.is_printable else None)
        if character is None:
            self._end_burst()
        elif not self._is_command and self._burst.feed(character, now_s):
            event.stop()
            event.prevent_default()
            self._hold(now_s)
        elif event.key == "enter":
            event.prevent_default()
            if now_s - self._paste_ended_s <= ENTER_AFTER_PASTE_S:
                event.stop()
            elif self._burst.guards_enter(now_s):
                event.stop()
                self._type("\n")

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._end_burst()
        self._burst_chip = None
        text = normalised(event.text)
        if text.endswith("\n"):
            self._paste_ended_s = event.time
        self._insert_pasted(text)

    def edit(self, edit: Edit) -> EditResult:
        """Chips change as one: an edit that reaches into one takes it whole, typing inside one goes behind it."""
        start, end = sorted((edit.from_location, edit.to_location))
        first, last = self._chip(start), self._chip(end)
        if start == end and first:
            edit.from_location = edit.to_location = first[1]
        elif first or last:
            edit.from_location = first[0] if first else start
            edit.to_location = last[1] if last else end
        return super().edit(edit)

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """The cursor steps over a chip, never into it."""
        start, end = event.selection
        if start == end == self.cursor_location and (found := self._chip(end)):
            before = getattr(self, "_cursor_was", end)
            self.move_cursor(found[0] if before >= found[1] else found[1])
        self._cursor_was = self.cursor_location

    def _place_cursor(self) -> None:
        """Keeps the terminal's cursor at the caret when the prompt moves: input methods open their window there."""
        if self.has_focus:
            self.app.cursor_position = self.cursor_screen_offset

    @property
    def _is_command(self) -> bool:
        return self.text.startswith("/") and self.document.line_count == 1

    def _chip(self, location: Location) -> tuple[Location, Location] | None:
        """Ends of the chip that `location` lies strictly inside of."""
        row, column = location
        if not self.pastes or row >= self.document.line_count:
            return None
        found = chip_at(self.document.get_line(row), column, self.pastes)
        return ((row, found[0]), (row, found[1])) if found else None

    def _type(self, text: str) -> None:
        self._replace_via_keyboard(text, *self.selection)

    def _insert_pasted(self, text: str) -> str | None:
        """Types `text`, or a chip in its place; returns the chip."""
        label = None
        if worth_a_chip(text):
            self._number += 1
            label = chip(self._number, text)
            self.pastes[label] = text
        self._type(label or text)
        self.scroll_cursor_visible()
        return label

    def _hold(self, now_s: float) -> None:
        """Takes back what was typed of a burst before it was known, and waits for its end."""
        self._take_back(self._burst.typed.replace("\t", ""))
        if self._burst_timer is None:
            if self._burst_chip and now_s - self._burst_chip[1] > ONE_PASTE_S:
                self._burst_chip = None
            self._burst_timer = self.set_interval(BURST_QUIET_S / 2, self._end_quiet_burst)

    def _take_back(self, typed: str) -> None:
        """Removes `typed` from before the cursor, if it stands there."""
        row, column = self.cursor_location
        first = row - typed.count("\n")
        if not typed or first < 0 or not self.get_text_range((first, 0), (row, column)).endswith(typed):
            return
        head = typed.partition("\n")[0]
        end = column if first == row else len(self.document.get_line(first))
        self.delete((first, end - len(head)), (row, column))

    def _end_quiet_burst(self) -> None:
        if self._burst.over(self.clock()):
            self._end_burst()

    def _end_burst(self) -> None:
        if self._burst_timer is not None:
            self._burst_timer.stop()
            self._burst_timer = None
        text = self._burst.take()
        if text:
            label = self._insert_pasted(self._earlier_part() + text)
            self._burst_chip = (label, self.clock()) if label else None

    def _earlier_part(self) -> str:
        """Takes the chip away that a burst just before became, if it stands before the cursor, and returns its text:
        a terminal under load delivers one paste in several bursts."""
        label = self._burst_chip[0] if self._burst_chip else ""
        row, column = self.cursor_location
        if not label or not self.document.get_line(row)[:column].endswith(label):
            return ""
        self._take_back(label)
        self._number -= 1
        return self.pastes.pop(label)
