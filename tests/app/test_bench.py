"""The bench: what it runs in which order, and that its figures are those of the counters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import msgspec
import pytest

from bench_records import MODES, planned, run_of, tiny_pair
from specchat.bench.modes import possible
from specchat.bench.records import ColdStart, Plan, Record, Run
from specchat.bench.results import Result, Spread, results
from specchat.bench.run import ceiling, measure, order
from specchat.bench.workloads import Workload
from specengine import loading
from specengine.controls import Controls
from specengine.costs import GRID, CostTable
from specengine.engine import Engine
from specengine.gamma import Gamma
from specengine.protocol import Load
from specengine.settings import Sampling


class SteadyCosts(CostTable):
    """A table that no pass changes, so that what gamma chooses depends on its estimates alone."""

    def observe_target(self, width: int, seconds: float, context: int = 0) -> None: ...

    def observe_draft(self, steps: int, seconds: float) -> None: ...

    def observe_draft_read(self, tokens: int, seconds: float) -> None: ...

    def observe_host(self, seconds: float) -> None: ...


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    target, draft = tiny_pair(tmp_path_factory.mktemp("models"))
    request = Load(model=str(target), draft=str(draft), n_ctx=2048, threads=1)
    engine = loading.load(request, lambda what, done: None, lambda: False)
    engine.measuring = None
    engine.gamma = Gamma(
        SteadyCosts([1 + 0.25 * (width - 1) for width in GRID], draft_step_s=0.1, draft_read_s=0.001, host_s=0.01)
    )
    yield engine
    engine.close()


def measured(engine: Engine, plan: Plan) -> list[Record]:
    return list(measure(engine, plan, Controls(), lambda what, at: None))


def runs(records: Sequence[Record], mode: str | None = None) -> list[Run]:
    return [record for record in records if isinstance(record, Run) and mode in (None, record.mode)]


def counters(run: Run) -> tuple[object, ...]:
    return (
        run.tokens,
        *(run.reused_tokens, run.target_passes, run.draft_passes, run.draft_prefilled, run.drafted, run.accepted),
    )


def found(records: Sequence[Record]) -> dict[tuple[str, str], Result]:
    return {(result.workload, result.mode): result for result in results(records, planned())}


def test_each_round_begins_with_another_mode() -> None:
    assert [order(MODES, round) for round in range(5)] == [
        ("plain", "lookup", "draft", "auto"),
        ("lookup", "draft", "auto", "plain"),
        ("draft", "auto", "plain", "lookup"),
        ("auto", "plain", "lookup", "draft"),
        ("plain", "lookup", "draft", "auto"),
    ]


def test_modes_alternate_inside_each_round_after_one_cold_start_a_workload(engine: Engine) -> None:
    plan = planned(rounds=2, max_tokens=2)
    records = measured(engine, plan)
    assert [
        (record.workload, record.mode, record.round if isinstance(record, Run) else "cold") for record in records
    ] == [
        entry
        for name in ("copy", "tale")
        for entry in (
            (name, "plain", "cold"),
            *((name, mode, 0) for mode in order(MODES, 0)),
            *((name, mode, 1) for mode in order(MODES, 1)),
        )
    ]


def test_a_cold_start_reads_the_whole_prompt_and_a_run_finds_it_read(engine: Engine) -> None:
    records = measured(engine, planned(max_tokens=4))
    for cold in (record for record in records if isinstance(record, ColdStart)):
        assert cold.prefilled_tokens == cold.prompt_tokens - 1 > 0
        of_workload = [run for run in runs(records) if run.workload == cold.workload]
        assert {run.reused_tokens for run in of_workload} == {cold.prompt_tokens - 1}


def test_every_run_starts_empty_so_all_rounds_count_the_same(engine: Engine) -> None:
    records = measured(engine, planned())
    for name in ("copy", "tale"):
        for mode in MODES:
            rounds = [counters(run) for run in runs(records, mode) if run.workload == name]
            assert len(rounds) == 3
            assert rounds[0] == rounds[1] == rounds[2], (name, mode)
    assert all(run.drafted for run in runs(records, "auto"))


def test_each_mode_drafts_from_its_own_sources_only(engine: Engine) -> None:
    records = measured(engine, planned(gamma=3, rounds=1))
    for run in runs(records, "plain"):
        assert (run.drafted, run.draft_passes, run.target_passes) == (0, 0, 48)
    for run in runs(records, "lookup"):
        assert run.draft_passes == 0
    assert sum(run.drafted for run in runs(records, "lookup")) > 0
    for run in runs(records, "draft"):
        assert run.draft_passes == run.drafted > 0
        assert run.draft_prefilled > 0
    both = runs(records, "auto")
    assert sum(run.drafted for run in both) > sum(run.draft_passes for run in both) > 0


def test_a_fixed_gamma_bounds_every_draft(engine: Engine) -> None:
    for run in runs(measured(engine, planned(gamma=2, rounds=1))):
        assert run.drafted <= 2 * run.target_passes


def test_a_sampled_bench_draws_the_same_text_in_every_mode(engine: Engine) -> None:
    plan = planned(sampling=Sampling(temperature=1.0, seed=7), rounds=1, max_tokens=24)
    other = replace(plan, sampling=Sampling(temperature=1.0, seed=8))
    texts = [{run.tokens for run in runs(measured(engine, p)) if run.workload == "tale"} for p in (plan, other)]
    assert [len(text) for text in texts] == [1, 1]
    assert texts[0] != texts[1]


def test_stopping_keeps_finished_runs_and_drops_the_one_cut_short(engine: Engine) -> None:
    controls = Controls()

    def tell(what: str, at: str) -> None:
        controls.stop = controls.stop or (what == "copy: round 1 of 3" and at == "lookup, 3 of 48 tokens")

    records = list(measure(engine, planned(modes=("plain", "lookup"), gamma=1), controls, tell))
    assert controls.stop
    assert [run.mode for run in runs(records)] == ["plain"]


def test_possible_modes_follow_from_what_is_loaded(engine: Engine) -> None:
    assert possible(engine.loaded) == MODES
    assert possible(msgspec.structs.replace(engine.loaded, draft=None)) == ("plain", "lookup", "auto")
    assert possible(msgspec.structs.replace(engine.loaded, speculation_refused="No.")) == ("plain",)


def test_figures_are_those_of_the_runs(engine: Engine) -> None:
    plan = planned(gamma=4)
    records = measured(engine, plan)
    figures = results(records, plan)
    assert [(result.workload, result.mode) for result in figures] == [
        (name, mode) for name in ("copy", "tale") for mode in MODES
    ]
    for result in figures:
        own = [run for run in runs(records, result.mode) if run.workload == result.workload]
        plain = {run.round: run for run in runs(records, "plain") if run.workload == result.workload}
        rates = [len(run.tokens) / run.seconds for run in own]
        ratios = [len(r.tokens) / r.seconds / (len(plain[r.round].tokens) / plain[r.round].seconds) for r in own]
        assert result.tokens_per_s == Spread(median(rates), min(rates), max(rates))
        assert result.ratio_to_plain == Spread(median(ratios), min(ratios), max(ratios))
        assert result.tokens == sum(len(run.tokens) for run in own) == 3 * 48
        for name in ("target_passes", "draft_passes", "draft_prefilled", "drafted", "accepted"):
            assert getattr(result, name) == sum(getattr(run, name) for run in own), name
        assert result.tokens_per_pass == result.tokens / result.target_passes
        assert result.acceptance == (result.accepted / result.drafted if result.drafted else None)
        assert result.rounds == len(own) == 3


def test_time_to_first_token_is_the_cold_starts_and_no_others(engine: Engine) -> None:
    plan = planned(modes=("lookup", "plain"), rounds=1, max_tokens=2)
    records = measured(engine, plan)
    cold = {record.workload: record.first_token_s for record in records if isinstance(record, ColdStart)}
    for result in results(records, plan):
        assert result.ttft_s == (cold[result.workload] if result.mode == "lookup" else None)


def test_ratios_are_taken_within_each_round() -> None:
    records = [run_of("plain", 0, 1), run_of("auto", 0, 0.5), run_of("auto", 1, 1.0), run_of("plain", 1, 2)]
    assert found(records)["copy", "auto"].ratio_to_plain == Spread(2, 2, 2)
    assert found(records)["copy", "auto"].tokens_per_s == Spread(150, 100, 200)


def test_a_round_without_plain_has_no_ratio() -> None:
    half = found([run_of("auto", 0, 0.5), run_of("plain", 0, 1), run_of("auto", 1, 0.1)])["copy", "auto"]
    assert half.rounds == 2
    assert half.ratio_to_plain == Spread(2, 2, 2)
    alone = found([run_of("auto", 0, 0.5)])["copy", "auto"]
    assert (alone.ratio_to_plain, alone.same_text_as_plain, alone.share_of_ceiling) == (None, None, None)


def test_the_earliest_fork_from_plain_is_reported() -> None:
    records = [run_of("plain", round, 1, tokens=[5, 6, 7, 8]) for round in range(3)]
    same = [run_of("lookup", round, 1, tokens=[5, 6, 7, 8]) for round in range(3)]
    other = [run_of("auto", round, 1, tokens=tokens) for round, tokens in enumerate(([5, 6, 7, 8], [5, 9], [5, 6, 7]))]
    by_mode = found([*records, *same, *other])
    assert (by_mode["copy", "lookup"].same_text_as_plain, by_mode["copy", "lookup"].first_fork) == (True, None)
    assert (by_mode["copy", "auto"].same_text_as_plain, by_mode["copy", "auto"].first_fork) == (False, 1)
    shorter = found([records[2], other[2]])["copy", "auto"]
    assert shorter.first_fork == 3


def test_the_ceiling_is_the_best_full_acceptance_in_the_table() -> None:
    flat = CostTable([1.0] * len(GRID), host_s=0.0)
    assert ceiling(flat) == 128
    bound = CostTable([float(width) for width in GRID], host_s=0.0)
    assert ceiling(bound) == 1
    dear = dict.fromkeys(GRID, 100.0) | {1: 1.0, 2: 1.5, 3: 1.75, 4: 1.75}
    assert ceiling(CostTable([dear[width] for width in GRID], host_s=0.25)) == pytest.approx(4 * 1.25 / 2)


def test_the_share_of_the_ceiling_is_for_lookup_where_the_answer_copies() -> None:
    records = [run_of(mode, 0, 1 if mode == "plain" else 0.5, workload=n) for n in ("copy", "tale") for mode in MODES]
    shares = {key: result.share_of_ceiling for key, result in found(records).items()}
    assert {key: share for key, share in shares.items() if share is not None} == {
        ("copy", "lookup"): 0.5,
        ("copy", "auto"): 0.5,
    }


TALK = Workload("talk", "one two three four five six one two", then=("Say it again.", "three four five"))


def test_further_turns_find_what_the_turns_before_left(engine: Engine) -> None:
    plan = replace(planned(modes=("plain", "draft:2"), rounds=2, max_tokens=12), workloads=(TALK,))
    cold, *found = measured(engine, plan)
    assert isinstance(cold, ColdStart)
    for run in runs(found):
        first, second, third = run.traces
        assert [trace.continues for trace in run.traces] == [False, True, True]
        assert run.tokens == first.answer + second.answer + third.answer
        assert len(run.tokens) == 36
        for before, after in ((first, second), (second, third)):
            kept = before.prompt + before.answer
            assert after.prompt[: len(kept)] == kept
        # Each prompt but its last token was read once: the first in the cold start, the others behind what was there.
        assert run.reused_tokens == cold.prompt_tokens - 1 + sum(
            len(t.prompt) + len(t.answer) - 1 for t in (first, second)
        )
    # The draft model reads each prompt once: what is new of it since the turn before.
    news = len(third.prompt) - len(first.answer) - len(second.answer)
    assert all(0.5 * news < run.draft_prefilled < news + 6 for run in runs(found, "draft:2"))


def test_the_temperature_of_a_workload_is_its_own_where_it_has_one(engine: Engine) -> None:
    warm = replace(TALK, name="warm", then=(), temperature=2.0)
    plan = replace(planned(modes=("plain",), rounds=1, max_tokens=12), workloads=(replace(TALK, then=()), warm))
    cool_run, warm_run = runs(measured(engine, plan))
    assert [run.traces[0].sampling.temperature for run in (cool_run, warm_run)] == [0.0, 2.0]
    assert cool_run.tokens != warm_run.tokens


def test_answers_of_the_same_text_are_read_through_the_draft_model_once(engine: Engine) -> None:
    plan = replace(planned(modes=("plain", "lookup:2"), rounds=2, max_tokens=12), workloads=(TALK,), along=True)
    found = runs(measured(engine, plan))
    assert len({run.tokens for run in found}) == 1
    for turn in range(3):
        alongs = [run.traces[turn].draft_along for run in found]
        assert alongs[0] is not None and all(along is alongs[0] for along in alongs)
    assert found[0].traces[0].draft_along != found[0].traces[1].draft_along


def test_reading_along_changes_no_counter(engine: Engine) -> None:
    plan = replace(planned(modes=("draft:2", "both:3"), rounds=1, max_tokens=20), workloads=(TALK,))
    without, along = (runs(measured(engine, replace(plan, along=along))) for along in (False, True))
    assert [counters(run) for run in without] == [counters(run) for run in along]
    assert all(trace.draft_along is None for run in without for trace in run.traces)
