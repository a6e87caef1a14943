"""`specchat bench --replay FILE`: recorded answers told again under a cost table, without a model."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specchat.folding import folded
from specchat.table import Column, table
from specengine.errors import EngineError
from specengine.hindsight import PLAIN, Fixed
from specengine.reliability import Table, reliability
from specengine.standing import Standing, conversations, standing
from specengine.study_costs import STUDIES
from specengine.trace import read_traces

OWN: Final = "own"
"""The cost tables that the traces carry."""


def told_again(file: Path, costs: str, as_json: bool, width: int | None = None) -> str:
    """How gamma and all fixed settings stand on every conversation of a trace file, in words or as JSON; words in a
    terminal are of its width.

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
    return _as_json(found) if as_json else _in_words(found, width)


@dataclass(frozen=True, slots=True)
class _Found:
    costs: str
    source: str
    standings: list[Standing]
    reliability: dict[str, Table]


_STANDINGS: Final = (
    *(Column(""), Column("tokens", right=True, spare=2), Column("plain", right=True), Column("ours", right=True)),
    *(Column("fixed", right=True), Column("oracle", right=True, spare=3), Column("ours/fixed", right=True)),
    Column("fastest fixed setting", spare=1),
)


def _in_words(found: _Found, width: int | None) -> str:
    head = (
        f"Tokens per second under the cost table {found.costs}:",
        f"{found.source}.",
        "fixed: the fastest of all fixed draft lengths, chosen in hindsight; oracle: no choice could be faster.",
    )
    cells = [
        (
            *(one.name, f"{one.tokens:,}", f"{one.plain:.1f}", f"{one.ours:.1f}", f"{one.fixed[one.best]:.1f}"),
            *(f"{one.oracle:.1f}", f"{one.to_best:.3f}", str(one.best)),
        )
        for one in found.standings
    ]
    tables = (
        table(_STANDINGS, cells, width, headed=True),
        *_sweeps(found.standings, width),
        _reliable(found.reliability, width),
    )
    return "\n\n".join([folded("\n".join(head), width), *("\n".join(lines) for lines in tables)])


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


def _sweeps(standings: list[Standing], width: int | None) -> list[list[str]]:
    """Each source alone with every draft length, in units of plain."""
    tables = []
    for source in ("lookup", "draft"):
        settings = sorted({s for one in standings for s in one.fixed if _alone(s) == source})
        if not settings:
            continue
        cells = [
            (one.name, *(f"{one.fixed[s] / one.plain:.2f}" if s in one.fixed else "–" for s in settings))
            for one in standings
        ]
        columns = (Column(f"{source} alone, over plain"), *_thinned([f"γ={_gamma(s)}" for s in settings]))
        tables.append(table(columns, cells, width, headed=True))
    return tables


def _reliable(tables: dict[str, Table], width: int | None) -> list[str]:
    """Predicted acceptance and what came of it."""
    lines = [folded("Acceptance as predicted before verifying, and as it was:", width)]
    parted = False
    for source, every in tables.items():
        if rows := [row for row in every if row.tokens]:
            predicted = [f"{row.mean:.1%}" for row in rows]
            cells = (
                (source, *predicted, "predicted"),
                ("", *(f"{row.acceptance:.1%}" for row in rows), "accepted"),
                ("", *(f"{row.tokens:,}" for row in rows), "tokens"),
            )
            made = table((Column(""), *_thinned(predicted), Column("")), cells, width)
            lines += ["", *made] if parted else made
            parted = len(made) > len(cells)  # it tells what it left out
    return lines


def _thinned(headings: Sequence[str]) -> list[Column]:
    """Columns of numbers of which every other one is left out first."""
    order = [*range(1, len(headings), 2), *range(2, len(headings), 2)]
    return [
        Column(heading, right=True, spare=order.index(at) + 1 if at in order else 0)
        for at, heading in enumerate(headings)
    ]


def _alone(setting: Fixed) -> str:
    if setting == PLAIN or (setting.lookup and setting.draft):
        return ""
    return "lookup" if setting.lookup else "draft"


def _gamma(setting: Fixed) -> int:
    return setting.lookup or setting.draft
