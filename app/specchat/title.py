"""What a chat is called until the user names it, and what its file is called."""

import re
import unicodedata
from typing import Final

LONGEST: Final = 60
_CHIP: Final = re.compile(r"\[[^\]\n]*#\d+[^\]\n]*\]")
_NOTHING: Final = "Untitled"


def title_of(prompt: str, shown: str) -> str:
    """The first words of the first prompt; of what was pasted only where nothing was typed."""
    return one_line(_CHIP.sub(" ", shown)) or one_line(prompt) or _NOTHING


def one_line(text: str) -> str:
    """The first line that says something, safe to print and not too long."""
    for line in text[:4000].splitlines():
        words = " ".join("".join(letter if letter.isprintable() else " " for letter in line).split())
        if words.strip("`~#-=*_>| "):
            return words if len(words) <= LONGEST else words[: LONGEST - 1].rstrip() + "…"
    return ""


def ending_with(title: str) -> str:
    """A title at the end of a sentence: with a full stop, unless it ends a sentence of its own."""
    return title if title.endswith((".", "!", "?", "…")) else f"{title}."


def file_name(title: str, ending: str) -> str:
    """A file name that every system takes."""
    plain = unicodedata.normalize("NFC", title).lower()
    kept = "".join(letter if letter.isalnum() else "-" for letter in plain)
    return (re.sub("-+", "-", kept).strip("-")[:LONGEST] or "chat") + ending
