"""Other engines inside the bench: what they are asked and when, and what stands beside ours in the end."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from bench_process import bench
from bench_records import planned, round_of, run_of, tiny_pair, trace_of
from llama_server import program
from rivals import ended
from specchat.bench import report
from specchat.bench.page.page import Bench, page
from specchat.bench.records import ColdStart, ContestRun, Record, Run
from specchat.bench.results import Spread, results
from specchat.bench.rivals.contest import Contestant, RivalResult, comparison, contestants, rival_results
from specchat.bench.rivals.contract import Question, RivalRun, ShouldStop
from specchat.bench.run import measure
from specchat.bench.workloads import Workload
from specengine import loading
from specengine.controls import Controls
from specengine.costs import GRID, CostTable
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.protocol import Load, Loaded
from specengine.settings import Sampling

MACHINE = {
    **dict.fromkeys(("processor", "system", "python", "specchat", "backend", "device"), "as it is"),
    "cores": 2,
    "memory_bytes": 8e9,
    "gpus": [],
}
CHAT = Workload("chat", "Tell me of the sea.", then=("And of the land?",))
LOADED = Loaded("toy", "toy.gguf", "llama.cpp", "CPU, 2 threads", n_ctx=2048, n_vocab=100)


@dataclass
class Scripted:
    """A rival that gives the answers it is told to give."""

    answers: Callable[[str, Question], RivalRun | None]
    name: str = "other"
    version: str = "1.0"
    modes: Mapping[str, str] = field(default_factory=lambda: {"plain": "no speculation", "fast": "much of it"})
    notices: tuple[str, ...] = ()
    asked: list[tuple[str, Question]] = field(default_factory=list)

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun | None:
        assert not should_stop()
        self.asked.append((mode, question))
        return self.answers(mode, question)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny_pair(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def engine(files: tuple[Path, Path]) -> Iterator[Engine]:
    engine = loading.load(Load(model=str(files[0]), n_ctx=2048, threads=1), lambda what, done: None, lambda: False)
    yield engine
    engine.close()


def ten_tokens(mode: str, question: Question) -> RivalRun:
    return RivalRun(tokens=tuple(range(10)), n_tokens=10, seconds=0.5)


def contest(
    engine: Engine, rival: Scripted, *, rounds: int = 2, said: list[str] | None = None
) -> tuple[list[Record], list[str]]:
    """The records of a small bench, and its stages with what was done in them."""
    plan = replace(planned(modes=("plain", "lookup"), rounds=rounds, max_tokens=4), workloads=(CHAT,))
    told: list[str] = []
    guests = contestants([rival], 2048, ([] if said is None else said).append)
    records = list(measure(engine, plan, Controls(), lambda stage, at: told.append(f"{stage}, {at}"), guests))
    return records, told


def test_rivals_come_after_our_modes_and_take_turns_with_them(engine: Engine) -> None:
    records, told = contest(engine, Scripted(ten_tokens))
    took_part = [(record.round, record.mode) for record in records if not isinstance(record, ColdStart)]
    assert took_part == [
        *((0, mode) for mode in ("plain", "lookup", "plain", "fast")),
        *((1, mode) for mode in ("lookup", "plain", "fast", "plain")),
    ]
    theirs = [isinstance(record, ContestRun) for record in records if not isinstance(record, ColdStart)]
    assert theirs == [False, False, True, True, False, True, True, False]
    assert "chat: round 2 of 2, other fast, 0 s" in told


def test_they_are_asked_the_very_ids_of_our_turns(engine: Engine) -> None:
    rival = Scripted(ten_tokens)
    records, _ = contest(engine, rival)
    ours = next(record for record in records if isinstance(record, Run))
    assert len(ours.traces) == 2
    assert len(rival.asked) == 2 * 2 * 2
    for asked in (rival.asked[i : i + 2] for i in range(0, 8, 2)):
        assert [(q.prompt, q.max_tokens, q.continues) for _, q in asked] == [
            (ours.traces[0].prompt, 4, False),
            (ours.traces[1].prompt, 4, True),
        ]
        assert len({mode for mode, _ in asked}) == 1
    runs = [record for record in records if isinstance(record, ContestRun)]
    assert {(run.n_tokens, run.tokens_per_s) for run in runs} == {(20, 20.0)}


def test_they_write_no_further_than_our_context_goes(engine: Engine) -> None:
    rival = Scripted(ten_tokens)
    records, _ = contest(engine, rival, rounds=1)
    like = next(record for record in records if isinstance(record, Run))
    rival.asked.clear()
    n_ctx = len(like.traces[0].prompt) + 3
    plan = replace(planned(max_tokens=100), workloads=(CHAT,))
    Contestant(rival, "fast", n_ctx, print).run(replace(like, traces=like.traces[:1]), CHAT, 0, plan, lambda: False)
    assert [question.max_tokens for _, question in rival.asked] == [3]


def test_one_that_fails_says_so_once_and_the_rest_is_measured(engine: Engine) -> None:
    def dies(mode: str, question: Question) -> RivalRun:
        if mode == "fast":
            raise EngineError("The other died.")
        return ten_tokens(mode, question)

    said: list[str] = []
    rival = Scripted(dies)
    records, _ = contest(engine, rival, said=said)
    assert said == ["The other died. It is left out from here on (fast)."]
    assert [mode for mode, _ in rival.asked].count("fast") == 1
    assert [record.mode for record in records if isinstance(record, ContestRun)] == ["plain", "plain"]
    assert len([record for record in records if isinstance(record, Run)]) == 4


def test_one_that_cannot_start_from_empty_again_is_not_counted(engine: Engine) -> None:
    asked: set[tuple[str, tuple[int, ...]]] = set()

    def once(mode: str, question: Question) -> RivalRun | None:
        if not question.continues and (mode, question.prompt) in asked:
            return None
        asked.add((mode, question.prompt))
        return ten_tokens(mode, question)

    records, _ = contest(engine, Scripted(once))
    assert [record.round for record in records if isinstance(record, ContestRun)] == [0, 0]


def test_ctrl_c_during_a_rivals_turn_keeps_what_was_finished(engine: Engine) -> None:
    def stopped(mode: str, question: Question) -> RivalRun:
        raise Stopped

    records, _ = contest(engine, Scripted(stopped))
    assert [type(record) for record in records] == [ColdStart, Run, Run]


def turn_of(tokens: Sequence[int] | None = None, seconds: float = 0.5, n_tokens: int = 100) -> RivalRun:
    """A turn that tells its tokens, or their number alone."""
    if tokens is None:
        return RivalRun(tokens=None, n_tokens=n_tokens, seconds=seconds)
    return RivalRun(tokens=tuple(tokens), n_tokens=len(tokens), seconds=seconds)


def of(round: int, *turns: RivalRun, mode: str = "fast") -> ContestRun:
    return ContestRun(workload="copy", engine="other", mode=mode, round=round, turns=turns)


def found(records: Sequence[Record], temperature: float = 0.0) -> dict[str, RivalResult]:
    plan = planned(sampling=Sampling(temperature=temperature))
    guests = contestants([Scripted(ten_tokens)], 2048, print)
    return {result.mode: result for result in rival_results(records, guests, plan)}


def test_ratios_to_our_plain_and_auto_are_taken_within_each_round() -> None:
    records: list[Record] = [
        *(run_of("plain", 0, 2), run_of("auto", 0, 1), of(0, turn_of(seconds=1.25))),
        *(run_of("plain", 1, 4), run_of("auto", 1, 2), of(1, turn_of(seconds=2.0)), of(2, turn_of(seconds=4.0))),
    ]
    result = found(records)["fast"]
    assert (result.rounds, result.tokens) == (3, 300)
    assert result.tokens_per_s == Spread(50, 25, 80)
    assert result.ratio_to_plain == Spread(1.8, 1.6, 2.0)
    assert result.ratio_to_auto == Spread(0.9, 0.8, 1.0)
    alone = found([of(0, turn_of())])["fast"]
    assert (alone.ratio_to_plain, alone.ratio_to_auto, alone.same_text_as_plain) == (None, None, None)


def test_counters_are_sums_of_what_is_told() -> None:
    one, other = replace(turn_of(), drafted=40, accepted=10), replace(turn_of(), drafted=60, accepted=40)
    told = found([of(0, one), of(1, replace(other, target_passes=50))])["fast"]
    assert (told.drafted, told.accepted, told.acceptance, told.target_passes) == (100, 50, 0.5, 50)
    silent = found([of(0, turn_of())])["fast"]
    assert (silent.drafted, silent.accepted, silent.acceptance, silent.target_passes) == (None, None, None, None)


def test_time_to_first_token_is_that_of_the_first_reading() -> None:
    assert found([of(0, turn_of()), of(1, replace(turn_of(), first_token_s=0.5))])["fast"].ttft_s == 0.5
    assert found([of(0, turn_of())])["fast"].ttft_s is None


def plain(round: int, *turns: Sequence[int]) -> Run:
    traces = tuple(msgspec.structs.replace(trace_of([round_of()]), answer=tuple(turn)) for turn in turns)
    return replace(run_of("plain", round, 1, tokens=[id for turn in turns for id in turn]), traces=traces)


@pytest.mark.parametrize(
    ("theirs", "fork"),
    [
        (([5, 6, 7], [8, 9]), None),
        (([5, 6, 1], [8, 9]), 2),
        (([5, 6], [8, 9]), 2),
        (([5, 6, 7, 8], [8, 9]), 3),
        (([5, 6, 7], [8, 1]), 4),
        (([5, 6, 7], [8]), 4),
    ],
)
def test_the_first_fork_from_our_plain_text_is_counted_turn_by_turn(
    theirs: tuple[list[int], list[int]], fork: int | None
) -> None:
    ours = plain(0, [5, 6, 7], [8, 9])
    result = found([ours, of(0, *map(turn_of, theirs))])["fast"]
    assert (result.same_text_as_plain, result.first_fork) == (fork is None, fork)


def test_texts_are_not_compared_where_they_are_drawn_or_not_told() -> None:
    ours = plain(0, [5, 6, 7])
    drawn = found([ours, of(0, turn_of([5, 9]))], temperature=0.7)["fast"]
    untold = found([ours, of(0, turn_of())])["fast"]
    for result in (drawn, untold):
        assert (result.same_text_as_plain, result.first_fork) == (None, None)


def test_the_table_has_their_rows_under_each_workloads_own() -> None:
    plan = planned(rounds=1, modes=("plain", "auto"))
    records: list[Record] = [
        *(plain(0, range(100)), run_of("auto", 0, 0.5), of(0, turn_of(range(100), 0.8))),
        of(0, turn_of(range(7), 1.6), mode="plain"),
        *(run_of("plain", 0, 1, workload="tale"), run_of("auto", 0, 1, workload="tale")),
    ]
    theirs = rival_results(records, contestants([Scripted(ten_tokens)], 2048, print), plan)
    words = report.in_words(results(records, plan), plan, LOADED, None, theirs).splitlines()
    assert words[2:10] == [
        "workload  mode         tokens/s  × plain  × auto  text",
        "copy      plain           100.0     1.00",
        "copy      auto            200.0     2.00          as plain",
        "copy      other plain       4.4     0.04    0.02  forks at 8",
        "copy      other fast      125.0     1.25    0.62  as plain",
        "",
        "tale      plain           100.0     1.00",
        "tale      auto            100.0     1.00          as plain",
    ]
    assert words[-1] == "Our auto beside the fastest of the others: copy 1.60× (other, fast)."


def test_nothing_is_said_of_others_where_auto_was_not_run_beside_them() -> None:
    assert comparison(list(found([of(0, turn_of()), run_of("plain", 0, 1)]).values())) == ""


def test_the_page_tells_their_versions_and_where_their_texts_fork() -> None:
    plan, nasty = planned(rounds=1, modes=("plain",)), "<b>other</b>"
    records: list[Record] = [plain(0, range(100)), replace(of(0, turn_of(range(7), 0.8)), engine=nasty)]
    told = Bench(
        records=records,
        results=results(records, plan),
        plan=plan,
        loaded=LOADED,
        costs=CostTable([0.1 * width for width in GRID]),
        machine=MACHINE,
        advice=None,
        command="specchat bench",
        theirs=rival_results(records, contestants([Scripted(ten_tokens, nasty)], 2048, print), plan),
        versions={nasty: "1.0"},
    )
    shown = page(told)
    assert "<dt>&lt;b&gt;other&lt;/b&gt;</dt><dd>1.0</dd>" in shown
    assert "<td>forks at 8</td>" in shown
    assert nasty not in shown


def test_json_has_their_rows_and_who_took_part() -> None:
    plan = planned(rounds=1, modes=("plain",))
    records: list[Record] = [run_of("plain", 0, 1), of(0, replace(turn_of(), drafted=8, accepted=4))]
    guests = [Contestant(Scripted(ten_tokens), "fast", 2048, print, failure="It died.")]
    theirs = rival_results(records, guests, plan)
    told = report.as_json(results(records, plan), plan, LOADED, {}, False, None, "", theirs, guests)
    assert told["against"] == [
        {"engine": "other", "version": "1.0", "mode": "fast", "meaning": "much of it", "failure": "It died."}
    ]
    assert [(row["engine"], row["mode"], row["acceptance"]) for row in told["results"]] == [
        ("specchat", "plain", None),
        ("other", "fast", 0.5),
    ]
    json.dumps(told)


@pytest.mark.skipif(os.name == "nt", reason="the imitation is a script with a #! line")
class TestTheCommand:
    def test_it_measures_against_others_and_leaves_no_process_behind(
        self, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        made = program(tmp_path)
        code, out, err = bench(
            *("-m", str(files[0]), "--draft", "none", "--workloads", "explain", "--modes", "plain,auto"),
            *("--max-tokens", "6", "--rounds", "2", "--ctx", "1024", "--threads", "1", "--json"),
            *("--against", f"llama-cpp-python,{made.path}", "--against-modes", "plain,lookup:4,ngram-mod"),
        )
        assert code == 0, err
        told = json.loads(out)
        rows = {(row["engine"], row["mode"]): row for row in told["results"]}
        assert list(rows) == [
            *(("specchat", "plain"), ("specchat", "auto")),
            *(("llama-cpp-python", "plain"), ("llama-cpp-python", "lookup:4")),
            *(("llama.cpp server", "plain"), ("llama.cpp server", "ngram-mod")),
        ]
        assert all(row["rounds"] == 2 and row["tokens"] == 12 for row in rows.values())
        assert rows["llama-cpp-python", "plain"]["same_text_as_plain"]
        assert rows["llama.cpp server", "plain"]["first_fork"] == 0
        assert rows["llama.cpp server", "ngram-mod"]["acceptance"] == 0.7
        assert [one["failure"] for one in told["against"]] == [None] * 4
        assert f"--against llama-cpp-python,{made.path} --against-modes plain,lookup:4,ngram-mod" in told["command"]
        pids = [pid for pid, _ in made.starts()]
        assert len(pids) == 3
        assert all(ended(pid) for pid in pids)

    def test_ctrl_c_prints_what_was_finished_and_ends_their_processes(
        self, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        made = program(tmp_path)
        code, out, err = bench(
            *("-m", str(files[0]), "--draft", "none", "--workloads", "explain", "--modes", "plain"),
            *("--max-tokens", "4", "--rounds", "100000", "--against", str(made.path), "--against-modes", "plain"),
            interrupt_at="explain: round 3 of 100000",
        )
        assert code == 130
        assert "llama.cpp server plain" in out
        assert "Traceback" not in err
        assert all(ended(pid) for pid, _ in made.starts())

    def test_one_that_refuses_to_start_is_said_and_ours_is_measured(
        self, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        made = program(tmp_path, fault="refuses to start")
        code, out, err = bench(
            *("-m", str(files[0]), "--draft", "none", "--workloads", "explain", "--modes", "plain,auto"),
            *("--max-tokens", "4", "--rounds", "1", "--against", str(made.path), "--against-modes", "plain"),
        )
        assert code == 0
        assert "The llama.cpp server refused to start (" in err
        assert "It is left out from here on (plain)." in err
        assert "llama.cpp server" not in out

    @pytest.mark.parametrize(
        ("arguments", "code", "sentence"),
        [
            (
                ["--against", "no-such-server"],
                1,
                "There is no program no-such-server to measure against; give",
            ),
            (["--against", "http://127.0.0.1:1"], 1, "No server answers at http://127.0.0.1:1 ("),
            (["--against", "llama-cpp-python", "--against-modes", "fast"], 1, "No rival has a mode fast;"),
            (["--against-modes", "plain"], 2, "--against-modes needs --against: it names the modes of other engines."),
        ],
    )
    def test_what_cannot_be_measured_against_is_said_in_one_sentence(
        self, files: tuple[Path, Path], arguments: list[str], code: int, sentence: str
    ) -> None:
        ended, out, err = bench("-m", str(files[0]), "--draft", "none", "--max-tokens", "2", *arguments)
        assert (ended, out) == (code, "")
        assert sentence in err.splitlines()[-1]
        assert ("loading" in err) == ("http" in arguments[-1]), "what can be known before is said before"
        assert "Traceback" not in err
