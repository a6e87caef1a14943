"""What the bench prints can be computed again from the traces that it writes."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from statistics import median
from typing import Any

import pytest

from bench_records import round_of, tiny_pair
from specchat.bench.figures import by_source, percentile, timing

MODES = "plain,auto,lookup:4,draft:2,both:3"
Traces = dict[tuple[str, str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Traces]:
    """The JSON of a bench of real models, its tables, and the traces of the former by workload and mode."""
    folder = tmp_path_factory.mktemp("bench")
    target, draft = tiny_pair(folder)
    program = (sys.executable, "-c", "from specchat.cli import main; main()", "bench", "-m", str(target))
    ended = subprocess.run(
        (
            *program,
            *("--draft", str(draft), "--workloads", "story,chat", "--modes", MODES, "--rounds", "2"),
            *("--max-tokens", "24", "--threads", "1", "--trace", str(folder / "t.jsonl"), "--json"),
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    traces: Traces = defaultdict(list)
    for line in (folder / "t.jsonl").read_text().splitlines():
        trace = json.loads(line)
        traces[trace["workload"], trace["mode"]].append(trace)
    return json.loads(ended.stdout), ended.stdout, traces


def judged(one: dict[str, Any]) -> int:
    """Drafted tokens of a round that lie before the answer's end."""
    return int(one["drafted"] if one["emitted"] > one["accepted"] else one["emitted"])


def rates(traces: list[dict[str, Any]]) -> list[float]:
    """Tokens per second, round by round of the bench."""
    tokens: Counter[int] = Counter()
    seconds: defaultdict[int, float] = defaultdict(float)
    for trace in traces:
        tokens[trace["round"]] += len(trace["answer"])
        for one in trace["rounds"]:
            seconds[trace["round"]] += one["draft_s"] + one["verify_s"] + one["host_s"]
    return [tokens[number] / seconds[number] for number in sorted(tokens)]


def test_every_run_is_there_and_every_turn_of_a_chat(measured: tuple[dict[str, Any], str, Traces]) -> None:
    _, _, traces = measured
    assert set(traces) == {(workload, mode) for workload in ("story", "chat") for mode in MODES.split(",")}
    for (workload, _), found in traces.items():
        turns = 4 if workload == "chat" else 1
        assert [trace["continues"] for trace in found] == ([False] + [True] * (turns - 1)) * 2
        assert [trace["round"] for trace in found] == [0] * turns + [1] * turns
        for trace in found:
            assert (trace["model"], trace["draft"]) == ("target", "draft")
            assert trace["sampling"]["temperature"] == (1.0 if workload == "story" else 0.0)
            assert trace["rounds"][0]["length"] == len(trace["prompt"])


def test_a_further_turn_goes_on_from_the_one_before(measured: tuple[dict[str, Any], str, Traces]) -> None:
    _, _, traces = measured
    for mode in MODES.split(","):
        for before, after in zip(traces["chat", mode][:3], traces["chat", mode][1:4], strict=True):
            so_far = [*before["prompt"], *before["answer"]]
            assert after["prompt"][: len(so_far)] == so_far
            assert len(after["prompt"]) > len(so_far)


def test_every_position_says_what_the_draft_model_would_have_drafted(
    measured: tuple[dict[str, Any], str, Traces],
) -> None:
    _, _, traces = measured
    for found in traces.values():
        for trace in found:
            along = trace["draft_along"]
            assert len(along["confidence"]) == len(along["agrees"]) == len(trace["answer"]) == 24
            assert all(0 < confidence <= 1 for confidence in along["confidence"])
    drafts = [trace for mode in ("draft:2", "both:3") for trace in traces["story", mode] + traces["chat", mode]]
    firsts = [
        (one["accepted"] > 0, trace["draft_along"]["agrees"][one["length"] - len(trace["prompt"])])
        for trace in drafts
        for one in trace["rounds"]
        if one["source"] == "draft"
    ]
    assert len(firsts) > 50
    assert sum(accepted == agreed for accepted, agreed in firsts) > 0.95 * len(firsts)


