"""`specchat bench` as a user meets it: real processes on tiny real models."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

import tiny
from bench_process import bench
from bench_records import MODES, tiny_pair
from specengine.costs import GRID
from specengine.trace import read_traces


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny_pair(tmp_path_factory.mktemp("models"))


class Figure(msgspec.Struct, forbid_unknown_fields=True):
    median: float
    min: float
    max: float


class TimingFigures(msgspec.Struct, forbid_unknown_fields=True):
    token_p50_s: float
    token_p99_s: float
    pause_s: float
    draft_share: float
    verify_share: float
    host_share: float


class Source(msgspec.Struct, forbid_unknown_fields=True):
    source: Literal["lookup", "draft"]
    rounds: int
    drafted: int
    accepted: int
    acceptance: float
    drafted_at: list[int]
    reached_at: list[int]
    accepted_at: list[int]


class Row(msgspec.Struct, forbid_unknown_fields=True):
    engine: Literal["specchat"]
    workload: str
    mode: str
    rounds: int
    tokens_per_s: Figure
    ratio_to_plain: Figure | None
    tokens: int
    target_passes: int
    draft_passes: int
    draft_prefilled: int
    drafted: int
    accepted: int
    acceptance: float | None
    tokens_per_pass: float
    ttft_s: float | None
    ceiling: float | None
    share_of_ceiling: float | None
    same_text_as_plain: bool | None
    first_fork: int | None
    temperature: float
    gamma: int | None
    timing: TimingFigures
    sources: list[Source]


class PassMs(msgspec.Struct, forbid_unknown_fields=True):
    target: dict[int, float]
    draft_step: float | None
    host: float


class Machine(msgspec.Struct, forbid_unknown_fields=True):
    processor: str
    cores: int
    memory_bytes: int | None
    gpus: list[str]
    system: str
    python: str
    specchat: str
    backend: str
    device: str
    pass_ms: PassMs


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    modes: list[str]
    workloads: list[str]
    max_tokens: int
    rounds: int
    temperature: float
    seed: int
    gamma: int | None
    n_ctx: int
    exact: bool


class SourceAdvice(msgspec.Struct, forbid_unknown_fields=True):
    best: float
    best_gamma: int
    needed: float | None
    needed_gamma: int | None


class Advice(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    lookup: SourceAdvice
    draft_name: str | None
    draft: SourceAdvice | None
    c: float | None
    two_tokens: float
    eight_tokens: float
    paying_c: float


class Report(msgspec.Struct, forbid_unknown_fields=True):
    model: str
    draft: str | None
    machine: Machine
    command: str
    settings: Settings
    against: list[dict[str, str]]
    results: list[Row]
    advice: Advice


def test_json_has_all_that_is_needed_to_judge_and_to_repeat(files: tuple[Path, Path]) -> None:
    target, draft = files
    code, out, err = bench(
        *("-m", str(target), "--draft", str(draft), "--workloads", "explain,story", "--max-tokens", "8"),
        *("--rounds", "2", "--ctx", "2048", "--threads", "1", "--temperature", "0.5", "--seed", "3", "--json"),
    )
    assert code == 0, err
    report = msgspec.json.decode(out, type=Report)
    assert (report.model, report.draft) == ("target", "draft")
    assert report.settings == Settings([*MODES], ["explain", "story"], 8, 2, 0.5, 3, None, 2048, False)
    assert report.machine.device == "CPU, 1 thread"
    assert tuple(report.machine.pass_ms.target) == GRID
    assert [(row.workload, row.mode) for row in report.results] == [
        (name, mode) for name in ("explain", "story") for mode in MODES
    ]
    for row in report.results:
        assert row.tokens == 16 and row.rounds == 2
        assert row.ratio_to_plain is not None
        assert row.temperature == 0.5
    assert (report.advice.draft_name, report.advice.draft is None) == ("draft", False)
    assert report.command == (
        f"specchat bench -m {target} --draft {draft} --workloads explain,story --max-tokens 8 --rounds 2 "
        "--temperature 0.5 --seed 3 --ctx 2048 --threads 1"
    )
    assert re.search(r'"drafted_at": \[\d+[\d, ]*\]', out) or not any(row.sources for row in report.results)


def test_the_story_alone_is_told_at_temperature_1_where_none_was_given(files: tuple[Path, Path]) -> None:
    code, out, err = bench(
        *("-m", str(files[0]), "--draft", "none", "--workloads", "explain,story", "--max-tokens", "4"),
        *("--modes", "plain", "--rounds", "1", "--ctx", "2048", "--json"),
    )
    assert code == 0, err
    rows = msgspec.json.decode(out, type=Report).results
    assert [(row.workload, row.temperature) for row in rows] == [("explain", 0.0), ("story", 1.0)]


def test_a_sweep_adds_every_source_at_every_length(files: tuple[Path, Path]) -> None:
    code, out, err = bench(
        *("-m", str(files[0]), "--draft", str(files[1]), "--workloads", "explain", "--modes", "plain,draft:2"),
        *("--sweep", "2, 5", "--rounds", "1", "--max-tokens", "8", "--json"),
    )
    assert code == 0, err
    rows = msgspec.json.decode(out, type=Report).results
    assert [(row.mode, row.gamma) for row in rows] == [
        *(("plain", None), ("draft:2", 2), ("lookup:2", 2), ("lookup:5", 5), ("draft:5", 5)),
        *(("both:2", 2), ("both:5", 5)),
    ]


def test_stderr_tells_the_stages_and_stdout_holds_the_table_alone(files: tuple[Path, Path]) -> None:
    code, out, err = bench(
        *("-m", str(files[0]), "--draft", "none", "--workloads", "edit", "--max-tokens", "4", "--rounds", "2")
    )
    assert code == 0, err
    stages = ["measuring what passes cost", "edit: reading the prompt", "edit: round 1 of 2", "edit: round 2 of 2"]
    assert err.splitlines() == ["loading target", *stages]
    lines = out.splitlines()
    assert lines[0].startswith("target on CPU")
    rows = [["edit", "plain"], ["edit", "lookup"], ["edit", "auto"]]
    assert [line.split()[:2] for line in lines[3:6]] == [line.split()[:2] for line in lines[9:12]] == rows
    assert lines[-3].startswith("Compared with plain decoding on this machine, speculation ")
    assert "At an acceptance of 0.8 a draft model would pay" in lines[-1] or "Not even a draft model" in lines[-1]
    assert max(map(len, lines[:12])) <= 100


def test_ctrl_c_prints_and_writes_what_was_finished(files: tuple[Path, Path], tmp_path: Path) -> None:
    trace, page = tmp_path / "t.jsonl", tmp_path / "p.html"
    code, out, err = bench(
        *("-m", str(files[0]), "--workloads", "story", "--max-tokens", "8", "--rounds", "100000", "--json"),
        *("--trace", str(trace), "--html", str(page)),
        interrupt_at="story: round 2 of 100000",
    )
    assert code == 130, err
    assert {(one.mode, one.round) for one in read_traces(trace)} >= {("plain", 0), ("lookup", 0), ("auto", 0)}
    assert page.read_text().startswith("<!doctype html>")
    assert {row.mode for row in msgspec.json.decode(out, type=Report).results} == {"plain", "lookup", "auto"}
    assert "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
def test_a_page_that_cannot_be_written_is_one_sentence_behind_the_tables(files: tuple[Path, Path]) -> None:
    few = ("--workloads", "story", "--modes", "plain", "--rounds", "1", "--max-tokens", "4")
    code, out, err = bench("-m", str(files[0]), *few, "--html", "/dev/full")
    assert code == 1 and "story     plain" in out
    assert err.splitlines()[-1] == "/dev/full can't be written: No space left on device; choose another place."


def test_ctrl_c_before_the_first_run_says_so(files: tuple[Path, Path], tmp_path: Path) -> None:
    trace, page = tmp_path / "t.jsonl", tmp_path / "p.html"
    trace.write_text("of an earlier bench")
    code, out, err = bench(
        *("-m", str(files[0]), "--workloads", "edit", "--trace", str(trace), "--html", str(page)),
        interrupt_at="edit: reading the prompt",
    )
    assert code == 130
    assert trace.read_text() == "of an earlier bench"
    assert not page.exists()
    assert out == "Nothing was finished, so there is nothing to show.\n"
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--modes", "plain,fast"], 2, "there is no 'fast'; choose from plain, lookup, draft, auto, or fix"),
        (["--workloads", "poem"], 2, "there is no 'poem'; choose from edit, complete,"),
        (["--modes", "draft:128"], 2, "there is no 'draft:128'; choose from"),
        (["--sweep", "3,0"], 2, "'3,0' is no list of draft lengths from 1 to 127, such as 3,5,8,10."),
        (["--trace", "-"], 2, "stdout is for the tables or --json; name a file."),
        (["--html", "-"], 2, "stdout is for the tables or --json; name a file."),
        (["--gamma", "128"], 2, "128 is not in the range 1<=x<=127"),
        (["--trace", "missing/rounds.jsonl"], 2, "missing/rounds.jsonl can't be written; name a file in a folder"),
        (["--modes", "both:2"], 1, "The mode both:2 can't be measured: No draft model is loaded; name one with"),
        (["--rounds", "0"], 2, "0 is not in the range x>=1."),
        (["--temperature", "-1"], 2, "--temperature is -1.0; it must lie between 0 and 100."),
        (["--modes", "draft"], 1, "The mode draft can't be measured: No draft model is loaded; name one with --draft."),
        (["--draft", "smollm2-135m"], 1, "smollm2-135m is not installed; `specchat models pull smollm2-135m` fetches"),
        (["--ctx", "512", "--workloads", "edit"], 1, "context"),
        (["-m", "no-such-model"], 1, "no-such-model"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_sentence(
    files: tuple[Path, Path], arguments: list[str], code: int, sentence: str
) -> None:
    ended, out, err = bench("-m", str(files[0]), "--max-tokens", "2", *arguments)
    assert (ended, out) == (code, "")
    assert sentence in err.splitlines()[-1]
    assert "Traceback" not in err


def test_without_any_model_the_way_to_one_is_named() -> None:
    code, out, err = bench()
    assert (code, out) == (1, "")
    assert "specchat models pull smollm2-135m" in err


def test_a_draft_model_that_is_refused_is_said_and_the_rest_is_measured(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tiny.make_mismatched(tmp_path / "other.gguf")
    code, out, err = bench(
        *("-m", str(files[0]), "--draft", str(other), "--workloads", "story", "--max-tokens", "2", "--rounds", "1"),
        "--json",
    )
    assert code == 0
    assert "other can't draft for this model" in err
    report = msgspec.json.decode(out, type=Report)
    assert report.draft is None
    assert report.settings.modes == ["plain", "lookup", "auto"]


@pytest.mark.real
def test_a_real_model_edits_in_fewer_passes_and_writes_the_same_text(real_model: Callable[[str], Path]) -> None:
    code, out, err = bench(
        *("-m", str(real_model("smollm2-135m")), "--modes", "plain,lookup", "--workloads", "edit,story"),
        *("--max-tokens", "64", "--rounds", "2", "--gamma", "8", "--exact", "--json"),
    )
    assert code == 0, err
    rows = {(row.workload, row.mode): row for row in msgspec.json.decode(out, type=Report).results}
    for name in ("edit", "story"):
        plain, lookup = rows[name, "plain"], rows[name, "lookup"]
        assert plain.target_passes == plain.tokens == lookup.tokens == 128
        assert lookup.same_text_as_plain
    assert rows["edit", "lookup"].accepted > 0
    assert rows["edit", "lookup"].target_passes < rows["story", "lookup"].target_passes
    assert rows["edit", "plain"].ttft_s is not None and rows["edit", "lookup"].ttft_s is None
