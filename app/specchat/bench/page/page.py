"""The page: which plots stand on it, and all figures in one table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from specchat.bench import report
from specchat.bench.page.acceptance import FEWEST, acceptance
from specchat.bench.page.cost_curve import cost_curve
from specchat.bench.page.gamma import gamma
from specchat.bench.page.speedup import Bar, bars, over_gamma, source_of
from specchat.bench.records import Plan, Record, Run
from specchat.bench.results import Result
from specchat.bench.rivals.contest import RivalResult, comparison
from specengine.advice import CONTEXT, Advice
from specengine.costs import CostTable
from specengine.protocol import Loaded

Panel = tuple[str, Markup]
"""A workload's name and its picture."""

_COLUMNS: Final = (
    *("workload", "mode", "tokens/s", "× plain", "ms a token, p50", "p99", "longest pause, ms"),
    *("draft time", "verify time", "host time", "tokens", "target passes", "tokens/pass"),
    *("draft passes", "read by the draft", "drafted", "accepted", "acceptance", "of lookup", "of draft"),
    *("first token", "text"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that a page tells."""

    records: Sequence[Record]
    results: Sequence[Result]
    plan: Plan
    loaded: Loaded
    costs: CostTable
    machine: Mapping[str, Any]
    advice: Advice | None
    command: str
    theirs: Sequence[RivalResult] = ()
    """Results of other engines."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """By engine, of the others."""


def page(bench: Bench) -> str:
    """HTML that needs no other file, no network and no script. Everything that is not ours is escaped."""
    folder = files("specchat.bench.page")
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
        (folder / "page.html").read_text(encoding="utf-8")
    )
    swept = _swept(bench.results)
    gamma_mode = _gamma_mode(bench)
    return template.render(
        model=bench.loaded.name,
        heading=_heading(bench),
        style=Markup((folder / "style.css").read_text(encoding="utf-8")),
        meaning=report.meaning(bench.results),
        comparison=comparison(bench.theirs),
        advice=str(bench.advice) if bench.advice else "",
        bars=list(_bars(bench, swept)),
        sweeps=list(_sweeps(bench)) if swept else [],
        gamma_mode=gamma_mode,
        gammas=list(_gammas(bench, gamma_mode)),
        acceptances=_panels(bench.results, acceptance),
        fewest=FEWEST,
        context=CONTEXT,
        cost_curve=cost_curve(bench.costs.at(CONTEXT), bench.loaded.draft),
        columns=_COLUMNS,
        rows=list(_rows(bench)),
        facts=list(_facts(bench)),
        command=bench.command,
    )


def _heading(bench: Bench) -> str:
    draft = f"{bench.loaded.draft} as draft model, " if bench.loaded.draft else ""
    return f"{draft}{bench.loaded.device}, {report.conditions(bench.plan)}"


def _by_workload(results: Sequence[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.workload, []).append(result)
    return found


def _panels(results: Sequence[Result], picture: Callable[[Sequence[Result]], Markup | None]) -> list[Panel]:
    drawn = ((name, picture(of_workload)) for name, of_workload in _by_workload(results).items())
    return [(name, made) for name, made in drawn if made is not None]


def _swept(results: Sequence[Result]) -> bool:
    """Whether some source has several fixed lengths, which are then shown as a line."""
    lengths: dict[str, set[int]] = {}
    for result in results:
        if _fixed(result) and result.gamma:
            lengths.setdefault(source_of(result), set()).add(result.gamma)
    return any(len(found) > 1 for found in lengths.values())


def _fixed(result: Result) -> bool:
    return ":" in result.mode


def _bars(bench: Bench, swept: bool) -> Iterator[Panel]:
    shown: dict[str, list[Bar]] = {}
    for result in bench.results:
        if result.ratio_to_plain and not (swept and _fixed(result)):
            shown.setdefault(result.workload, []).append(Bar(result.mode, source_of(result), result.ratio_to_plain))
    for other in bench.theirs:
        if other.ratio_to_plain:
            shown.setdefault(other.workload, []).append(Bar(_name(other), "other", other.ratio_to_plain))
    top = max((bar.ratio.max for of_workload in shown.values() for bar in of_workload), default=1.0)
    for workload, of_workload in shown.items():
        if any(bar.name != "plain" for bar in of_workload):
            yield workload, bars(workload, of_workload, top)


def _sweeps(bench: Bench) -> Iterator[Panel]:
    for name, results in _by_workload(bench.results).items():
        fixed = [result for result in results if _fixed(result) and result.ratio_to_plain]
        if fixed:
            beside = [result for result in results if result.mode in ("plain", "auto")]
            yield name, over_gamma(fixed, beside, _top([*fixed, *beside]))


def _top(results: Sequence[Result]) -> float:
    return max((result.ratio_to_plain.max for result in results if result.ratio_to_plain), default=1.0)


def _gamma_mode(bench: Bench) -> str:
    """auto, else the mode that drafted most."""
    if "auto" in bench.plan.modes:
        return "auto"
    most = max(bench.results, key=lambda result: result.drafted, default=None)
    return most.mode if most is not None else ""


def _gammas(bench: Bench, mode: str) -> Iterator[Panel]:
    seen: set[str] = set()
    for record in bench.records:
        if isinstance(record, Run) and record.mode == mode and record.workload not in seen and record.rounds:
            seen.add(record.workload)
            yield record.workload, gamma(record)


def _rows(bench: Bench) -> Iterator[dict[str, Any]]:
    for workload, results in _by_workload(bench.results).items():
        cells = [_cells(result) for result in results]
        cells += [_their_cells(other) for other in bench.theirs if other.workload == workload]
        for number, row in enumerate(cells):
            yield {"first": number == 0 and workload != bench.results[0].workload, "cells": row}


def _cells(result: Result) -> list[tuple[str, str]]:
    """Each a figure and, behind it, its range over the rounds."""
    timing, ratio = result.timing, result.ratio_to_plain
    acceptance = {source.source: f"{source.acceptance:.0%}" for source in result.sources}
    times = [""] * 6
    if timing is not None:
        milliseconds = (timing.token_p50_s, timing.token_p99_s, timing.pause_s)
        shares = (timing.draft_share, timing.verify_share, timing.host_share)
        times = [*(f"{1000 * each:.1f}" for each in milliseconds), *(f"{each:.1%}" for each in shares)]
    return [
        (result.workload, ""),
        (result.mode, ""),
        (f"{result.tokens_per_s.median:.1f}", report.spread(result.tokens_per_s, 1)),
        (f"{ratio.median:.2f}" if ratio else "", report.spread(ratio, 2) if ratio else ""),
        *((each, "") for each in times),
        (f"{result.tokens:,}", ""),
        (f"{result.target_passes:,}", ""),
        (f"{result.tokens_per_pass:.2f}", ""),
        (f"{result.draft_passes:,}", ""),
        (f"{result.draft_prefilled:,}", ""),
        (f"{result.drafted:,}", ""),
        (f"{result.accepted:,}", ""),
        ("" if result.acceptance is None else f"{result.acceptance:.0%}", ""),
        (acceptance.get("lookup", ""), ""),
        (acceptance.get("draft", ""), ""),
        ("" if result.ttft_s is None else f"{result.ttft_s:.2f} s", ""),
        (report.text(result), ""),
    ]


def _their_cells(other: RivalResult) -> list[tuple[str, str]]:
    """The same columns, as far as other engines tell."""
    told = {
        "workload": other.workload,
        "mode": _name(other),
        "tokens": f"{other.tokens:,}",
        "target passes": _count(other.target_passes),
        "tokens/pass": f"{other.tokens / other.target_passes:.2f}" if other.target_passes else "",
        "drafted": _count(other.drafted),
        "accepted": _count(other.accepted),
        "acceptance": "" if other.acceptance is None else f"{other.acceptance:.0%}",
        "first token": "" if other.ttft_s is None else f"{other.ttft_s:.2f} s",
        "text": report.text(other),
    }
    cells = {column: (told.get(column, ""), "") for column in _COLUMNS}
    ratio = other.ratio_to_plain
    cells["tokens/s"] = (f"{other.tokens_per_s.median:.1f}", report.spread(other.tokens_per_s, 1))
    cells["× plain"] = (f"{ratio.median:.2f}" if ratio else "", report.spread(ratio, 2) if ratio else "")
    return list(cells.values())


def _name(other: RivalResult) -> str:
    return f"{other.engine} {other.mode}"


def _count(counter: int | None) -> str:
    return "" if counter is None else f"{counter:,}"


def _facts(bench: Bench) -> Iterator[tuple[str, str]]:
    machine, plan = bench.machine, bench.plan
    memory = machine["memory_bytes"]
    yield "model", bench.loaded.name
    yield "draft model", bench.loaded.draft or "none"
    yield "processor", f"{machine['processor']}, {machine['cores']} cores"
    if machine["gpus"]:
        yield "GPU", ", ".join(machine["gpus"])
    if memory is not None:
        yield "memory", f"{memory / 1e9:.1f} GB"
    yield "system", str(machine["system"])
    yield "runtime", f"specchat {machine['specchat']}, Python {machine['python']}, {machine['backend']}"
    yield "device", str(machine["device"])
    yield from bench.versions.items()
    yield "context", f"{bench.loaded.n_ctx:,} tokens"
    yield "rounds", f"{plan.rounds}, up to {plan.max_tokens} tokens an answer"
