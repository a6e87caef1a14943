"""Pasted text: how it is cleaned, and when it is kept out of the text area."""

import re

CHIP_LINES = 8
"""A paste of this many lines becomes a chip, where the user sets no other number; so does one of a few long lines."""
CHARACTERS_A_LINE = 100
"""A paste counts as one line for each so many characters."""
ALWAYS_A_CHIP = 100_000
"""Characters of a paste that becomes a chip whatever was set: the text area would stall at every key."""
MOST_SHOWN = 50_000
"""Characters of a chip that can be expanded in place."""
ENTER_AFTER_PASTE_S = 0.15
"""An Enter this soon after a bracketed paste that ends in a newline belongs to it: Windows Terminal sends one more."""

_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def normalised(text: str) -> str:
    """Lines ended by newlines, as terminals don't send them, and no control characters but those and tabs."""
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def worth_a_chip(text: str, lines: int = CHIP_LINES) -> bool:
    """`lines` of a paste make it a chip; with 0, only what the text area can't take does."""
    if len(text) >= ALWAYS_A_CHIP:
        return True
    return lines > 0 and (len(text) >= lines * CHARACTERS_A_LINE or text.count("\n") + 1 >= lines)
