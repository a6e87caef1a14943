"""Removes from a model's words what a terminal would obey instead of show."""

import re
from typing import Final


def clean(data: bytes) -> str:
    """The text of a whole answer, as `Cleaner` lets it through; invalid UTF-8 becomes U+FFFD."""
    cleaner = Cleaner()
    return cleaner.push(data.decode("utf-8", errors="replace")) + cleaner.finish()


class Cleaner:
    """Cleans text that arrives in parts; how it was split makes no difference.

    Newlines and tabs stay, "\\r\\n" and "\\r" become "\\n", all other control characters (C0, DEL, C1) go, and with
    them whole escape sequences (ECMA-48: CSI, OSC, DCS, APC, PM, SOS and the short ones). A sequence that doesn't end
    within `LONGEST_SEQUENCE` characters, or that another control character interrupts, loses only its control
    characters: the rest is shown as text. Bidirectional embeddings, overrides and isolates go too: they make code read
    otherwise than it runs (CVE-2021-42574). Right-to-left text is shown without them.
    """

    def __init__(self) -> None:
        self._held = ""
        self._after_return = False

    @property
    def pending(self) -> bool:
        """Text is held back, because it may turn out to be an escape sequence."""
        return bool(self._held)

    def push(self, text: str) -> str:
        """The clean text that is settled by now."""
        if not text:
            return ""
        if self._after_return:
            self._after_return = False
            text = text.removeprefix("\n")
        if not self._held and not _SUSPECT.search(text):
            return text
        text = self._held + text
        unfinished = _UNFINISHED.search(text)
        settled = text[: unfinished.start()] if unfinished else text
        self._held = text[len(settled) :]
        self._after_return = not self._held and settled.endswith("\r")
        return _cleaned(settled)

    def finish(self) -> str:
        """The rest, once no more text comes."""
        rest, self._held = self._held, ""
        return _cleaned(rest)


LONGEST_SEQUENCE: Final = 1024
"""Characters of an escape sequence, its ends included; an OSC 8 link with a long address still fits."""

_BIDI: Final = "\u202a-\u202e\u2066-\u2069"
_SUSPECT: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")

_STRING: Final = r"(?:\x1b[P\]X^_]|[\x90\x9d\x98\x9e\x9f])[^\x00-\x1f\x7f-\x9f]{0,1020}"
_CSI: Final = r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}"
_SHORT: Final = r"\x1b[ -/]{0,8}"
_FINISHED: Final = re.compile(
    rf"{_STRING}(?:\x07|\x9c|\x1b\\)|{_CSI}[@-~]|\x1b[ -/]{{1,8}}[0-~]|\x1b[0-OQ-WYZ\\`-~]|\r\n?|{_SUSPECT.pattern}"
)
_UNFINISHED: Final = re.compile(rf"(?:{_STRING}\x1b?|{_CSI}|{_SHORT})\Z")


def _cleaned(text: str) -> str:
    return _FINISHED.sub(lambda found: "\n" if found[0].startswith("\r") else "", text)
