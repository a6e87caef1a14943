"""An answer that goes on after it was cut: one text, one list of ids, one set of counters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from specchat.chat import Answer
from specchat.sources import Run, runs_joined
from specengine.stats import SourceStats, Stats, Why

_HALF = "\ufffd"
"""What stands for half a character at the end of a text that was cut."""


def whole_characters(answer: Answer) -> Answer:
    """The answer without half a character at its end: going on writes that character again."""
    text = answer.text.rstrip(_HALF)
    cut = len(answer.text) - len(text)
    return replace(answer, text=text, runs=_shortened(answer.runs, cut)) if cut else answer


def joined(first: Answer, more: Answer) -> Answer:
    """The answer as a whole. The engine tells the ids of all of it; those of the first part alone still spell its
    beginning."""
    return replace(
        more,
        text=first.text + more.text,
        tokens=more.tokens or first.tokens,
        runs=runs_joined(first.runs, more.runs) if first.runs else (),
        stats=stats_joined(first.stats, more.stats),
    )


def stats_joined(first: Stats | None, more: Stats | None) -> Stats | None:
    """Counters of both parts together; the first token was the first part's, the present state is the second's. None
    where nobody counted the first part: those of the second alone would not be the answer's."""
    if first is None or more is None:
        return first
    added = {
        name: getattr(first, name) + getattr(more, name)
        for name in (
            *("prefilled_tokens", "draft_prefilled_tokens", "draft_caught_up_tokens", "emitted", "target_passes"),
            *("draft_passes", "prefill_s", "draft_s", "verify_s", "host_s"),
        )
    }
    sources: dict[str, Counter[str]] = {}
    for stats in (first, more):
        for name, source in stats.sources.items():
            counts = {"rounds": source.rounds, "drafted": source.drafted, "accepted": source.accepted}
            sources.setdefault(name, Counter()).update(counts)
    return replace(
        more,
        **added,
        prompt_tokens=first.prompt_tokens,
        reused_tokens=first.reused_tokens,
        first_token_s=first.first_token_s,
        sources={name: SourceStats(**counts) for name, counts in sources.items()},
        why=_why_joined(first.why, more.why),
    )


def _why_joined(first: Why, more: Why) -> Why:
    """Rounds of both parts together; what was known in the end is the second's."""
    taken = [why.shortest_taken for why in (first, more) if why.shortest_taken is not None]
    left = [why.longest_left for why in (first, more) if why.longest_left is not None]
    return replace(
        more,
        **{
            name: getattr(first, name) + getattr(more, name)
            for name in ("off", "fixed", "free", "offered", "behind", "probes")
        },
        shortest_taken=min(taken, default=None),
        longest_left=max(left, default=None),
    )


def _shortened(runs: Sequence[Run], characters: int) -> tuple[Run, ...]:
    """The runs of a text that lost so many characters at its end; their tokens stay counted."""
    left = list(runs)
    for index in range(len(left) - 1, -1, -1):
        gone = min(characters, left[index].characters)
        left[index] = replace(left[index], characters=left[index].characters - gone)
        characters -= gone
    return tuple(left)