def test_the_figures_are_those_of_the_traces(measured: tuple[dict[str, Any], str, Traces]) -> None:
    report, _, traces = measured
    for row in report["results"]:
        found = traces[row["workload"], row["mode"]]
        rounds = [one for trace in found for one in trace["rounds"]]
        assert row["tokens"] == sum(len(trace["answer"]) for trace in found) == sum(one["emitted"] for one in rounds)
        assert row["target_passes"] == len(rounds)
        for counter in ("draft_passes", "accepted"):
            assert row[counter] == sum(one[counter] for one in rounds)
        assert row["drafted"] == sum(judged(one) for one in rounds)
        assert row["draft_prefilled"] == sum(one["draft_read"] for one in rounds)
        assert row["tokens_per_pass"] == pytest.approx(row["tokens"] / len(rounds))
        own, plain = rates(found), rates(traces[row["workload"], "plain"])
        ratios = [a / b for a, b in zip(own, plain, strict=True)]
        for spread, values in ((row["tokens_per_s"], own), (row["ratio_to_plain"], ratios)):
            assert [spread["median"], spread["min"], spread["max"]] == pytest.approx(
                [median(values), min(values), max(values)]
            )
        first = [trace["answer"] for trace in traces[row["workload"], "plain"]]
        assert row["same_text_as_plain"] == ([trace["answer"] for trace in found] == first)


def test_times_and_shares_are_those_of_the_traces(measured: tuple[dict[str, Any], str, Traces]) -> None:
    report, _, traces = measured
    for row in report["results"]:
        rounds = [one for trace in traces[row["workload"], row["mode"]] for one in trace["rounds"]]
        seconds = [one["draft_s"] + one["verify_s"] + one["host_s"] for one in rounds]
        tokens = sorted(
            s / one["emitted"] for s, one in zip(seconds, rounds, strict=True) for _ in range(one["emitted"])
        )
        timing = row["timing"]
        assert timing["token_p50_s"] == pytest.approx(tokens[-(-len(tokens) * 50 // 100) - 1])
        assert timing["token_p99_s"] == pytest.approx(tokens[-(-len(tokens) * 99 // 100) - 1])
        assert timing["pause_s"] == pytest.approx(max(seconds))
        for share in ("draft", "verify", "host"):
            assert timing[f"{share}_share"] == pytest.approx(sum(one[f"{share}_s"] for one in rounds) / sum(seconds))


def test_acceptance_by_source_and_position_is_that_of_the_traces(
    measured: tuple[dict[str, Any], str, Traces],
) -> None:
    report, _, traces = measured
    seen = set()
    for row in report["results"]:
        rounds = [one for trace in traces[row["workload"], row["mode"]] for one in trace["rounds"]]
        parts = [part for one in rounds for part in by_hand(one)]
        assert [source["source"] for source in row["sources"]] == sorted({part[0] for part in parts})
        for source in row["sources"]:
            seen.add((row["mode"], source["source"]))
            drafts = [(judged, accepted) for name, judged, accepted in parts if name == source["source"]]
            assert source["rounds"] == len(drafts)
            assert source["drafted"] == sum(judged for judged, _ in drafts)
            assert source["acceptance"] == pytest.approx(sum(max(a, 0) for _, a in drafts) / source["drafted"])
            longest = max(judged for judged, _ in drafts)
            for i in range(longest):
                had = [accepted for judged, accepted in drafts if judged > i]
                assert source["drafted_at"][i] == len(had)
                assert source["reached_at"][i] == sum(accepted >= i for accepted in had)
                assert source["accepted_at"][i] == sum(accepted > i for accepted in had)
            assert len(source["drafted_at"]) == longest
    assert {("draft:2", "draft"), ("both:3", "draft"), ("lookup:4", "lookup")} <= seen


def by_hand(one: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Source, judged and accepted tokens of a draft's parts; fewer than 0 accepted where a token before them failed."""
    drawn = one["drafted"] - one["copied"]
    front = (one["source"], min(judged(one), drawn), min(one["accepted"], drawn))
    behind = ("lookup", judged(one) - drawn, one["accepted"] - drawn)
    return [part for part in (front, behind) if part[1] > 0]


def test_percentiles_count_every_token() -> None:
    assert percentile([(1.0, 98), (2.0, 1), (9.0, 1)], 0.99) == 2.0
    assert percentile([(1.0, 1), (2.0, 1)], 0.5) == 1.0
    assert percentile([(1.0, 1), (2.0, 2)], 0.5) == 2.0
    assert percentile([(3.0, 7)], 0.99) == 3.0


def test_a_round_cut_short_by_the_end_shares_its_time_among_the_tokens_that_were_kept() -> None:
    cut = round_of("lookup", 4, 4, 0.6)
    assert timing([cut]) is not None
    found = timing([round_of(seconds=0.1), cut])
    assert found is not None
    assert (found.token_p50_s, found.pause_s) == pytest.approx((0.12, 0.6))


def test_without_rounds_there_are_no_figures() -> None:
    assert timing([]) is None
    assert by_source([round_of()]) == ()
