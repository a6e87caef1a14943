"""What people read: the table, the sentence under it, and progress on the way."""

import io
import json
import os
from pathlib import Path

import pytest

from bench_records import planned, round_of, run_of
from specchat.bench import report
from specchat.bench.native_lines import native_lines_in
from specchat.bench.progress import Progress, Remaining
from specchat.bench.records import ColdStart, Record
from specchat.bench.results import results
from specengine.protocol import Loaded

LOADED = Loaded("toy", "toy.gguf", "llama.cpp", "CPU, 2 threads", n_ctx=2048, n_vocab=100, draft="small")


def test_the_table_has_a_row_for_each_result_and_ends_in_what_it_means() -> None:
    plan = planned(rounds=2, modes=("plain", "auto"))
    records: list[Record] = [
        ColdStart(workload="copy", mode="plain", prompt_tokens=9, prefilled_tokens=8, first_token_s=1.25)
    ]
    drafts = [round_of("lookup", 4, 4, 0.1), round_of("draft", 4, 1, 0.2), round_of(seconds=1.0)]
    for round, slower in enumerate((1.0, 1.02)):
        records += [
            run_of("plain", round, 5 * slower),
            run_of("auto", round, 2 * slower, target_passes=40, drafted=80, accepted=60, rounds=drafts),
            run_of("plain", round, 5 * slower, workload="tale"),
            run_of("auto", round, 5.05 * slower, workload="tale", tokens=[*range(99), 7]),
        ]
    words = report.in_words(results(records, plan), plan, LOADED)
    assert words.splitlines() == [
        "toy + small on CPU, 2 threads: greedy, up to 48 tokens, 2 rounds",
        "",
        "workload  mode   tokens/s               × plain  first token  text",
        "copy      plain      19.8  (19.6–20.0)     1.00       1.25 s",
        "copy      auto       49.5  (49.0–50.0)     2.50               as plain",
        "",
        "tale      plain      19.8  (19.6–20.0)     1.00",
        "tale      auto       19.6  (19.4–19.8)     0.99               forks at 100",
        "",
        "Milliseconds a token and longest pause; shares of time; tokens a pass; acceptance of each source:",
        "workload  mode   p50     p99   pause  drafting  verifying  host  tokens/pass  lookup  draft",
        "copy      auto  20.0  1000.0  1000.0        5%        80%   15%         2.50    100%    25%",
        "",
        "copy, auto: 62% of the 4.00× that this machine's pass costs would allow if every drafted token were accepted.",
        "",
        "Compared with plain decoding on this machine, speculation gains on copy (2.50×) and costs nothing on tale "
        "(0.99×).",
    ]


@pytest.mark.parametrize(
    ("ratios", "sentence"),
    [
        ([2.0, 2.2], "gains on copy (2.10×)."),
        ([1.0, 0.98], "costs nothing on copy (0.99×)."),
        ([0.5, 0.6], "loses on copy (0.55×)."),
        ([0.5, 1.5], "gave no clear answer on copy (1.00×)."),
    ],
)
def test_the_last_sentence_follows_the_ratios(ratios: list[float], sentence: str) -> None:
    records = [
        run
        for round, ratio in enumerate(ratios)
        for run in (run_of("plain", round, 1), run_of("draft", round, 1 / ratio, drafted=40))
    ]
    said = report.meaning(results(records, planned()))
    assert said == f"Compared with plain decoding on this machine, speculation by the draft model {sentence}"


def test_what_drafted_nothing_is_not_said_to_gain() -> None:
    said = report.meaning(results([run_of("plain", 0, 1), run_of("auto", 0, 0.5)], planned()))
    assert said.endswith("speculation gave no clear answer on copy (2.00×).")


def test_what_drafted_nothing_is_not_said_to_lose() -> None:
    said = report.meaning(results([run_of("plain", 0, 1), run_of("auto", 0, 2)], planned()))
    assert said.endswith("speculation gave no clear answer on copy (0.50×).")


def test_without_plain_the_last_sentence_asks_for_it() -> None:
    assert "--modes plain,auto" in report.meaning(results([run_of("auto", 0, 1)], planned()))


def test_an_unsteady_machine_is_pointed_out() -> None:
    records = [run_of("plain", 0, 1), run_of("plain", 1, 2)]
    words = report.in_words(results(records, planned()), planned(), LOADED)
    assert "Plain's own rate varied by 67% between rounds" in words


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_rewritten_line_on_a_terminal() -> None:
    stream = Terminal()
    progress = Progress(stream)
    progress.tell("reading", "1 of 2")
    progress.tell("writing", "now")
    progress.end()
    assert stream.getvalue().split("\r") == ["", "reading, 1 of 2", "writing, now   ", " " * 12, ""]
    assert "\n" not in stream.getvalue()


def test_progress_elsewhere_is_a_line_for_each_stage() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    for at in range(100):
        progress.tell("reading", f"{at} of 100")
    progress.tell("writing", "now")
    progress.end()
    assert stream.getvalue() == "reading\nwriting\n"


def test_what_native_code_prints_goes_to_the_log_and_progress_to_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "log").open("wb") as log, native_lines_in(log) as stderr:
        os.write(2, b"native\n")
        print("ours", file=stderr)
    os.write(2, b"later\n")
    assert (tmp_path / "log").read_bytes() == b"native\n"
    assert capfd.readouterr().err == "ours\nlater\n"


def test_what_remains_is_counted_and_foretold_from_the_pace_so_far() -> None:
    now = [100.0]
    remaining = Remaining(12, lambda: now[0])
    assert str(remaining) == "run 1 of 12"
    now[0] += 20
    remaining.finished()
    assert str(remaining) == "run 2 of 12, about 4 min left"
    for _ in range(10):
        remaining.finished()
    now[0] += 200
    assert str(remaining) == "run 12 of 12, about 20 s left"
    remaining.finished()
    assert str(remaining).startswith("run 12 of 12")


def test_json_keeps_lists_of_numbers_on_one_line_and_reads_back_the_same() -> None:
    made = {"a": [1, 2.5, 3], "b": ["1, 2", "[ 3 ]"], "c": [{"d": []}], "e": "é"}
    text = report.as_text(made)
    assert json.loads(text) == made
    assert '"a": [1, 2.5, 3]' in text
