"""A text area that knows a paste when it gets one, bracketed by the terminal or not."""

from collections.abc import Callable

from textual import events
from textual.timer import Timer

from specchat.tui.bursts import BURST_KEYS, BURST_QUIET_S, ONE_PASTE_S, Burst
from specchat.tui.pastes import ENTER_AFTER_PASTE_S, normalised
from specchat.tui.widgets.chip_area import ChipArea

_KEYS_OF_TEXT = {"enter": "\n", "ctrl+j": "\n", "tab": "\t"}


class PasteArea(ChipArea):
    def __init__(self, placeholder: str, chip_lines: int, clock: Callable[[], float]) -> None:
        """`clock` must be the one that keys are stamped with; it differs between systems."""
        super().__init__(placeholder, chip_lines)
        self.clock = clock
        self._burst = Burst()
        self._burst_timer: Timer | None = None
        self._burst_chip: tuple[str, float] | None = None
        """Label and time of the chip that the last burst became."""
        self._paste_ended_s = float("-inf")
        """When a bracketed paste that ends in a newline arrived."""

    def takes(self, event: events.Key, *, free: bool) -> bool:
        """Whether a key belongs to a paste, and is dealt with. `free` says that keys may come as fast as they like."""
        now_s = event.time  # stamped on arrival: keys that waited for a busy screen still count as one burst
        character = _KEYS_OF_TEXT.get(event.key) or (event.character if event.is_printable else None)
        if character is None:
            if self._burst.holds_back(event.key, now_s):
                return True
            self._end_burst()
        elif free:
            self._burst.forget()
        elif self._burst.feed(character, now_s):
            self._hold(now_s)
            return True
        return False

    def keeps_enter(self, now_s: float) -> bool:
        """Whether an Enter belongs to the paste before it; as its next newline it is typed."""
        if now_s - self._paste_ended_s <= ENTER_AFTER_PASTE_S:
            return True
        if self._burst.guards_enter(now_s):
            self.type("\n")
            return True
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._end_burst()
        self._burst_chip = None
        text = normalised(event.text)
        if text.endswith("\n"):
            self._paste_ended_s = event.time
        self.insert_pasted(text)

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
        text = normalised(self._burst.take())
        if text:
            label = self.insert_pasted(self._earlier_part() + text)
            self._burst_chip = (label, self.clock()) if label else None

    def _earlier_part(self) -> str:
        """Takes the chip away that a burst just before became, if it stands before the cursor, and returns its text:
        a terminal under load delivers one paste in several bursts, with a key or two alone between them."""
        label = self._burst_chip[0] if self._burst_chip else ""
        _, found, alone = self.get_text_range((0, 0), self.cursor_location).rpartition(label or "\0")
        if not found or len(alone) >= BURST_KEYS:
            return ""
        self._take_back(label + alone)
        self._number -= 1
        text = self.chips.pop(label)
        assert isinstance(text, str)
        return text + alone
