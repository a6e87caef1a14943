"""Stats in words."""

import re
from dataclasses import replace

import pytest

from fake_engine import stats_after
from specchat.chat import Answer
from specchat.tui.course import Course, sparkline
from specchat.tui.explanation import explained
from specchat.tui.figures import by_source, fitting, footer, names, status
from specengine.protocol import Loaded
from specengine.stats import SourceStats, Stats

LOADED = Loaded("Qwen2.5-Coder-1.5B", "/m", "llamacpp", "CPU", 8192, 151_936, "Qwen2.5-Coder-0.5B")


def bar(width: int, stats: Stats | None, live: bool = False) -> str:
    return " | ".join(piece.text for piece in fitting(status(LOADED, stats, live, "auto"), width))


def test_unknown_figures_are_dashes() -> None:
    assert bar(200, None) == ("Qwen2.5-Coder-1.5B + 0.5B | – tok/s | –× | – accepted | γ – | –/8,192 ctx | SPEC auto")


def test_rates_are_recent_ones_while_an_answer_streams() -> None:
    assert "21.5 tok/s | 2.15×" in bar(200, stats_after(10), live=True)
    assert "20.0 tok/s | 2.00×" in bar(200, stats_after(10), live=False)


def test_the_bar_names_the_source_of_the_last_draft() -> None:
    assert "γ 4 lookup" in bar(200, stats_after(10))


@pytest.mark.parametrize("width", range(12, 120))
def test_a_narrow_bar_drops_the_less_important_pieces(width: int) -> None:
    shown = bar(width, stats_after(10))
    assert shown.endswith("SPEC auto")
    assert len(shown.replace(" | ", "   ")) <= width
    assert ("20.0 tok/s" in shown) == (width >= 22)


def drafted(count: int, emitted: int) -> Stats:
    return replace(stats_after(emitted), draft_passes=count, sources={"draft": SourceStats(count, count, 0)})


@pytest.mark.parametrize(
    ("stats", "told"),
    [
        (drafted(0, 100), False),
        (drafted(3, 100), False),
        (drafted(7, 10), False),
        (drafted(8, 10), True),
        (drafted(9, 100), False),
        (drafted(10, 100), True),
    ],
)
def test_a_speedup_is_told_once_enough_was_drafted_to_tell(stats: Stats, told: bool) -> None:
    """Plain decoding beside the plain rate measured at another time tells only how busy the machine was."""
    assert (stats.speedup is not None) == (stats.recent_speedup is not None) == told
    assert ("2.00×" in bar(200, stats)) == ("2.15×" in bar(200, stats, live=True)) == told
    assert ("2.00×" in footer(Answer("x", "end", None, stats))) == told
    assert ("2.00× over plain" in explained(Answer("x", "end", None, stats))) == told
    assert told or ("×" not in footer(Answer("x", "end", None, stats)) and " | –× | " in bar(200, stats))


def test_why_there_is_no_speedup_is_told() -> None:
    unmeasured = replace(stats_after(100), plain_s_per_token=None)
    for stats, why in ((drafted(0, 9), "nothing was drafted"), (drafted(3, 9), "too little"), (unmeasured, "measured")):
        assert re.search(rf"^speedup +–: .*{why}", explained(Answer("x", "end", None, stats)), re.MULTILINE)


def test_a_draft_is_named_without_the_family_it_shares() -> None:
    assert names(Loaded("a-1b", "", "", "", 1, 1, "b-1b")) == "a-1b + b-1b"
    assert names(Loaded("same", "", "", "", 1, 1, "same")) == "same + same"
    assert names(Loaded("a-1b", "", "", "", 1, 1)) == "a-1b"


def test_the_footer_says_why_an_answer_ended_early() -> None:
    assert footer(Answer("x", "end", None, stats_after(10))) == (
        "10 tokens · 20.0 tok/s · 2.00× · 50% of drafts accepted"
    )
    assert footer(Answer("x", "stopped", None, stats_after(1))).endswith("stopped")
    assert footer(Answer("x", "context")) == "cut: the context is full"


def test_the_bar_draws_how_the_answer_went_where_there_is_room() -> None:
    course = Course()
    for tokens in range(2, 21, 2):
        course.see(stats_after(tokens))
    pieces = status(LOADED, stats_after(20), False, "auto", course)
    rates, gammas = (sparkline(values, 12) for values in (course.rates, course.gammas))
    assert [piece.text for piece in pieces][2] == rates and gammas in [piece.text for piece in pieces]
    assert rates not in [piece.text for piece in fitting(pieces, 80)]
    assert rates in [piece.text for piece in fitting(pieces, 140)]


def test_a_course_that_grew_too_long_for_the_room_is_drawn_smaller_and_does_not_vanish() -> None:
    course = Course()
    for tokens in range(2, 41, 2):
        course.see(stats_after(tokens))
    pieces = status(LOADED, stats_after(40), False, "auto", course)
    without = sum(len(piece.text) + 3 for piece in pieces if piece.rank < 7) - 3
    for columns in range(6, 13):
        shown = fitting(pieces, without + 3 + columns)
        assert shown[2].text == sparkline(course.rates, columns) and len(shown[2].text) == columns
        assert sum(len(piece.text) + 3 for piece in shown) - 3 == without + 3 + columns
    assert [piece.rank for piece in fitting(pieces, without + 3 + 5)].count(7) == 0


def test_acceptance_is_told_source_by_source() -> None:
    stats = stats_after(10)
    stats.sources["draft"] = SourceStats(3, 9, 6)
    assert by_source(stats) == "prompt lookup: 50%, 5 of 10 tokens\ndraft model: 67%, 6 of 9 tokens"
    assert by_source(None) == by_source(Stats()) == ""
