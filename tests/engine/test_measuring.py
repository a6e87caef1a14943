"""Measuring what passes cost: one pass at a time, the widths that decide most first, and odd ones twice."""

from collections.abc import Callable

import numpy as np
import pytest

from specengine.costs import GRID, MEASURED_WIDTHS, CostTable
from specengine.draft import PLAIN, Draft
from specengine.gamma import Gamma, Situation
from specengine.measuring import measuring, unmeasured


def counted(
    curve: Callable[[int], float], slow: dict[int, float] | None = None
) -> tuple[Callable[[int], float], list[int]]:
    """A pass that takes what `curve` says, the first of all ten times that, and those of `slow` so many times once."""
    widths: list[int] = []
    stalls = dict(slow or {})

    def run(width: int) -> float:
        first = not widths
        widths.append(width)
        return curve(width) * (10 if first else stalls.pop(width, 1.0))

    return run, widths


def last(tables: list[CostTable]) -> CostTable:
    return tables[-1]


def test_every_width_is_measured_once_and_the_plain_pass_twice_after_the_first() -> None:
    run, widths = counted(lambda width: 0.01 + 0.002 * width)
    costs = last(list(measuring(run)))
    assert sorted(widths) == sorted([1, 1, *MEASURED_WIDTHS])
    np.testing.assert_allclose(costs.target_s, [0.01 + 0.002 * width for width in GRID])
    assert (costs.draft_step_s, costs.draft_read_s) == (None, None)


def test_one_pass_lies_between_two_tables() -> None:
    run, widths = counted(lambda width: 0.01 * width)
    passes = [len(widths) for _ in measuring(run)]
    assert passes == list(range(2, 2 + len(passes)))


@pytest.mark.parametrize("width", [2, 3, 4, 6, 8, 16])
def test_a_width_at_which_the_machine_stalled_is_measured_again(width: int) -> None:
    run, _ = counted(lambda width: 0.01 + 0.002 * width, slow={width: 3.0})
    np.testing.assert_allclose(last(list(measuring(run))).target_s, [0.01 + 0.002 * width for width in GRID])


def test_a_kernel_that_makes_wider_passes_cheaper_is_believed() -> None:
    curve = {1: 85, 2: 125, 3: 147, 4: 130, 6: 203, 8: 243, 16: 285, 32: 480}
    run, _ = counted(lambda width: curve[width] / 1e3)
    costs = last(list(measuring(run)))
    assert [costs.target(width) for width in (3, 4)] == [0.147, 0.130]


def test_steps_between_widths_are_kept() -> None:
    costs = last(list(measuring(counted(lambda width: 0.01 if width < 4 else 0.04)[0])))
    assert (costs.target(3), costs.target(4), costs.target(128)) == (0.01, 0.04, 0.04)


def test_a_curve_that_falls_is_not_continued_below_what_was_measured() -> None:
    costs = last(list(measuring(counted(lambda width: 0.5 / width)[0])))
    assert costs.target(128) == costs.target(32) > 0


def test_a_draft_model_is_measured_for_a_step_and_for_reading() -> None:
    step, steps = counted(lambda width: 0.02)
    read, reads = counted(lambda width: 0.001 * width)
    costs = last(list(measuring(counted(lambda width: 0.1)[0], step, read)))
    assert costs.draft_step_s == pytest.approx(0.02)
    assert costs.draft_read_s == pytest.approx(0.01)  # its first pass, ten times too slow
    assert (set(steps), reads) == ({1}, [32])


def test_nothing_is_drafted_on_a_guess() -> None:
    """Before all is measured, drafts of lengths that were not measured never look worth it."""
    proposal = Draft("lookup", tuple(range(127)), tuple(90.0 + i for i in range(127)))
    now = Situation(proposal, True, 0, 127, "auto", None)
    assert Gamma(unmeasured()).plan(now) is PLAIN
    run, widths = counted(lambda width: 0.01 + 0.0001 * width)
    for costs in measuring(run):
        plan = Gamma(costs).plan(now)
        assert plan is PLAIN or plan.limit + 1 <= max(widths) or max(widths) == 32


def test_what_a_context_adds_is_first_guessed_from_the_bytes_that_it_takes() -> None:
    costs = last(list(measuring(counted(lambda width: 0.01 + 0.002 * width)[0], kv_share=1e-4)))
    assert costs.context_s == pytest.approx(1e-4 * 0.012)
    assert costs.pair_s == pytest.approx(1e-4 * 0.002)
