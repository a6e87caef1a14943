"""Stats in words: the status bar's pieces and the line under an answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rich.cells import cell_len

from specchat.chat import Answer
from specchat.tui.course import BLOCKS, Course, sparkline
from specengine.protocol import Loaded
from specengine.settings import Speculation
from specengine.stats import Stats

UNKNOWN = "–"
_SPARK = 12
_LEAST_SPARK = 6
"""Columns that a sparkline needs."""
SOURCES = {"lookup": "prompt lookup", "draft": "draft model"}
_ENDINGS = {
    "stopped": "stopped",
    "length": "cut at max tokens",
    "context": "cut: the context is full",
    "failed": "broken off",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the status bar; where room is short, those of the highest rank are left out."""

    text: str
    rank: int
    style: str = ""
    drawn: Callable[[int], str] | None = field(default=None, compare=False)
    """The same in so many columns, for what can be drawn smaller."""

    def within(self, columns: int) -> "Piece | None":
        """The piece as it fits into so many columns, if it does."""
        if cell_len(self.text) <= columns:
            return self
        return replace(self, text=self.drawn(columns)) if self.drawn and columns >= _LEAST_SPARK else None


def names(loaded: Loaded | None) -> str:
    """Target and draft; the draft without the family name that it shares with the target."""
    if loaded is None:
        return "no model"
    if not loaded.draft:
        return loaded.name
    family, parts = loaded.name.split("-"), loaded.draft.split("-")
    while len(parts) > 1 and family and parts[0] == family[0]:
        del parts[0], family[0]
    return f"{loaded.name} + {'-'.join(parts)}"


def status(
    loaded: Loaded | None,
    stats: Stats | None,
    live: bool,
    speculation: Speculation,
    course: Course | None = None,
    levels: str = BLOCKS,
) -> list[Piece]:
    """The pieces from left to right. Rates are recent ones while an answer streams, else those of the last answer;
    `course` is how that went, drawn with `levels`. What is not known is a dash."""
    stats = stats or Stats()
    rate = stats.recent_tokens_per_s if live else stats.tokens_per_s
    speedup = stats.recent_speedup if live else stats.speedup
    n_ctx = loaded.n_ctx if loaded else stats.n_ctx
    used = f"{stats.context_used:,}" if stats.context_used else UNKNOWN
    drafting = f"γ {stats.gamma} {stats.source}" if stats.gamma else "γ 0"
    room = f"{used}/{n_ctx:,}" if n_ctx else UNKNOWN
    return [
        Piece(names(loaded), 2),
        Piece(f"{number(rate)} tok/s", 1),
        *_sparks(course.rates if course else [], 7, levels),
        Piece(f"{number(speedup, 2)}×", 3),
        Piece(f"{percent(stats.acceptance)} accepted", 5),
        Piece(drafting if stats.target_passes else f"γ {UNKNOWN}", 4),
        *_sparks(course.gammas if course else [], 8, levels),
        Piece(f"{room} ctx", 6),
        Piece(f"SPEC {speculation}", 0, f"spec-{speculation}"),
    ]


def by_source(stats: Stats | None) -> str:
    """Acceptance, source by source; empty before any draft."""
    sources = stats.sources if stats else {}
    return "\n".join(
        f"{SOURCES.get(name, name)}: {percent(source.acceptance)}, {source.accepted:,} of {source.drafted:,} tokens"
        for name, source in sources.items()
    )


def fitting(pieces: Sequence[Piece], width: int, gap: int = 3) -> list[Piece]:
    """The pieces that fit into `width` columns with `gap` between them, the lowest ranks first; one always stays."""
    kept: dict[int, Piece] = {}
    room = width
    for at, piece in sorted(enumerate(pieces), key=lambda numbered: numbered[1].rank):
        if fitted := piece.within(room) if kept else piece:
            kept[at] = fitted
            room -= cell_len(fitted.text) + gap
    return [kept[at] for at in sorted(kept)]


def reading(done: int, total: int) -> str:
    return f"reading {done:,}/{total:,} tokens"


def footer(answer: Answer) -> str:
    """One line under an answer."""
    stats = answer.stats or Stats()
    parts = [f"{stats.emitted:,} tokens", f"{number(stats.tokens_per_s)} tok/s"] if answer.stats else []
    if stats.speedup is not None:
        parts.append(f"{stats.speedup:.2f}×")
    if stats.acceptance is not None:
        parts.append(f"{percent(stats.acceptance)} of drafts accepted")
    if answer.ending in _ENDINGS:
        parts.append(_ENDINGS[answer.ending])
    return " · ".join(parts)


def _sparks(values: Sequence[float], rank: int, levels: str) -> list[Piece]:
    """A sparkline, once there is something to draw."""
    if len(values) < 2:
        return []
    return [Piece(sparkline(values, _SPARK, levels), rank, drawn=lambda columns: sparkline(values, columns, levels))]


def number(value: float | None, digits: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f} s"
