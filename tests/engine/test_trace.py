"""The record of an answer's rounds, and files of such records."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import tiny
from decoding import answer, engine, flat_costs
from specengine.errors import EngineError
from specengine.protocol import Raw
from specengine.settings import Limits, Sampling
from specengine.trace import DraftAlong, Round, Trace, read_traces, write_traces

TRACE = Trace(
    workload="edit",
    mode="auto",
    round=0,
    model="target",
    draft="draft",
    sampling=Sampling(temperature=0),
    prompt=(1, 2, 3),
    answer=(4, 5),
    end_of_generation=(0,),
    control=(0, 1),
    rounds=(Round(3, 2, "lookup", 1, 1, 7, False, 0, 0, 0, 0.001, 0.0, 0.0, 0.03, 0.002),),
    draft_along=DraftAlong((0.9, 0.4), (True, False)),
    costs=flat_costs(),
)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_rounds_add_up_to_the_counters_of_the_answer(tmp_path: Path, temperature: float) -> None:
    target = tiny.make(tmp_path / "target.gguf", cycle=1.0)
    draft = tiny.make(tmp_path / "draft.gguf", cycle=1.0, noise=0.1)
    rounds: list[Round] = []
    with engine(target, draft) as made:
        made.on_round = rounds.append
        sampling = Sampling(temperature=temperature)
        given = answer(made, Raw("def f(x):\n" * 4), sampling, limits=Limits(60), lookup=True, draft=True)
        assert rounds[0].length == len(made.committed) - len(given.tokens)
    stats = given.stats
    assert len(rounds) == stats.target_passes
    assert sum(one.emitted for one in rounds) == stats.emitted == len(given.tokens)
    assert [one.length for one in rounds[1:]] == [one.length + one.emitted for one in rounds[:-1]]
    assert sum(one.draft_passes for one in rounds) == stats.draft_passes > 0
    assert sum(one.draft_read for one in rounds) == stats.draft_prefilled_tokens
    assert sum(one.draft_caught_up for one in rounds) == stats.draft_caught_up_tokens
    assert sum(one.seconds for one in rounds) == pytest.approx(stats.decode_s)
    for name, source in stats.sources.items():
        of_it = [part for one in rounds for part in one.parts if part.source == name]
        assert len(of_it) == source.rounds
        assert sum(part.judged for part in of_it) == source.drafted
        assert sum(part.accepted for part in of_it) == source.accepted


def test_a_draft_of_two_sources_is_told_apart() -> None:
    both = replace(TRACE.rounds[0], source="draft", drafted=7, copied=4)
    told = [replace(both, accepted=accepted, emitted=accepted + 1).parts for accepted in (1, 3, 5, 7)]
    assert told == [
        (("draft", 3, 2, 1), ("lookup", 4, 0, 0)),
        (("draft", 3, 3, 3), ("lookup", 4, 1, 0)),
        (("draft", 3, 3, 3), ("lookup", 4, 3, 2)),
        (("draft", 3, 3, 3), ("lookup", 4, 4, 4)),
    ]
    ended = [replace(both, accepted=accepted, emitted=accepted).parts for accepted in (3, 4)]
    assert ended == [(("draft", 3, 3, 3),), (("draft", 3, 3, 3), ("lookup", 1, 1, 1))]


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.jsonl.gz"])
def test_traces_come_back_from_a_file_as_they_were(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    write_traces(file, [TRACE, TRACE])
    first, second = read_traces(file)
    assert first == second
    assert (first.rounds, first.answer, first.draft_along) == (TRACE.rounds, TRACE.answer, TRACE.draft_along)
    assert first.costs.target_s == TRACE.costs.target_s


def test_a_line_that_is_no_trace_is_named(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    write_traces(file, [TRACE])
    file.write_bytes(file.read_bytes() + b'{"workload": 3}\n')
    with pytest.raises(EngineError, match="line 2 is not a trace"):
        list(read_traces(file))


def test_a_packed_file_that_was_cut_short_is_named(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl.gz"
    write_traces(file, [TRACE])
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(EngineError, match="can't be read"):
        list(read_traces(file))


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError, match="can't be read"):
        list(read_traces(tmp_path / name))
    with pytest.raises(EngineError, match="can't be written"):
        write_traces(tmp_path / "missing" / "traces.jsonl", [TRACE])
