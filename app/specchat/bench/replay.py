"""`specchat bench --replay FILE`: recorded answers told again under a cost table, without a model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specengine.errors import EngineError
from specengine.hindsight import PLAIN, Fixed
from specengine.reliability import Table, reliability
from specengine.standing import Standing, conversations, standing
from specengine.study_costs import STUDIES
from specengine.trace import read_traces

OWN: Final = "own"
"""The cost tables that the traces carry."""


def told_again(file: Path, costs: str, as_json: bool) -> str:
    """How gamma and all fixed settings stand on every conversation of a trace file, in words or as JSON.

    Raises:
        EngineError: the file holds no traces, or there is no table of that name.
    """
    if costs != OWN and costs not in STUDIES:
        raise EngineError(f"There is no cost table {costs!r}; choose from {', '.join([OWN, *STUDIES])}.")
    source = "those of the machine that the trace is from" if costs == OWN else STUDIES[costs].source
    traces = list(read_traces(file))
    if not traces:
        raise EngineError(f"{file} holds no traces; `specchat bench --trace FILE` writes them.")
    standings = [
        standing(one, one.traces[-1].costs if costs == OWN else STUDIES[costs].costs) for one in conversations(traces)
    ]
    found = _Found(costs, source, standings, reliability(traces))
    return _as_json(found) if as_json else _in_words(found)


@dataclass(frozen=True, slots=True)
class _Found:
    costs: str
    source: str
    standings: list[Standing]
    reliability: dict[str, Table]


def _in_words(found: _Found) -> str:
    lines = [
        f"Tokens per second under the cost table {found.costs}:",
        f"{found.source}.",
        "fixed: the fastest of all fixed draft lengths, chosen in hindsight; oracle: no choice could be faster.",
        "",
        f"{'':28}{'tokens':>7}{'plain':>8}{'ours':>8}{'fixed':>8}{'oracle':>8}  ours/fixed  fastest fixed setting",
    ]
    lines += [
        f"{one.name:28}{one.tokens:7,}{one.plain:8.1f}{one.ours:8.1f}{one.fixed[one.best]:8.1f}{one.oracle:8.1f}"
        f"{one.to_best:12.3f}  {one.best}"
        for one in found.standings
    ]
    return "\n".join([*lines, "", *_sweeps(found.standings), "", *_reliable(found.reliability)])


def _as_json(found: _Found) -> str:
    return json.dumps(
        {
            "costs": {"name": found.costs, "source": found.source},
            "conversations": [
                {
                    "name": one.name,
                    "tokens": one.tokens,
                    "plain": one.plain,
                    "ours": one.ours,
                    "oracle": one.oracle,
                    "fixed": [
                        {"lookup": setting.lookup, "draft": setting.draft, "tokens_per_s": rate}
                        for setting, rate in one.fixed.items()
                    ],
                    "target_passes": sum(len(replay.rounds) for replay in one.replays),
                }
                for one in found.standings
            ],
            "reliability": {
                source: [
                    {"tokens": row.tokens, "predicted": row.mean, "accepted": row.acceptance}
                    for row in table
                    if row.tokens
                ]
                for source, table in found.reliability.items()
            },
        },
        indent=2,
    )


def _sweeps(standings: list[Standing]) -> list[str]:
    """Each source alone with every draft length, in units of plain."""
    lines: list[str] = []
    for source in ("lookup", "draft"):
        settings = sorted({s for one in standings for s in one.fixed if _alone(s) == source})
        if not settings:
            continue
        lines.append(f"{source + ' alone, over plain':28}" + "".join(f"{f'γ={_gamma(s)}':>7}" for s in settings))
        for one in standings:
            rates = (f"{one.fixed[s] / one.plain:7.2f}" if s in one.fixed else f"{'–':>7}" for s in settings)
            lines.append(f"{one.name:28}" + "".join(rates))
        lines.append("")
    return lines[:-1]


def _reliable(tables: dict[str, Table]) -> list[str]:
    """Predicted acceptance and what came of it."""
    lines = ["Acceptance as predicted before verifying, and as it was:"]
    for source, table in tables.items():
        rows = [row for row in table if row.tokens]
        if rows:
            lines.append(f"{source:10}" + "".join(f"{row.mean:8.1%}" for row in rows) + "  predicted")
            lines.append(f"{'':10}" + "".join(f"{row.acceptance:8.1%}" for row in rows) + "  accepted")
            lines.append(f"{'':10}" + "".join(f"{row.tokens:8,}" for row in rows) + "  tokens")
    return lines


def _alone(setting: Fixed) -> str:
    if setting == PLAIN or (setting.lookup and setting.draft):
        return ""
    return "lookup" if setting.lookup else "draft"


def _gamma(setting: Fixed) -> int:
    return setting.lookup or setting.draft
