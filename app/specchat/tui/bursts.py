"""Pastes that a terminal did not bracket: keys that come faster than anybody types."""

from dataclasses import dataclass, field

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
_ALWAYS = ("ctrl+c", "ctrl+d", "ctrl+q")
"""Keys that get a user out."""


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

    def forget(self) -> None:
        """What was fed so far belongs to no burst, however fast it came."""
        self._keys.clear()
        self._known = False

    def holds_back(self, key: str, now_s: float) -> bool:
        """Whether a key that is no text is a control character of a paste, which must not act: nobody presses one so
        soon after a letter."""
        pasted = bool(self._keys) and now_s - self._last_s <= CHAR_GAP_S
        return pasted and key not in _ALWAYS and (key == "escape" or key.startswith(("ctrl+", "alt+")))

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
        self.forget()
        return text

    def guards_enter(self, now_s: float) -> bool:
        """True where an Enter belongs to the burst that just ended, and must not send."""
        return now_s <= self._enter_until_s
