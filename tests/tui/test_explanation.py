"""/stats: where the time went, both ratios that are called acceptance, and why γ was what it was."""

import re
from dataclasses import replace

import pytest

from fake_engine import stats_after
from specchat.chat import Answer, Settings
from specchat.tui.course import ASCII, Course
from specchat.tui.explanation import explained, reasons
from specengine.stats import SourceStats, Stats, Why


def answer(stats: Stats, draft: str = "small", settings: Settings | None = None) -> Answer:
    return Answer("x", "end", None, stats, draft=draft, settings=settings or Settings())


def because(draft: str = "small", settings: Settings | None = None, **why: object) -> list[str]:
    """The reasons of an answer of 60 passes, 12 of them with drafts of lookup."""
    stats = Stats(target_passes=60, sources={"lookup": SourceStats(12, 100, 80)}, why=Why(**why))  # type: ignore[arg-type]
    if why.get("drafted"):
        stats.sources["draft"] = SourceStats(30, 100, 80)
    return reasons(answer(stats, draft, settings))


def test_every_figure_has_its_line() -> None:
    stats = stats_after(10)
    stats.sources["draft"] = SourceStats(3, 9, 4)
    told = explained(answer(stats))
    for line in (
        r"tokens +10 in 5 target passes",
        r"per pass +2\.00 tokens \(1\.00 without speculation\)",
        r"speed +20\.0 tok/s; plain decoding 10\.0 tok/s",
        r"speedup +2\.00× over plain decoding, measured here",
        r"accepted / drafted +47%: 9 of 19 drafted tokens stand",
        r"  prompt lookup +50%: 5 of 10 in 5 rounds",
        r"  draft model +44%: 4 of 9 in 3 rounds",
        r"accepted / emitted +90%: 9 of 10 emitted tokens were drafts",
        r"first token +0\.25 s after the request",
        r"prompt +120 tokens: 100 reused, 20 read",
        r"time +0\.70 s",
        r"  prefill +0\.20 s +29% █████",
        r"  draft +0\.10 s +14% ███",
        r"  verify +0\.30 s +43% ████",
        r"  host +0\.10 s +14% ███",
    ):
        assert re.search(rf"^{line}", told, re.MULTILINE), line
    assert max(len(line) for line in told.splitlines()) <= 80


def test_without_an_answer_there_is_one_sentence() -> None:
    assert explained(None).endswith("first one.")
    assert explained(Answer("x", "failed")).endswith("first one.")


def test_the_course_is_drawn_with_its_bounds() -> None:
    course = Course()
    for tokens in range(2, 41, 2):
        course.see(stats_after(tokens))
    told = explained(answer(stats_after(40)), course, ASCII)
    assert re.search(r"^tok/s +#+ 20\.0 to 20\.0$", told, re.MULTILINE)
    assert re.search(r"^γ +#+ 4 to 4$", told, re.MULTILINE)
    assert told.isascii() or not set(told) & set("▁█")


@pytest.mark.parametrize("width", range(36, 100))
def test_figures_fit_the_width_they_are_made_for(width: int) -> None:
    course = Course()
    for tokens in range(2, 241, 2):
        course.see(stats_after(tokens))
    lines = explained(answer(stats_after(240)), course, width=width).splitlines()
    assert max(len(line) for line in lines) <= width
    labels = {line[:20].strip(): line[20:] for line in lines}
    assert re.fullmatch("█{8,40} 20.0 to 20.0" if width > 40 else "(█+ )?20.0 to 20.0", labels["tok/s"])
    assert re.fullmatch("█{8,40} 4 to 4" if width > 40 else "(█+ )?4 to 4", labels["γ"])
    flowing = " ".join(line.strip() for line in lines)
    for value in ("20.0 tok/s; plain decoding 10.0 tok/s", "50%: 120 of 240 emitted tokens were drafts"):
        assert value in flowing


