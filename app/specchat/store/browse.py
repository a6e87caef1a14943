"""Looking through the chats: what a list and its preview show. Each call opens the file for itself; it may block."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specchat.store import search
from specchat.store.chats import Kept, Listed, Store

MOST: Final = 300
"""Chats shown at once; words bring the others up."""
_PREVIEWED_TURNS: Final = 4
_PROMPT_LINES: Final = 6
_ANSWER_LINES: Final = 14
_LINE: Final = 300


@dataclass(frozen=True, slots=True)
class Row:
    chat: Listed
    snippet: str = ""
    """Where the words were found."""


def rows(file: Path, words: str) -> tuple[list[Row], int]:
    """The chats that hold these words, all without any; the one used last first. At most MOST, and how many in all.

    Raises:
        StoreError: they can't be read.
    """
    if not file.exists():
        return [], 0
    with Store(file) as store:
        listed = store.listed()
        found = {find.chat: find.snippet for find in search.find(store, words)} if words.strip() else None
    kept = [Row(chat, found[chat.id] if found else "") for chat in listed if found is None or chat.id in found]
    return kept[:MOST], len(kept)


def preview(kept: Kept) -> str:
    """The last turns of a chat, in so many lines as a glance takes in."""
    parts = [f"— {kept.conversation.system}"] if kept.conversation.system else []
    if len(kept.conversation.turns) > _PREVIEWED_TURNS:
        parts.append("…")
    for turn in kept.conversation.turns[-_PREVIEWED_TURNS:]:
        parts.append(_first_lines(turn.shown, _PROMPT_LINES, "> "))
        if turn.answer:
            parts.append(_first_lines(turn.answer.text, _ANSWER_LINES, ""))
    parts += [_first_lines(turn.shown, _PROMPT_LINES, "> ") for turn in kept.unanswered]
    return "\n\n".join(parts)


def ago(seconds: float, now_s: float) -> str:
    """When that was, as a person would say it."""
    passed = now_s - seconds
    if passed < 60:
        return "just now"
    if passed < 3600:
        return f"{passed // 60:.0f} min ago"
    then, now = time.localtime(seconds), time.localtime(now_s)
    if (then.tm_year, then.tm_yday) == (now.tm_year, now.tm_yday):
        return f"{passed // 3600:.0f} h ago"
    return time.strftime("%a %H:%M" if passed < 6 * 24 * 3600 else "%Y-%m-%d", then)


def _first_lines(text: str, count: int, mark: str) -> str:
    lines = text.strip("\n").split("\n")
    shown = [mark + line[:_LINE] for line in lines[:count]]
    return "\n".join([*shown, mark + "…"] if len(lines) > count else shown)
