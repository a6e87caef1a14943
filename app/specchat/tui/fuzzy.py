"""Which of many candidates was meant by a few letters."""

import re
from collections.abc import Iterable


def best(typed: str, candidates: Iterable[str], most: int) -> list[str]:
    """The candidates that hold the letters of `typed` in this order, best first: those whose last part begins with
    it, then those that hold it in one piece, then the rest; shorter ones first. Capitals make no difference."""
    pieces = re.compile(".*?".join(map(re.escape, typed)), re.IGNORECASE | re.DOTALL)
    ranked = [
        (_rank(typed.lower(), candidate, found.end() - found.start()), position, candidate)
        for position, candidate in enumerate(candidates)
        if (found := pieces.search(candidate))
    ]
    if typed:
        ranked.sort()
    return [candidate for _, _, candidate in ranked[:most]]


def _rank(typed: str, candidate: str, spread: int) -> tuple[int, int, int]:
    lower = candidate.lower()
    name = lower.rstrip("/").rpartition("/")[2]
    if lower == typed or name == typed:
        kind = 0
    elif lower.startswith(typed) or name.startswith(typed):
        kind = 1
    elif typed in lower:
        kind = 2
    else:
        kind = 3
    return kind, spread if kind == 3 else 0, len(candidate)
