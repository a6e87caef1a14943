"""An answer's speed explained: how fast, from what, where the time went, and why γ was what it was."""

from collections.abc import Iterable
from textwrap import wrap
from typing import Final

from specchat.chat import Answer
from specchat.tui.course import BLOCKS, Course, sparkline
from specchat.tui.figures import SOURCES, UNKNOWN, number, percent, seconds
from specengine.stats import Stats, Why

_LABEL: Final = 20
"""Columns of the labels; the values begin behind them."""
_BAR: Final = 20
_SHARES: Final = 15
"""Columns of what stands before a bar."""
_SPARK: Final = 40
_LEAST: Final = 8
"""Columns below which nothing is drawn, and a value is not broken."""


def explained(answer: Answer | None, course: Course | None = None, levels: str = BLOCKS, width: int = 80) -> str:
    """What /stats says of an answer, in lines of `width` columns. `course` is how it went, where that is known;
    `levels` draw it."""
    if answer is None or answer.stats is None:
        return "No answer yet: figures come with the first one."
    stats = answer.stats
    parts = [_speed(stats), _acceptance(stats), _time(stats, levels, width)]
    if course is not None and len(course.rates) > 1:
        parts.append(_course(course, levels, width))
    why = [line for reason in reasons(answer) for line in _hanging("  ", reason, width)]
    return "\n\n".join([*(_table(part, width) for part in parts), "\n".join(["Why γ was what it was", *why])])


def reasons(answer: Answer) -> list[str]:
    """Sentences about why drafts were as long as they were."""
    stats = answer.stats or Stats()
    why = stats.why
    rounds = why.off + why.fixed + why.free
    if not rounds:
        return ["No reasons were kept for this answer."]
    said = []
    if why.off:
        said.append(_in(why.off, rounds, "speculation was off: every pass wrote one token."))
    if why.fixed:
        said.append(_in(why.fixed, rounds, "you had fixed γ."))
    if why.free:
        said.append(_lookup(answer, stats, why))
    if why.free or (why.fixed and why.c is not None):
        said.append(_draft(answer, stats, why))
    return said


def _speed(stats: Stats) -> list[tuple[str, str]]:
    plain = 1 / stats.plain_s_per_token if stats.plain_s_per_token else None
    return [
        ("tokens", f"{stats.emitted:,} in {stats.target_passes:,} target passes"),
        ("per pass", f"{number(stats.tokens_per_pass, 2)} tokens (1.00 without speculation)"),
        ("speed", f"{number(stats.tokens_per_s)} tok/s; plain decoding {number(plain)} tok/s"),
        ("speedup", _speedup(stats)),
        ("first token", f"{seconds(stats.first_token_s)} after the request"),
        ("prompt", _prompt(stats)),
        ("draft model", f"{stats.draft_passes:,} passes, {stats.draft_prefilled_tokens:,} tokens read"),
        ("context", f"{stats.context_used:,} of {stats.n_ctx:,} tokens"),
    ]


def _speedup(stats: Stats) -> str:
    if stats.speedup is not None:
        return f"{stats.speedup:.2f}× over plain decoding, measured here"
    if not stats.drafted:
        return f"{UNKNOWN}: nothing was drafted"
    if not stats.speculated:
        return f"{UNKNOWN}: too little was drafted to tell"
    return f"{UNKNOWN}: plain decoding was not measured"


def _prompt(stats: Stats) -> str:
    """The last token of a prompt is no part of the prefill: the first pass of the answer reads it."""
    read = max(stats.prefilled_tokens, stats.prompt_tokens - stats.reused_tokens)
    return f"{stats.prompt_tokens:,} tokens: {stats.reused_tokens:,} reused, {read:,} read"


def _acceptance(stats: Stats) -> list[tuple[str, str]]:
    drafted = f"{percent(stats.acceptance)}: {stats.accepted:,} of {stats.drafted:,} drafted tokens stand"
    emitted = f"{percent(stats.drafted_share)}: {stats.accepted:,} of {stats.emitted:,} emitted tokens were drafts"
    rows = [("accepted / drafted", drafted)]
    for name, source in stats.sources.items():
        counts = f"{percent(source.acceptance)}: {source.accepted:,} of {source.drafted:,} in {source.rounds:,} rounds"
        rows.append((f"  {SOURCES.get(name, name)}", counts))
    return [*rows, ("accepted / emitted", emitted)]


