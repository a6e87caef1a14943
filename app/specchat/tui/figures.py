"""Stats in words: the status bar's pieces, the line under an answer, the table of /stats."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from specchat.chat import Answer
from specengine.protocol import Loaded
from specengine.settings import Speculation
from specengine.stats import Stats

UNKNOWN = "–"
_SOURCES = {"lookup": "prompt lookup", "draft": "draft model"}
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


def status(loaded: Loaded | None, stats: Stats | None, live: bool, speculation: Speculation) -> list[Piece]:
    """The pieces from left to right. Rates are recent ones while an answer streams, else those of the last answer."""
    stats = stats or Stats()
    rate = stats.recent_tokens_per_s if live else stats.tokens_per_s
    speedup = stats.recent_speedup if live else stats.speedup
    n_ctx = stats.n_ctx or (loaded.n_ctx if loaded else 0)
    drafting = f"γ {stats.gamma} {stats.source}" if stats.gamma else "γ 0"
    room = f"{stats.context_used:,}/{n_ctx:,}" if n_ctx else UNKNOWN
    return [
        Piece(names(loaded), 2),
        Piece(f"{_number(rate)} tok/s", 1),
        Piece(f"{_number(speedup, 2)}×", 3),
        Piece(f"{_percent(stats.acceptance)} accepted", 5),
        Piece(drafting if stats.target_passes else f"γ {UNKNOWN}", 4),
        Piece(f"{room} ctx", 6),
        Piece(f"SPEC {speculation}", 0, f"spec-{speculation}"),
    ]


def fitting(pieces: Sequence[Piece], width: int, gap: int = 3) -> list[Piece]:
    """The pieces that fit into `width` columns with `gap` between them, the lowest ranks first; one always stays."""
    kept: list[Piece] = []
    room = width + gap
    for piece in sorted(pieces, key=lambda piece: piece.rank):
        if not kept or cell_len(piece.text) + gap <= room:
            kept.append(piece)
            room -= cell_len(piece.text) + gap
    return [piece for piece in pieces if piece in kept]


def reading(done: int, total: int) -> str:
    return f"reading {done:,}/{total:,} tokens"


def footer(answer: Answer) -> str:
    """One line under an answer."""
    stats = answer.stats or Stats()
    parts = [f"{stats.emitted:,} tokens", f"{_number(stats.tokens_per_s)} tok/s"] if answer.stats else []
    if stats.speedup is not None:
        parts.append(f"{stats.speedup:.2f}×")
    if stats.acceptance is not None:
        parts.append(f"{_percent(stats.acceptance)} of drafts accepted")
    if answer.ending in _ENDINGS:
        parts.append(_ENDINGS[answer.ending])
    return " · ".join(parts)


def explained(answer: Answer | None) -> str:
    """The table of /stats: every figure of an answer with its meaning."""
    if answer is None or answer.stats is None:
        return "No answer yet: figures come with the first one."
    stats = answer.stats
    rows = [
        ("tokens", f"{stats.emitted:,} in {stats.target_passes:,} target passes"),
        ("per pass", f"{_number(stats.tokens_per_pass, 2)} tokens (1.00 without speculation)"),
        ("speed", f"{_number(stats.tokens_per_s)} tok/s; plain decoding {_number(_plain_rate(stats))} tok/s"),
        ("speedup", f"{_number(stats.speedup, 2)}× over plain decoding, measured here"),
        ("acceptance", f"{_percent(stats.acceptance)}: {stats.accepted:,} of {stats.drafted:,} drafted tokens"),
    ]
    for name, source in stats.sources.items():
        counts = f"{_percent(source.acceptance)}: {source.accepted:,} of {source.drafted:,} in {source.rounds:,} rounds"
        rows.append((f"  {_SOURCES.get(name, name)}", counts))
    rows += [
        ("first token", f"{_seconds(stats.first_token_s)} after the request"),
        ("prompt", f"{stats.prompt_tokens:,} tokens: {stats.reused_tokens:,} reused, {stats.prefilled_tokens:,} read"),
        ("draft model", f"{stats.draft_passes:,} passes, {stats.draft_prefilled_tokens:,} tokens read"),
        ("time", f"prefill {_seconds(stats.prefill_s)}, draft {_seconds(stats.draft_s)}"),
        ("", f"verify {_seconds(stats.verify_s)}, host {_seconds(stats.host_s)}"),
        ("context", f"{stats.context_used:,} of {stats.n_ctx:,} tokens"),
    ]
    return "\n".join(f"{label:<16}{value}" for label, value in rows)


def _plain_rate(stats: Stats) -> float | None:
    return 1 / stats.plain_s_per_token if stats.plain_s_per_token else None


def _number(value: float | None, digits: int = 1) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f} s"
