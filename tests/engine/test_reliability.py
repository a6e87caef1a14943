"""Predicted acceptance against what came of it, on recorded answers."""

from pathlib import Path

from specengine.reliability import reliability
from specengine.trace import read_traces

TRACES = Path(__file__).parent.parent / "data" / "traces.jsonl.gz"


def test_what_is_predicted_comes_true() -> None:
    """Within six points wherever a hundred tokens or more were predicted so, for lookup; within ten for the draft
    model, which is doubted too much at first."""
    tables = reliability(read_traces(TRACES))
    for source, off in (("lookup", 0.06), ("draft", 0.10)):
        rows = [row for row in tables[source] if row.tokens >= 100]
        assert len(rows) >= 6
        assert all(abs(row.mean - row.acceptance) <= off for row in rows)
        assert [row.mean for row in rows] == sorted(row.mean for row in rows)
        assert [row.acceptance for row in rows] == sorted(row.acceptance for row in rows)


def test_every_predicted_token_is_counted_up_to_the_first_wrong_one() -> None:
    (trace,) = list(read_traces(TRACES))[:1]
    tables = reliability([trace])
    assert sum(row.tokens for row in tables["draft"]) == len(trace.answer)
    assert trace.draft_along is not None
    assert sum(row.accepted for row in tables["draft"]) == sum(trace.draft_along.agrees)
    assert 0 < sum(row.accepted for row in tables["lookup"]) < len(trace.answer)
