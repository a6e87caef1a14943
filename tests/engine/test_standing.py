"""How gamma stands on recorded answers of Qwen2.5-Coder 1.5B with the 0.5B as draft, under all study cost tables.

Nothing here depends on a clock or a model: the same numbers on every machine.
"""

from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Final

import msgspec
import pytest

from specengine.standing import Conversation, Standing, conversations, standing
from specengine.study_costs import STUDIES, Study
from specengine.trace import Trace, read_traces

DATA: Final = Path(__file__).parent.parent / "data"
TRACES: Final = DATA / "traces.jsonl.gz"
CHATS: Final = DATA / "chats.jsonl.gz"
"""Ten chats of three or four turns: code written, tested, reviewed and edited, stories, explanations, questions on a
report, orders made into tables."""
MIXED: Final = {
    "story, then code": ("story 1", "code 0"),
    "code, then story": ("code 0", "story 1"),
    "explanation, edit, story": ("explain 0", "edit 0", "story 1"),
    "story, code, explanation": ("story 1", "code 0.7", "explain 0.7"),
    "edit, code, summary": ("edit 0", "code 0", "summarise 0.7"),
    "hints, json, mixed": ("hints 0", "json 0", "mixed 0"),
    "story, quotations, code": ("story 1", "extract 0", "code 0"),
    "code twice": ("code 0", "code 0.7"),
}
"""Recorded answers, told one after the other in one chat."""


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(read_traces(TRACES))


@pytest.fixture(scope="module")
def recorded(traces: list[Trace]) -> list[Conversation]:
    return list(conversations(traces))


@pytest.fixture(scope="module")
def chats() -> list[Conversation]:
    return list(conversations(read_traces(CHATS)))


@pytest.fixture(scope="module")
def mixed(traces: list[Trace]) -> list[Conversation]:
    by_name = {f"{one.workload} {one.sampling.temperature:g}": one for one in traces if not one.continues}
    return [one for names in MIXED.values() for one in conversations(chained([by_name[name] for name in names]))]


def chained(answers: Sequence[Trace]) -> list[Trace]:
    """Answers as turns of one chat: each finds those before it in its prompt."""
    turns: list[Trace] = []
    before: tuple[int, ...] = ()
    for one in answers:
        turn = msgspec.structs.replace(one, prompt=(*before, *one.prompt), continues=bool(turns))
        turns.append(turn)
        before = (*turn.prompt, *turn.answer)
    return turns


def standings(among: list[Conversation]) -> list[Standing]:
    return [standing(one, study.costs) for study in STUDIES.values() for one in among]


def mean(ratios: list[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))


def test_chats_are_nearly_as_fast_as_the_best_fixed_setting_or_faster_on_every_machine(
    chats: list[Conversation],
) -> None:
    ratios = [one.to_best for one in standings(chats)]
    assert len(ratios) == 10 * len(STUDIES)
    assert min(ratios) >= 0.98
    assert mean(ratios) >= 1.1


def test_single_answers_are_as_fast_as_the_best_fixed_setting_on_the_average(recorded: list[Conversation]) -> None:
    """In an answer of 300 tokens, two or three rounds spent on learning are several parts in a hundred."""
    ratios = [one.to_best for one in standings(recorded)]
    assert mean(ratios) >= 1.06
    assert min(ratios) >= 0.86
    assert sum(ratio < 0.95 for ratio in ratios) <= len(ratios) / 20


def test_chats_of_several_kinds_are_faster_than_with_any_fixed_setting(mixed: list[Conversation]) -> None:
    ratios = [one.to_best for one in standings(mixed)]
    assert mean(ratios) >= 1.095
    assert min(ratios) >= 0.965


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_text_with_nothing_to_gain_costs_hardly_more_than_plain_decoding(
    recorded: list[Conversation], chats: list[Conversation], study: Study
) -> None:
    for one in (*recorded, *chats):
        stands = standing(one, study.costs)
        assert stands.ours >= 0.985 * stands.plain
