"""`specchat bench --replay`: recorded answers under other cost tables, without a model."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from specchat.bench.command import bench
from specchat.bench.replay import told_again
from specengine.errors import EngineError
from specengine.hindsight import fixed_settings
from specengine.study_costs import STUDIES
from specengine.trace import read_traces, write_traces

TRACES = Path(__file__).parent.parent / "data" / "traces.jsonl.gz"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """An answer and the first two turns of a chat."""
    traces = list(read_traces(TRACES))
    chat = next(i for i, one in enumerate(traces) if one.workload == "chat")
    file = tmp_path / "traces.jsonl"
    write_traces(file, [traces[1], traces[chat], traces[chat + 1]])
    return file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(bench, arguments, catch_exceptions=False, standalone_mode=False)


class Told(msgspec.Struct):
    """What the JSON says of a conversation."""

    name: str
    plain: float
    ours: float
    oracle: float
    fixed: list[dict[str, float]]


class Output(msgspec.Struct):
    costs: dict[str, str]
    conversations: list[Told]
    reliability: dict[str, list[dict[str, float]]]


def data(*arguments: str) -> Output:
    return msgspec.json.decode(run(*arguments, "--json").output, type=Output)


def test_it_tells_plain_ours_the_best_fixed_and_the_oracle_of_every_conversation(two: Path) -> None:
    found = data("--replay", str(two), "--costs", "rtx-4090")
    assert found.costs["source"].startswith("modelled")
    assert [one.name for one in found.conversations] == ["explain, temperature 0", "chat, temperature 0"]
    for one in found.conversations:
        assert len(one.fixed) == len(fixed_settings(with_draft=True))
        best = max(fixed["tokens_per_s"] for fixed in one.fixed)
        assert one.plain < best <= one.oracle
        assert one.ours <= one.oracle


def test_it_tells_how_far_predictions_came_true(two: Path) -> None:
    for rows in data("--replay", str(TRACES)).reliability.values():
        for row in rows:
            assert abs(row["predicted"] - row["accepted"]) <= 0.15
    assert "predicted before verifying" in run("--replay", str(two)).output


def test_without_a_name_the_costs_are_those_of_the_trace(two: Path) -> None:
    own = data("--replay", str(two)).conversations[0]
    costs = next(iter(read_traces(two))).costs
    assert own.plain == pytest.approx(1 / (costs.target(1) + costs.host_s), rel=0.1)


def test_the_words_name_the_table_and_the_fastest_fixed_setting(two: Path) -> None:
    text = run("--replay", str(two), "--costs", "cpu-2-cores").output
    assert STUDIES["cpu-2-cores"].source in text
    assert "lookup alone, over plain" in text
    assert "draft alone, over plain" in text
    assert max(map(len, text.splitlines())) <= 130


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--replay", "{two}", "--costs", "toaster"), "no cost table 'toaster'; choose from own, cpu-2-cores"),
        (("--replay", "{two}.missing"), "can't be read"),
        (("--replay", "{empty}"), "holds no traces"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_a_sentence(
    two: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(EngineError, match=message):
        run(*(argument.format(two=two, empty=tmp_path / "empty") for argument in arguments))


def test_in_a_narrow_terminal_what_was_left_out_ends_its_own_table(two: Path) -> None:
    lines = told_again(two, "cpu-2-cores", as_json=False, width=40).splitlines()
    draft = next(at for at, line in enumerate(lines) if line.startswith("draft ") and line.endswith("predicted"))
    assert lines[draft - 3].startswith("A wider terminal") or lines[draft - 2].startswith("A wider terminal")
    assert lines[draft - 1] == ""


def test_a_cost_table_without_a_replay_is_a_misuse() -> None:
    result = CliRunner().invoke(bench, ["--costs", "rtx-4090"])
    assert result.exit_code == 2
    assert "--replay" in result.output


def test_the_help_names_every_table() -> None:
    help_text = CliRunner().invoke(bench, ["--help"]).output
    assert all(name in help_text for name in STUDIES)
