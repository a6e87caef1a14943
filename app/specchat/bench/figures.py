"""Figures of the rounds of one or several answers: all that the bench prints about time and acceptance comes from here,
and can be computed again from the traces."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specengine.trace import Part, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Where the time of rounds went, and how evenly tokens came. Seconds are wall-clock."""

    token_p50_s: float
    """A round's seconds are shared equally among the tokens that it emitted: half of all tokens took no longer,"""
    token_p99_s: float
    """and 99 of 100."""
    pause_s: float
    """The longest round: as long the text stood still."""
    draft_share: float
    verify_share: float
    host_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFigures:
    """What became of one source's drafts, as far as the answer's end let it be seen. Entry i of each tuple is about the
    i-th token of a draft, from 1 on; where prompt lookup went on behind a draft model, each counts its own."""

    source: str
    rounds: int
    drafted: int
    accepted: int
    acceptance: float
    drafted_at: tuple[int, ...]
    """Drafts that had an i-th token,"""
    reached_at: tuple[int, ...]
    """of these, those with all tokens before it accepted,"""
    accepted_at: tuple[int, ...]
    """and of these, those with it accepted too."""


def timing(rounds: Sequence[Round]) -> Timing | None:
    """None where there are no rounds."""
    if not rounds:
        return None
    shares = sorted((one.seconds / one.emitted, one.emitted) for one in rounds if one.emitted)
    total = sum(one.seconds for one in rounds)
    return Timing(
        token_p50_s=percentile(shares, 0.50),
        token_p99_s=percentile(shares, 0.99),
        pause_s=max(one.seconds for one in rounds),
        draft_share=sum(one.draft_s for one in rounds) / total,
        verify_share=sum(one.verify_s for one in rounds) / total,
        host_share=sum(one.host_s for one in rounds) / total,
    )


def percentile(weighted: Sequence[tuple[float, int]], share: float) -> float:
    """The least value, of increasing (value, weight) pairs, that at least a `share` of all weight does not exceed."""
    wanted = share * sum(weight for _, weight in weighted)
    seen = 0
    for value, weight in weighted:
        seen += weight
        if seen >= wanted:
            return value
    return weighted[-1][0]


def by_source(rounds: Iterable[Round]) -> tuple[SourceFigures, ...]:
    """One for each source that drafted, by name."""
    drafts: dict[str, list[Part]] = {}
    for part in (part for one in rounds for part in one.parts):
        drafts.setdefault(part.source, []).append(part)
    return tuple(_figures(source, drafts[source]) for source in sorted(drafts))


def _figures(source: str, parts: Sequence[Part]) -> SourceFigures:
    drafted_at: Counter[int] = Counter()
    reached_at: Counter[int] = Counter()
    accepted_at: Counter[int] = Counter()
    for part in parts:
        drafted_at.update(range(1, part.judged + 1))
        reached_at.update(range(1, part.reached + 1))
        accepted_at.update(range(1, part.accepted + 1))
    drafted, accepted = sum(part.judged for part in parts), sum(part.accepted for part in parts)
    positions = range(1, max(drafted_at) + 1)
    return SourceFigures(
        source=source,
        rounds=len(parts),
        drafted=drafted,
        accepted=accepted,
        acceptance=accepted / drafted,
        drafted_at=tuple(drafted_at[i] for i in positions),
        reached_at=tuple(reached_at[i] for i in positions),
        accepted_at=tuple(accepted_at[i] for i in positions),
    )
