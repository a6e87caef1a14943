"""Results as people and programs read them."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from specchat.bench.records import Plan
from specchat.bench.results import Result, Spread
from specchat.bench.rivals.contest import Contestant, RivalResult, comparison, described
from specchat.folding import folded
from specchat.table import Column, table
from specengine.advice import Advice
from specengine.protocol import Loaded

_FASTER: Final = 1.05
_SLOWER: Final = 0.97
"""Ratios to plain between these count as no difference."""
_UNSTEADY: Final = 0.15
"""Spread of plain's rate over the rounds, as a share of its median, above which a bench should be repeated."""
_RATES: Final = (
    *(Column("workload"), Column("mode", least=12), Column("tokens/s", right=True), Column("", "range of tokens/s", 1)),
    *(Column("× plain", right=True), Column("", "range of × plain", 4), Column("× auto", right=True)),
    *(Column("first token", right=True, spare=2), Column("text", spare=3)),
)
_TIMES: Final = (
    *(Column("workload"), Column("mode", least=12), Column("p50", right=True), Column("p99", right=True, spare=5)),
    *(Column("pause", right=True, spare=6), Column("drafting", right=True, spare=2)),
    *(Column("verifying", right=True, spare=3), Column("host", right=True, spare=1)),
    *(Column("tokens/pass", right=True, spare=4), Column("lookup", right=True), Column("draft", right=True)),
)
_TIMES_SAID: Final = "Milliseconds a token and longest pause; shares of time; tokens a pass; acceptance of each source:"


def as_json(
    results: Sequence[Result],
    plan: Plan,
    loaded: Loaded,
    machine: dict[str, Any],
    exact: bool,
    advice: Advice | None = None,
    command: str = "",
    theirs: Sequence[RivalResult] = (),
    field: Sequence[Contestant] = (),
) -> dict[str, Any]:
    """Everything that was found, with what is needed to measure it again; `theirs` are other engines' results."""
    return {
        "model": loaded.name,
        "draft": loaded.draft,
        "machine": machine,
        "command": command,
        "settings": {
            "modes": list(plan.modes),
            "workloads": [workload.name for workload in plan.workloads],
            "max_tokens": plan.max_tokens,
            "rounds": plan.rounds,
            "temperature": plan.sampling.temperature,
            "seed": plan.sampling.seed,
            "gamma": plan.gamma,
            "n_ctx": loaded.n_ctx,
            "exact": exact,
        },
        "against": described(field),
        "results": [
            *({"engine": "specchat", **msgspec.to_builtins(result)} for result in results),
            *(msgspec.to_builtins(result) for result in theirs),
        ],
        "advice": None if advice is None else {"text": str(advice), **msgspec.to_builtins(advice)},
    }


def as_text(report: dict[str, Any]) -> str:
    """Indented JSON, with lists of numbers on one line each."""
    indented = json.dumps(report, indent=2, ensure_ascii=False)
    # A line break inside a list is one of the layout: strings have theirs escaped.
    return re.sub(r"\[\n[\d\s.,e+-]+\]", lambda found: f"[{' '.join(found[0][1:-1].split())}]", indented)


def in_words(
    results: Sequence[Result],
    plan: Plan,
    loaded: Loaded,
    advice: Advice | None = None,
    theirs: Sequence[RivalResult] = (),
    width: int | None = None,
) -> str:
    """Tables with one row for each workload and mode, and what they mean; in a terminal, of its width."""
    if not results:
        return "Nothing was finished, so there is nothing to show."
    parts = [folded(heading(plan, loaded), width), _table(_RATES, list(_all_rates(results, theirs)), width)]
    timed = [row for result in results if (row := _times(result))]
    if timed:
        parts.append(f"{folded(_TIMES_SAID, width)}\n{_table(_TIMES, timed, width)}")
    said = [*_remarks(results), meaning(results), comparison(theirs), "" if advice is None else str(advice)]
    return "\n\n".join([*parts, *(folded(words, width) for words in said if words)])


def meaning(results: Sequence[Result]) -> str:
    """One sentence: where speculation gains, where it costs nothing, where it loses, and by how much."""
    mode = next((mode for mode in _SPOKEN if any(result.mode == mode for result in results)), None)
    judged = [(result, result.ratio_to_plain) for result in results if result.mode == mode and result.ratio_to_plain]
    if mode is None or not judged:
        return "Run plain beside another mode (--modes plain,auto) to see what speculation gains."
    found: dict[str, list[str]] = {}
    for result, ratio in judged:
        found.setdefault(_verdict(ratio, result.drafted), []).append(f"{result.workload} ({ratio.median:.2f}×)")
    said = [f"{verdict} {_joined(found[verdict])}" for verdict in _VERDICTS if verdict in found]
    return f"Compared with plain decoding on this machine, {_SPOKEN[mode]} {_joined(said)}."


def _verdict(ratio: Spread, drafted: int) -> str:
    gains, even, loses, unclear = _VERDICTS
    straddles = ratio.min < _SLOWER and ratio.max > _FASTER
    if straddles or (not drafted and not _SLOWER <= ratio.median <= _FASTER):  # no drafts: the machine was busy
        return unclear
    return gains if ratio.median >= _FASTER else loses if ratio.median < _SLOWER else even