def _time(stats: Stats, levels: str, width: int) -> list[tuple[str, str]]:
    parts = {
        "prefill": stats.prefill_s,
        "draft": stats.draft_s,
        "verify": stats.verify_s,
        "host": stats.host_s,
    }
    whole = sum(parts.values())
    rows = [("time", f"{seconds(whole)}")]
    columns = max(0, min(_BAR, width - _LABEL - _SHARES))
    for name, part in parts.items():
        share = part / whole if whole > 0 else 0.0
        bar = levels[-1] * round(columns * share)
        rows.append((f"  {name}", f"{seconds(part):>9} {percent(share):>4} {bar}".rstrip()))
    return rows


def _course(course: Course, levels: str, width: int) -> list[tuple[str, str]]:
    """Both lines of one length, as they show the same stretch of time."""
    rates, gammas = course.rates, course.gammas
    bounds = (f"{min(rates):.1f} to {max(rates):.1f}", f"{min(gammas):.0f} to {max(gammas):.0f}")
    columns = min(_SPARK, width - _LABEL - 1 - max(len(text) for text in bounds))
    if columns < _LEAST:
        return [("tok/s", bounds[0]), ("γ", bounds[1])]
    lines = (sparkline(values, columns, levels) for values in (rates, gammas))
    return [(label, f"{next(lines)} {text}") for label, text in zip(("tok/s", "γ"), bounds, strict=True)]


def _lookup(answer: Answer, stats: Stats, why: Why) -> str:
    if answer.settings is not None and not answer.settings.lookup:
        return "Prompt lookup was off."
    if not why.offered:
        return "Prompt lookup found nothing earlier that the text repeated."
    used = stats.sources["lookup"].rounds if "lookup" in stats.sources else 0
    found = f"Prompt lookup found a match in {_of(why.offered, why.free)} and drafted in {used:,}"
    if behind := min(why.behind, used):
        found += f", {'all' if behind == used else f'{behind:,} of them'} behind the draft model's tokens"
    alone = "alone " if behind else ""
    if why.shortest_taken is not None:
        found += f", {alone}where matches were {why.shortest_taken} tokens or longer"
    if why.lookup_needs is None and why.two_tokens is None:
        return f"{found}; what passes cost was not told in the end, as the answer broke off."
    if why.lookup_needs is None:
        return f"{found}: checking two tokens costs {number(why.two_tokens)} passes, so no match is likely to pay here."
    return (
        f"{found}: by the costs measured here it pays {alone}from matches of {why.lookup_needs} on, whose next token "
        f"is accepted with {percent(why.lookup_acceptance)}."
    )


def _draft(answer: Answer, stats: Stats, why: Why) -> str:
    if why.c is None:
        return _no_draft(answer)
    used = stats.sources["draft"].rounds if "draft" in stats.sources else 0
    cost = f"a step costs {why.c:.2f} of a target pass"
    if why.draft_needs is None:
        stayed = "stayed off" if not used else f"drafted in {used:,} passes"
        return (
            f"The draft model {stayed}: {cost} and checking two tokens {number(why.two_tokens)}, so even full "
            "acceptance can't pay here."
        )
    needs = f"it pays from an acceptance of {why.draft_needs:.2f} on (drafts of {why.draft_needs_gamma})"
    lately = f"had {why.draft_acceptance:.2f} lately" if why.draft_acceptance is not None else "was not tried yet"
    if not used:
        return f"The draft model stayed off: {cost}; {needs} and {lately}."
    probes = f", {why.probes:,} of them only to learn whether it pays" if why.probes else ""
    return f"The draft model drafted in {used:,} passes{probes}: {cost}; {needs} and {lately}."


def _no_draft(answer: Answer) -> str:
    if answer.draft and answer.settings is not None and not answer.settings.draft:
        return "The draft model was not to be used."
    return "There was no draft model." if not answer.draft else "What the draft model costs was not measured yet."


def _in(rounds: int, all_rounds: int, what: str) -> str:
    return what[0].upper() + what[1:] if rounds == all_rounds else f"In {_of(rounds, all_rounds)} {what}"


def _of(count: int, whole: int) -> str:
    return f"{count:,} of {whole:,} passes"


def _table(rows: Iterable[tuple[str, str]], width: int) -> str:
    return "\n".join(line for label, value in rows for line in _hanging(f"{label:<{_LABEL}}", value, width))


def _hanging(label: str, text: str, width: int) -> list[str]:
    """Lines of a text behind a label, broken at words."""
    lines = wrap(text, max(_LEAST, width - len(label)), break_long_words=False, break_on_hyphens=False)
    return [f"{label if at == 0 else ' ' * len(label)}{line}" for at, line in enumerate(lines)]
