"""A comparison in words."""

from fake_engine import stats_after
from specchat.chat import Answer
from specchat.compare import Fork, Mode
from specchat.tui.comparison import gain, heading, running, sameness
from specengine.protocol import NearTie
from specengine.stats import SourceStats, Stats

PLAIN = Stats(emitted=100, target_passes=100, verify_s=10.0)
DRAFTED = Stats(emitted=100, target_passes=40, verify_s=4.0, sources={"lookup": SourceStats(20, 90, 60)})


def pair(one: Stats | None = PLAIN, other: Stats | None = DRAFTED, text: str = "the same") -> dict[Mode, Answer]:
    return {
        "plain": Answer("the same text", "end", (1, 2, 3), one),
        "drafted": Answer(text, "end", (1, 2, 3), other),
    }


def test_the_gain_is_both_rates_and_their_ratio() -> None:
    assert gain(pair()) == ("25.0 against 10.0 tok/s: 2.50× faster with speculation.")


def test_a_loss_is_called_one() -> None:
    slow = Stats(emitted=100, target_passes=90, verify_s=12.5, sources={"draft": SourceStats(20, 90, 10)})
    assert gain(pair(other=slow)).startswith("8.0 against 10.0 tok/s: 1.25× slower with speculation.")


def test_what_rounds_to_no_gain_is_called_as_fast() -> None:
    even = Stats(emitted=100, target_passes=90, verify_s=9.99, sources={"draft": SourceStats(20, 90, 10)})
    assert gain(pair(other=even)).startswith("10.0 against 10.0 tok/s: as fast with speculation.")


def test_where_nothing_was_drafted_no_gain_is_claimed() -> None:
    same = gain(pair(other=PLAIN))
    assert same.startswith("10.0 against 10.0 tok/s, and both decoded plainly: no draft promised to pay.")
    few = gain(pair(other=Stats(emitted=100, target_passes=98, verify_s=9.0, sources={"lookup": SourceStats(1, 3, 2)})))
    assert few == "11.1 against 10.0 tok/s, with 3 tokens drafted: too few to tell. They may differ by chance."
    assert gain(pair(other=None)) == gain(pair(other=Stats())) == "Too little was written for a comparison."


def test_same_texts_are_called_identical_as_far_as_they_go() -> None:
    assert sameness(pair(), None, None, False) == "The texts are identical: 3 tokens."
    shorter = {**pair(), "drafted": Answer("the", "stopped", (1, 2), DRAFTED)}
    assert sameness(shorter, None, None, False) == "The texts are identical, as far as both go: 2 tokens."


def test_a_fork_is_shown_in_its_place_with_what_was_measured_there() -> None:
    answers = pair(text="the sane\ntext")
    told = sameness(answers, Fork(1, (2, 9)), NearTie(0.021, 0.3, True), False)
    assert told.startswith(
        "The texts part at token 2, behind “the sa”: “me text” without speculation, “ne⏎text” with. A near-tie: the "
        "two tokens are 0.021 apart in logits, and passes of other widths move that by 0.3. With --exact"
    )
    cut = (sameness(answers, Fork(1, (2, 9)), NearTie(None, 0.0, turns), False) for turns in (True, False))
    assert "Rounding decides there whether top-k" in next(cut)
    assert "sampling leaves only one of the two in play, whatever the width" in next(cut)
    clear = sameness(answers, Fork(1, (2, 9)), NearTie(2.0, 0.01, False), False)
    assert "Rounding at this place alone doesn't explain it" in clear and "near-tie" not in clear


def test_exact_is_not_advised_to_who_has_it() -> None:
    told = sameness(pair(text="x"), Fork(1, (2, 9)), NearTie(0.1, 0.3, False), True)
    assert told.endswith("This model file's passes differ by width even with --exact.")


def test_a_text_that_just_ends_earlier_is_told() -> None:
    told = sameness(pair(), Fork(3, None), None, False)
    assert told.startswith("The texts are identical for 3 tokens; then one of them ends. With --exact")


def test_sides_are_called_by_what_they_do() -> None:
    assert heading("plain", "off", None) == "speculation off"
    assert heading("drafted", "auto", None) == "speculation auto"
    assert heading("drafted", "on", 5) == "speculation on, γ 5"


def test_figures_of_a_side_are_recent_ones_while_it_runs() -> None:
    assert running(stats_after(10), live=True).startswith(
        "21.5 tok/s · 10 tokens · 2.00 a pass · 50% of drafts accepted"
    )
    assert running(stats_after(10), live=False).startswith("20.0 tok/s")
    assert running(PLAIN, live=False) == "10.0 tok/s · 100 tokens"
    assert running(None, live=False) == "–"
