"""Are acceptance estimates right? What was predicted for drafted tokens, against what became of them.

Told from traces: each position of an answer is proposed to, whether anything was drafted there or not, and the
estimates learn from it as they do while decoding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from specengine.acceptance import AcceptanceEstimate, lookup_estimate, model_estimate
from specengine.drafters.lookup import PromptLookup
from specengine.replay import MOST_DRAFTED, shared_prefix
from specengine.trace import Trace

EDGES: Final = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
_RUN: Final = 24
"""Tokens of a lookup proposal that are followed before the next one: about what a round drafts."""


@dataclass(slots=True)
class Predicted:
    """Tokens for which an acceptance between two edges was predicted."""

    tokens: int = 0
    predicted: float = 0.0
    """Sum of the predictions."""
    accepted: int = 0

    @property
    def mean(self) -> float:
        return self.predicted / self.tokens

    @property
    def acceptance(self) -> float:
        return self.accepted / self.tokens


Table = list[Predicted]
"""One entry more than `EDGES`."""


def reliability(traces: Iterable[Trace]) -> dict[str, Table]:
    """The tables of both sources; estimates begin anew with each conversation."""
    tables: dict[str, Table] = {name: [Predicted() for _ in range(len(EDGES) + 1)] for name in ("lookup", "draft")}
    lookup, model = lookup_estimate(), model_estimate()
    index, before = PromptLookup(), list[int]()
    for trace in traces:
        if not trace.continues:
            lookup, model = lookup_estimate(), model_estimate()
            index, before = PromptLookup(frozenset(trace.end_of_generation), frozenset(trace.control)), []
        index.rollback(shared_prefix(before, trace.prompt))
        _lookup(trace, index, lookup, tables["lookup"])
        if trace.draft_along is not None:
            for confidence, agrees in zip(trace.draft_along.confidence, trace.draft_along.agrees, strict=True):
                _score(tables["draft"], model, [confidence], [1], [1 if agrees else 0])
        before = [*trace.prompt, *trace.answer]
    return tables


def _lookup(trace: Trace, index: PromptLookup, estimate: AcceptanceEstimate, table: Table) -> None:
    committed, position = list(trace.prompt), 0
    while position < len(trace.answer):
        proposal = index.propose(committed, min(MOST_DRAFTED, len(trace.answer) - position - 1))
        right = shared_prefix(proposal.tokens, trace.answer[position : position + _RUN])
        emitted = trace.answer[position : position + right + 1]
        _score(table, estimate, proposal.evidence, proposal.tokens, emitted)
        committed.extend(emitted)
        index.observe(committed, written=True)
        position += len(emitted)


def _score(
    table: Table,
    estimate: AcceptanceEstimate,
    evidence: Sequence[float],
    drafted: Sequence[int],
    emitted: Sequence[int],
) -> None:
    probabilities = estimate.probabilities(evidence[: len(emitted)]) if evidence else ()
    for probability, token, truth in zip(probabilities, drafted, emitted, strict=False):
        row = table[sum(probability >= edge for edge in EDGES)]
        row.tokens += 1
        row.predicted += float(probability)
        row.accepted += token == truth
        if token != truth:
            break
    estimate.observe(evidence, drafted, emitted)
