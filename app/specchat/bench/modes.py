"""The modes that a workload is answered in, and how they are written.

`plain`, `lookup`, `draft` and `auto` let the engine choose each draft's length. `lookup:8`, `draft:3` and `both:5` fix
it: drafts of 8 tokens by prompt lookup wherever it finds a match, of 3 by the draft model, and of 5 by prompt lookup
where it finds a match and else by the draft model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from specengine.costs import GRID
from specengine.protocol import Loaded
from specengine.settings import Speculation

ADAPTIVE: Final = ("plain", "lookup", "draft", "auto")
MOST_GAMMA: Final = GRID[-1] - 1
"""The widest pass verifies this many drafted tokens."""

_FIXED: Final = {"lookup": (True, False), "draft": (False, True), "both": (True, True)}
"""Prompt lookup, draft model."""


@dataclass(frozen=True, slots=True)
class Mode:
    """What is switched on."""

    name: str
    speculation: Speculation
    lookup: bool
    draft: bool
    gamma: int | None = None
    """A fixed draft length."""


def mode(name: str) -> Mode:
    """What a name stands for.

    Raises:
        ValueError: it stands for nothing, in one sentence.
    """
    if name in ADAPTIVE:
        return Mode(name, "off" if name == "plain" else "auto", name in ("lookup", "auto"), name in ("draft", "auto"))
    source, _, length = name.partition(":")
    if source not in _FIXED or not (length.isascii() and length.isdecimal()) or not 1 <= int(length) <= MOST_GAMMA:
        raise ValueError(
            f"there is no {name!r}; choose from {', '.join(ADAPTIVE)}, or fix the draft length with lookup:N, draft:N "
            f"or both:N (N from 1 to {MOST_GAMMA})."
        )
    return Mode(f"{source}:{int(length)}", "auto", *_FIXED[source], int(length))


def possible(loaded: Loaded) -> tuple[str, ...]:
    """The modes of adaptive length that this model, with its draft model if there is one, can be run in."""
    if loaded.speculation_refused:
        return ("plain",)
    return ADAPTIVE if loaded.draft else ("plain", "lookup", "auto")


def sweep(lengths: Sequence[int], loaded: Loaded) -> tuple[str, ...]:
    """Every source that is there at every length."""
    if loaded.speculation_refused:
        return ()
    return tuple(f"{source}:{length}" for source in (_FIXED if loaded.draft else ("lookup",)) for length in lengths)


def refusal(name: str, loaded: Loaded) -> str | None:
    """Why this model can't be run in a mode; None if it can."""
    wanted = mode(name)
    if wanted.speculation != "off" and loaded.speculation_refused:
        return loaded.speculation_refused
    if wanted.draft and name != "auto" and loaded.draft is None:
        return loaded.draft_refused or "No draft model is loaded; name one with --draft."
    return None
