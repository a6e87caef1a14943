"""Stats in words."""

import pytest

from fake_engine import stats_after
from specchat.chat import Answer
from specchat.tui.figures import explained, fitting, footer, names, status
from specengine.protocol import Loaded
from specengine.stats import SourceStats, Stats

LOADED = Loaded("Qwen2.5-Coder-1.5B", "/m", "llamacpp", "CPU", 8192, 151_936, "Qwen2.5-Coder-0.5B")


def bar(width: int, stats: Stats | None, live: bool = False) -> str:
    return " | ".join(piece.text for piece in fitting(status(LOADED, stats, live, "auto"), width))


def test_unknown_figures_are_dashes() -> None:
    assert bar(200, None) == ("Qwen2.5-Coder-1.5B + 0.5B | – tok/s | –× | – accepted | γ – | 0/8,192 ctx | SPEC auto")


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


def test_the_table_tells_every_source_and_where_the_seconds_went() -> None:
    stats = stats_after(10)
    stats.sources["draft"] = SourceStats(3, 9, 6)
    table = explained(Answer("x", "end", None, stats))
    for line in (
        "10 in 5 target passes",
        "2.00 tokens (1.00 without speculation)",
        "prompt lookup 50%: 5 of 10 in 5 rounds",
        "draft model   67%: 6 of 9 in 3 rounds",
        "0.25 s after the request",
        "120 tokens: 100 reused, 19 read",
        "prefill 0.20 s, draft 0.10 s",
        "verify 0.30 s, host 0.10 s",
    ):
        assert line in table
    assert max(len(line) for line in table.splitlines()) <= 80


def test_without_an_answer_the_table_is_one_sentence() -> None:
    assert explained(None).endswith("first one.")
