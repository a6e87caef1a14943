"""Who wrote which part of an answer."""

import pytest

from specchat.sources import Run, Runs, thought_tokens, tokens_by_source
from specchat.thinking import Thinking, split
from specengine.protocol import Token


def runs_of(*tokens: Token) -> list[Run]:
    runs = Runs()
    for token in tokens:
        runs.add([token])
    return runs.runs


def test_neighbouring_tokens_of_one_source_are_one_run() -> None:
    runs = runs_of(Token("def ", "lookup"), Token("f", "lookup"), Token("(", "target"), Token("x)", "draft"))
    assert runs == [Run("lookup", 2, 5), Run("target", 1, 1), Run("draft", 1, 2)]
    assert tokens_by_source(runs) == {"lookup": 2, "target": 1, "draft": 1}


def test_a_token_in_parts_and_one_without_text_count_once() -> None:
    runs = runs_of(Token("a", "lookup", 0), Token("b", "lookup"), Token("", "lookup"), Token("\ufffd", "target", 0))
    assert runs == [Run("lookup", 2, 2), Run("target", 0, 1)]


@pytest.mark.parametrize("opening", [["<think>"], ["\n", "<th", "ink>"]])
def test_the_thinking_block_has_runs_of_its_own_with_all_its_tokens(opening: list[str]) -> None:
    words = [*opening, "a", "</thi", "nk>", "b", "c"]
    runs = runs_of(*(Token(word, "target") for word in words))
    assert thought_tokens(runs) == len(words) - 2
    assert [(run.thinking, run.tokens) for run in runs] == [(True, len(words) - 2), (False, 2)]


def test_an_answer_that_only_mentions_the_tags_did_not_think() -> None:
    assert thought_tokens(runs_of(Token("Use ", "target"), Token("<think>", "target"))) == 0


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>\nhm\n</think>\n\nYes.", "\nhm\n", "\n\nYes."),
        ("\n<think></think>Yes.", "", "Yes."),
        ("<think>no end </thi", "no end </thi", ""),
        ("Yes <think>x</think>", None, "Yes <think>x</think>"),
        ("<thin", None, "<thin"),
        ("", None, ""),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 100])
def test_a_thinking_block_is_told_from_the_answer_however_the_text_is_cut(
    text: str, thought: str | None, answer: str, step: int
) -> None:
    assert split(text) == (thought, answer)
    thinking = Thinking()
    parts = [thinking.feed(text[start : start + step]) for start in range(0, len(text), step)] + [thinking.end()]
    assert ("".join(part[0] for part in parts), "".join(part[1] for part in parts)) == (thought or "", answer)
    assert thinking.found == (thought is not None)
