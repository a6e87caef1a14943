"""What passes cost: how the table follows real passes and the context, and the file that keeps it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from specengine import costs_file
from specengine.costs import GRID, CostTable
from specengine.protocol import Load

STEPS = [0.030, 0.055, 0.060, 0.095, 0.120, 0.140, 0.220, 0.240, 0.260, 0.330, 0.420, 0.60, 0.80, 1.2, 1.6]


def table() -> CostTable:
    return CostTable(list(STEPS), draft_step_s=0.02, draft_read_s=0.01)


def test_the_cost_of_every_width_of_the_grid_is_the_one_in_the_table() -> None:
    assert [table().target(width) for width in GRID] == STEPS


def test_between_widths_of_the_grid_costs_lie_on_a_line() -> None:
    assert table().target(7) == pytest.approx((table().target(6) + table().target(8)) / 2)
    assert table().target(112) == pytest.approx((table().target(96) + table().target(128)) / 2)


@pytest.mark.parametrize("longest", [2, 3, 17, 128])
def test_many_widths_at_once_cost_what_they_cost_one_by_one(longest: int) -> None:
    np.testing.assert_allclose(table().targets(longest), [table().target(width) for width in range(2, longest + 1)])


@pytest.mark.parametrize("width", [1, 2, 5, 7, 16, 100, 128])
def test_a_pass_moves_its_own_width_most_and_every_width_a_little(width: int) -> None:
    costs = table()
    costs.observe_target(width, 1.5 * costs.target(width))
    ratios = [after / before for before, after in zip(STEPS, costs.target_s, strict=True)]
    assert all(1 < ratio <= 1.5 for ratio in ratios)
    nearest = min(abs(at - width) for at in GRID)
    assert all(abs(GRID[i] - width) == nearest for i in range(len(GRID)) if ratios[i] == max(ratios))


def test_repeated_passes_are_believed_in_the_end() -> None:
    costs = table()
    for _ in range(40):
        costs.observe_target(1, 0.060)
        costs.observe_target(8, 0.300)
        costs.observe_draft(3, 0.030)
        costs.observe_draft_read(100, 0.5)
        costs.observe_host(0.002)
    assert costs.target(1) == pytest.approx(0.060, rel=0.05)
    assert costs.target(8) == pytest.approx(0.300, rel=0.05)
    assert costs.draft_step_s == pytest.approx(0.010, rel=0.05)
    assert costs.draft_read_s == pytest.approx(0.005, rel=0.05)
    assert costs.host_s == pytest.approx(0.002, rel=0.05)


def test_a_single_stall_of_the_machine_is_believed_a_little() -> None:
    costs, before = table(), table()
    costs.observe_target(4, 50 * before.target(4))
    costs.observe_host(1.0)
    assert before.target(4) < costs.target(4) < 1.2 * before.target(4)
    assert before.target(128) < costs.target(128) < 1.05 * before.target(128)
    assert before.host_s < costs.host_s < 1.1 * before.host_s


def test_a_machine_that_stays_slow_is_believed_in_the_end() -> None:
    costs, before = table(), table()
    for _ in range(60):
        costs.observe_target(4, 10 * before.target(4))
    assert costs.target(4) == pytest.approx(10 * before.target(4), rel=0.01)


def test_a_machine_that_slows_down_while_only_plain_passes_run_slows_down_for_all_widths_and_the_draft_model() -> None:
    """Were it put down to plain passes, every draft would seem to pay by the time they take twice as long."""
    costs = table()
    for step in range(300):
        costs.observe_target(1, STEPS[0] * (1 + min(1, max(0, step - 100) / 100)))
    assert costs.target(1) == pytest.approx(2 * STEPS[0], rel=0.01)
    for width in GRID[1:]:
        assert costs.target(width) == pytest.approx(2 * table().target(width), rel=0.1)
    assert costs.draft_step_s == pytest.approx(0.04, rel=0.1)
    assert costs.draft_read_s == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("wrong", [1, 4, 16])
def test_a_width_that_was_measured_in_a_bad_moment_is_put_right_and_hardly_moves_the_others(wrong: int) -> None:
    costs = table()
    costs.target_s[GRID.index(wrong)] *= 1.5
    for _ in range(12):
        costs.observe_target(wrong, table().target(wrong))
    for width in GRID:
        assert costs.target(width) == pytest.approx(table().target(width), rel=0.05 if width == wrong else 0.15)


def grown(costs: CostTable, context_s: float, pair_s: float) -> CostTable:
    return CostTable(list(costs.target_s), costs.draft_step_s, costs.draft_read_s, context_s=context_s, pair_s=pair_s)


def test_a_longer_context_adds_to_every_pass_and_to_each_of_its_tokens() -> None:
    behind = grown(table(), 2e-6, 5e-6).at(1000)
    assert behind.target(1) == pytest.approx(table().target(1) + 0.002 + 0.005)
    assert behind.target(32) == pytest.approx(table().target(32) + 0.002 + 32 * 0.005)
    assert (behind.draft_step_s, behind.host_s) == (table().draft_step_s, table().host_s)
    assert table().at(1000) == table()


def test_real_passes_teach_what_the_context_adds_without_spoiling_what_short_ones_cost() -> None:
    """First guesses are three times too low; contexts alternate between short and long."""
    truth, costs = grown(table(), 3e-6, 6e-6), grown(table(), 1e-6, 2e-6)
    for step in range(400):
        context, width = (20, 3000)[step % 2], (1, 4, 16)[step % 3]
        costs.observe_target(width, truth.at(context).target(width), context)
    for context in (20, 1500, 3000):
        for width in (1, 4, 16):
            assert costs.at(context).target(width) == pytest.approx(truth.at(context).target(width), rel=0.08)


def test_nothing_observed_changes_nothing() -> None:
    costs = table()
    costs.observe_draft(0, 0.0)
    costs.observe_draft_read(0, 0.0)
    assert costs == table()


def test_a_draft_model_without_measured_costs_takes_its_first() -> None:
    costs = CostTable(list(STEPS))
    costs.observe_draft(2, 0.03)
    assert costs.draft_step_s == 0.015


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., Load]:
    (tmp_path / "target.gguf").write_bytes(b"weights")
    (tmp_path / "draft.gguf").write_bytes(b"few")

    def make(draft: bool = True, exact: bool = False) -> Load:
        return Load(str(tmp_path / "target.gguf"), draft=str(tmp_path / "draft.gguf") if draft else None, exact=exact)

    return make


def test_a_kept_table_comes_back_for_the_same_files_and_use_only(
    tmp_path: Path, request_of: Callable[..., Load]
) -> None:
    file = tmp_path / "somewhere" / "costs.json"
    key = costs_file.key(request_of(), "2 threads")
    costs_file.write(file, key, table())
    assert costs_file.read(file, key) == table()
    others = [
        costs_file.key(request_of(), "1 thread"),
        costs_file.key(request_of(draft=False), "2 threads"),
        costs_file.key(request_of(exact=True), "2 threads"),
    ]
    (tmp_path / "target.gguf").write_bytes(b"other weights")
    others.append(costs_file.key(request_of(), "2 threads"))
    assert len({key, *others}) == 5
    assert [costs_file.read(file, other) for other in others] == [None] * 4


def test_tables_of_several_models_live_side_by_side(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    other = CostTable([2 * seconds for seconds in STEPS])
    costs_file.write(file, "one", table())
    costs_file.write(file, "other", other)
    assert (costs_file.read(file, "one"), costs_file.read(file, "other")) == (table(), other)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"key": {"target_s": [1, 2]}}', b'{"key": {"target_s": [%s]}}' % b",".join([b"0"] * 15)],
)
def test_a_damaged_file_costs_a_measurement_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "costs.json"
    file.write_bytes(content)
    assert costs_file.read(file, "key") is None
    costs_file.write(file, "key", table())
    assert costs_file.read(file, "key") == table()


def test_a_place_that_cannot_be_written_to_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    costs_file.write(tmp_path / "file" / "costs.json", "key", table())
    assert costs_file.read(tmp_path / "file" / "costs.json", "key") is None