def test_speculation_that_was_off_is_the_whole_reason() -> None:
    assert because(off=60) == ["Speculation was off: every pass wrote one token."]
    assert because(off=20, fixed=40)[:2] == [
        "In 20 of 60 passes speculation was off: every pass wrote one token.",
        "In 40 of 60 passes you had fixed γ.",
    ]
    assert because(fixed=60) == ["You had fixed γ."]


def test_lookup_says_how_often_it_found_something_and_from_when_it_pays() -> None:
    assert because(free=60, offered=40, shortest_taken=8, lookup_needs=7, lookup_acceptance=0.82)[0] == (
        "Prompt lookup found a match in 40 of 60 passes and drafted in 12, where matches were 8 tokens or longer: by "
        "the costs measured here it pays from matches of 7 on, whose next token is accepted with 82%."
    )
    assert because(free=60, offered=40, behind=5, shortest_taken=8, lookup_needs=7, lookup_acceptance=0.82)[0] == (
        "Prompt lookup found a match in 40 of 60 passes and drafted in 12, 5 of them behind the draft model's tokens, "
        "alone where matches were 8 tokens or longer: by the costs measured here it pays alone from matches of 7 on, "
        "whose next token is accepted with 82%."
    )
    assert (
        "in 12, all behind the draft model's tokens: by"
        in (because(free=60, offered=40, behind=12, lookup_needs=7, lookup_acceptance=0.82)[0])
    )
    assert because(free=60)[0] == "Prompt lookup found nothing earlier that the text repeated."
    assert because(free=60, offered=3)[0].endswith(
        "; what passes cost was not told in the end, as the answer broke off."
    )
    assert because(free=60, offered=3, two_tokens=2.1)[0].endswith(
        "checking two tokens costs 2.1 passes, so no match is likely to pay here."
    )
    assert because(free=60, settings=Settings(lookup=False))[0] == "Prompt lookup was off."


def test_a_draft_model_that_cannot_pay_is_said_to_cost_too_much() -> None:
    assert because(free=60, c=0.69, two_tokens=1.8)[1] == (
        "The draft model stayed off: a step costs 0.69 of a target pass and checking two tokens 1.8, so even full "
        "acceptance can't pay here."
    )


def test_a_draft_model_that_did_not_pay_is_said_to_have_been_accepted_too_rarely() -> None:
    told = because(free=60, c=0.3, draft_needs=0.74, draft_needs_gamma=2, draft_acceptance=0.61)
    assert told[1] == (
        "The draft model stayed off: a step costs 0.30 of a target pass; it pays from an acceptance of 0.74 on (drafts "
        "of 2) and had 0.61 lately."
    )


def test_a_draft_model_that_paid_says_so() -> None:
    stats = Stats(
        target_passes=60,
        sources={"draft": SourceStats(30, 100, 80)},
        why=Why(free=60, c=0.1, draft_needs=0.4, draft_needs_gamma=3, draft_acceptance=0.85, probes=2),
    )
    assert reasons(answer(stats))[1] == (
        "The draft model drafted in 30 passes, 2 of them only to learn whether it pays: a step costs 0.10 of a target "
        "pass; it pays from an acceptance of 0.40 on (drafts of 3) and had 0.85 lately."
    )


@pytest.mark.parametrize(
    ("draft", "settings", "sentence"),
    [
        ("", None, "There was no draft model."),
        ("small", Settings(draft=False), "The draft model was not to be used."),
        ("small", None, "What the draft model costs was not measured yet."),
    ],
)
def test_a_draft_model_that_was_not_there_is_told_from_one_not_wanted(
    draft: str, settings: Settings | None, sentence: str
) -> None:
    assert because(draft, settings, free=60)[1] == sentence


def test_an_answer_from_before_reasons_were_kept_says_so() -> None:
    assert reasons(replace(answer(stats_after(4)))) == ["No reasons were kept for this answer."]
