"""Pastes kept out of the text area: chips that stand for them, and bursts of keys that are a paste."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

CHIP_LINES = 8
CHIP_CHARACTERS = 800
"""A paste of this many lines or characters, or more, becomes a chip."""

CHAR_GAP_S = 0.03
"""Keys closer together than this may be a paste that the terminal did not bracket."""
BURST_KEYS = 3
"""This many such keys in a row are one."""
BURST_QUIET_S = 0.08
"""A burst is over after this much silence."""
ONE_PASTE_S = 1.0
"""A burst that begins this soon after another one ended, right behind it, is the same paste."""
ENTER_AFTER_BURST_S = 0.12
ENTER_AFTER_LONG_BURST_S = 0.4
"""An Enter this soon after a burst's last key is its next newline; longer where it was surely pasted, because a
terminal under load delivers a paste with pauses."""
SURELY_PASTED = 20
"""Characters of a burst that no key repeat and no input method makes."""
ENTER_AFTER_PASTE_S = 0.15
"""An Enter this soon after a bracketed paste that ends in a newline belongs to it: Windows Terminal sends one more."""

_CHIP = re.compile(r"\[Pasted #\d+: [\d,]+ (?:lines|characters)\]")


def normalised(text: str) -> str:
    """Terminals send pasted newlines as carriage returns."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def worth_a_chip(text: str) -> bool:
    return len(text) >= CHIP_CHARACTERS or text.count("\n") + 1 >= CHIP_LINES


def chip(number: int, text: str) -> str:
    """The label that stands for `text` in the prompt."""
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
    return f"[Pasted #{number}: {size}]"


def expanded(text: str, pastes: Mapping[str, str]) -> str:
    """`text` with every known chip replaced by what it stands for. Chips inside pasted text stay as they are."""
    return _CHIP.sub(lambda found: pastes.get(found[0], found[0]), text)


def chip_at(line: str, column: int, pastes: Mapping[str, str]) -> tuple[int, int] | None:
    """Start and end of the chip that `column` lies strictly inside of."""
    for found in _CHIP.finditer(line):
        if found.start() < column < found.end() and found[0] in pastes:
            return found.span()
    return None


@dataclass(slots=True)
class Burst:
    """Tells a paste without brackets from typing, by the time between keys."""

    _keys: list[str] = field(default_factory=list)
    _known: bool = False
    _last_s: float = float("-inf")
    _enter_until_s: float = float("-inf")

    def feed(self, character: str, now_s: float) -> bool:
        """Takes the next key; true if it belongs to a burst and must not be typed."""
        if not self._known and now_s - self._last_s > CHAR_GAP_S:
            self._keys.clear()
        self._last_s = now_s
        self._keys.append(character)
        self._known = len(self._keys) >= BURST_KEYS
        return self._known

    @property
    def typed(self) -> str:
        """What was typed before the burst was known as one; not empty right after that moment only."""
        return "".join(self._keys[:-1]) if len(self._keys) == BURST_KEYS else ""

    def over(self, now_s: float) -> bool:
        return self._known and now_s - self._last_s >= BURST_QUIET_S

    def take(self) -> str:
        """Ends the burst, if there is one, and returns it whole."""
        text = "".join(self._keys) if self._known else ""
        if self._known:
            sure = "\n" in text or len(text) >= SURELY_PASTED
            self._enter_until_s = self._last_s + (ENTER_AFTER_LONG_BURST_S if sure else ENTER_AFTER_BURST_S)
        self._keys.clear()
        self._known = False
        return text

    def guards_enter(self, now_s: float) -> bool:
        """True where an Enter belongs to the burst that just ended, and must not send."""
        return now_s <= self._enter_until_s