_VERDICTS: Final = ("gains on", "costs nothing on", "loses on", "gave no clear answer on")
_SPOKEN: Final = {
    "auto": "speculation",
    "lookup": "speculation by prompt lookup",
    "draft": "speculation by the draft model",
}


def heading(plan: Plan, loaded: Loaded) -> str:
    """What was measured, in a line."""
    model = f"{loaded.name} + {loaded.draft}" if loaded.draft else loaded.name
    return f"{model} on {loaded.device}: {conditions(plan)}"


def conditions(plan: Plan) -> str:
    """How tokens were drawn, how many, and how often."""
    temperatures = {plan.sampling_of(workload).temperature for workload in plan.workloads}
    drawn = "greedy" if temperatures == {0} else f"seed {plan.sampling.seed}"
    if len(temperatures) == 1 and temperatures != {0}:
        drawn = f"temperature {max(temperatures):g}, {drawn}"
    elif len(temperatures) > 1:
        warm = [f"{w.name} at temperature {w.temperature:g}" for w in plan.workloads if w.temperature]
        drawn = f"greedy, {', '.join(warm)}, {drawn}"
    length = "" if plan.gamma is None else f", drafts of {plan.gamma}"
    rounds = "1 round" if plan.rounds == 1 else f"{plan.rounds} rounds"
    return f"{drawn}{length}, up to {plan.max_tokens} tokens, {rounds}"


def _all_rates(results: Sequence[Result], theirs: Sequence[RivalResult]) -> Iterator[tuple[str, ...]]:
    """Rows of each workload together, other engines' behind ours."""
    for i, result in enumerate(results):
        yield _rates(result)
        if i + 1 == len(results) or results[i + 1].workload != result.workload:
            yield from (_their_rates(one) for one in theirs if one.workload == result.workload)


def _rates(result: Result) -> tuple[str, ...]:
    ratio = result.ratio_to_plain
    return (
        result.workload,
        result.mode,
        f"{result.tokens_per_s.median:.1f}",
        spread(result.tokens_per_s, 1),
        f"{ratio.median:.2f}" if ratio else "–",
        spread(ratio, 2) if ratio and result.mode != "plain" else "",
        "",
        "" if result.ttft_s is None else f"{result.ttft_s:.2f} s",
        text(result),
    )


def _their_rates(result: RivalResult) -> tuple[str, ...]:
    plain, auto = result.ratio_to_plain, result.ratio_to_auto
    return (
        result.workload,
        f"{result.engine} {result.mode}",
        f"{result.tokens_per_s.median:.1f}",
        spread(result.tokens_per_s, 1),
        f"{plain.median:.2f}" if plain else "–",
        spread(plain, 2) if plain else "",
        f"{auto.median:.2f}" if auto else "–",
        "" if result.ttft_s is None else f"{result.ttft_s:.2f} s",
        text(result),
    )


def _times(result: Result) -> tuple[str, ...] | None:
    timing = result.timing
    if timing is None:
        return None
    milliseconds = (timing.token_p50_s, timing.token_p99_s, timing.pause_s)
    shares = (timing.draft_share, timing.verify_share, timing.host_share)
    acceptance = {source.source: f"{source.acceptance:.0%}" for source in result.sources}
    return (
        result.workload,
        result.mode,
        *(f"{1000 * seconds:.1f}" for seconds in milliseconds),
        *(f"{share:.0%}" for share in shares),
        f"{result.tokens_per_pass:.2f}",
        acceptance.get("lookup", "–"),
        acceptance.get("draft", "–"),
    )


def spread(over: Spread, digits: int) -> str:
    """The range over the rounds, in brackets; empty where there is none."""
    low, high = f"{over.min:.{digits}f}", f"{over.max:.{digits}f}"
    return "" if low == high else f"({low}–{high})"


def text(result: Result | RivalResult) -> str:
    """How its text compares with our plain's; empty where there is nothing to compare."""
    own_plain = isinstance(result, Result) and result.mode == "plain"
    if own_plain or result.same_text_as_plain is None:
        return ""
    return "as plain" if result.first_fork is None else f"forks at {result.first_fork + 1}"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """The rows of each workload stand together."""
    cells: list[Sequence[str]] = []
    for row in rows:
        cells += [*([()] if cells and row[0] != cells[-1][0] else []), row]
    return "\n".join(table(columns, cells, width, headed=True))


def _remarks(results: Sequence[Result]) -> list[str]:
    remarks = []
    for result in results:
        if result.share_of_ceiling is not None and result.ceiling is not None:
            remarks.append(
                f"{result.workload}, {result.mode}: {result.share_of_ceiling:.0%} of the {result.ceiling:.2f}× that "
                "this machine's pass costs would allow if every drafted token were accepted."
            )
    unsteady = max((_unsteadiness(result) for result in results if result.mode == "plain"), default=0.0)
    if unsteady > _UNSTEADY:
        remarks.append(f"Plain's own rate varied by {unsteady:.0%} between rounds: repeat this on a quieter machine.")
    return ["\n".join(remarks)] if remarks else []


def _unsteadiness(result: Result) -> float:
    rate = result.tokens_per_s
    return (rate.max - rate.min) / rate.median


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
