"""Predicted acceptance against what came of it, on recorded answers."""

from pathlib import Path

from specengine.reliability import reliability
from specengine.trace import read_traces

TRACES = Path(__file__).parent.parent / "data" / "traces.jsonl.gz"


def test_what_is_predicted_comes_true() -> None:
    """Wherever a hundred tokens or more were predicted so: never more than three points too much; at most thirteen too
    little for lookup, whose short matches are doubted at first, since a draft that fails costs more than none;
    ten for the draft model."""
    tables = reliability(read_traces(TRACES))
    for source, least in (("lookup", 0.13), ("draft", 0.10)):
        rows = [row for row in tables[source] if row.tokens >= 100]
        assert len(rows) >= 6
        assert all(-0.03 <= row.acceptance - row.mean <= least for row in rows)
        assert [row.mean for row in rows] == sorted(row.mean for row in rows)
        assert [row.acceptance for row in rows] == sorted(row.acceptance for row in rows)


def test_every_predicted_token_is_counted_up_to_the_first_wrong_one() -> None:
    (trace,) = list(read_traces(TRACES))[:1]
    tables = reliability([trace])
    assert sum(row.tokens for row in tables["draft"]) == len(trace.answer)
    assert trace.draft_along is not None
    assert sum(row.accepted for row in tables["draft"]) == sum(trace.draft_along.agrees)
    assert 0 < sum(row.accepted for row in tables["lookup"]) < len(trace.answer)
