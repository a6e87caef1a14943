"""Sparklines: how an answer went, in bounded memory and in characters that the terminal has."""

import pytest

from specchat.tui.course import ASCII, BLOCKS, MOST, Course, glyphs, sparkline
from specengine.stats import Stats


def stats(passes: int, emitted: int, decode_s: float, gamma: int = 0) -> Stats:
    return Stats(target_passes=passes, emitted=emitted, verify_s=decode_s, gamma=gamma)


def test_each_stretch_has_its_own_rate_and_mean_draft_length() -> None:
    course = Course()
    for one in (stats(1, 2, 0.2, 1), stats(2, 12, 0.4, 9), stats(3, 13, 0.45), stats(4, 14, 0.5)):
        course.see(one)
    assert course.rates == pytest.approx([10, 50, 20])
    assert course.gammas == [1, 9, 0]


def test_figures_that_say_nothing_new_change_nothing() -> None:
    course = Course()
    for one in (stats(1, 2, 0.2), stats(1, 2, 0.2), Stats()):
        course.see(one)
    assert course.rates == pytest.approx([10])


@pytest.mark.parametrize("rounds", [1_000, 50_000])
def test_a_long_answer_takes_no_more_memory_and_loses_no_token(rounds: int) -> None:
    course = Course()
    for number in range(1, rounds + 1):
        course.see(stats(number, 2 * number, 0.1 * number, 4))
        assert len(course.rates) <= MOST
    assert course.rates == pytest.approx([20] * len(course.rates))
    assert set(course.gammas) == {4}
    assert sum(stretch.tokens for stretch in course._stretches) == 2 * rounds


def test_a_sparkline_goes_from_nothing_to_the_greatest() -> None:
    assert sparkline([0, 1, 4, 8], 10) == "▁▃▅█"
    assert sparkline([0, 1, 4, 8], 10, ASCII) == "_:=#"
    assert sparkline([], 10) == "" and sparkline([0, 0], 10) == "▁▁"


def test_more_values_than_columns_are_means_of_neighbours() -> None:
    assert sparkline([0, 0, 8, 8, 4, 4], 3) == sparkline([0, 8, 4], 3)
    assert len(sparkline([1.0] * 1000, 12)) == 12


@pytest.mark.parametrize(
    ("environment", "encoding", "levels"),
    [
        ({"TERM": "xterm-256color"}, "utf-8", BLOCKS),
        ({"TERM": "xterm-256color"}, "UTF-8", BLOCKS),
        ({"TERM": "linux"}, "utf-8", ASCII),
        ({"TERM": "xterm"}, "ascii", ASCII),
        ({}, None, ASCII),
    ],
)
def test_terminals_without_block_characters_get_ascii(
    environment: dict[str, str], encoding: str | None, levels: str
) -> None:
    assert glyphs(environment, encoding) == levels
    assert len(levels) == 8
