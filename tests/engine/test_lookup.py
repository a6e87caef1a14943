"""Prompt lookup: what is proposed, and that the index follows the context at a bounded cost."""

from collections.abc import Sequence
from random import Random
from typing import SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specengine.drafters.lookup import PromptLookup

END = 99
TOKENS = st.lists(st.integers(0, 3), max_size=60)


def proposed(context: Sequence[int], limit: int = 5) -> tuple[int, ...]:
    return PromptLookup(frozenset({END})).propose(context, limit).tokens


def longest_match(context: Sequence[int]) -> tuple[int, int]:
    """Where the longest earlier match of the context's end continues, the most recent of equals, and its length."""
    best, length = 0, 0
    for end in range(1, len(context)):
        matched = 0
        while matched < end and context[end - 1 - matched] == context[len(context) - 1 - matched]:
            matched += 1
        if matched >= max(length, 2):
            best, length = end, matched
    return best, length


def test_what_followed_the_last_tokens_before_is_proposed() -> None:
    assert proposed([1, 2, 3, 4, 5, 6, 1, 2], limit=3) == (3, 4, 5)


def test_a_single_token_in_common_is_no_match() -> None:
    assert proposed([1, 2, 3, 4, 1]) == ()
    assert proposed([]) == proposed([1]) == proposed([1, 1]) == ()


def test_the_longest_match_wins_over_more_recent_ones() -> None:
    assert proposed([1, 2, 3, 4, 5, 7, 9, 3, 4, 8, 0, 1, 2, 3, 4], limit=1) == (5,)


def test_the_most_recent_of_equally_long_matches_wins() -> None:
    assert proposed([1, 2, 5, 0, 1, 2, 6, 0, 0, 1, 2], limit=1) == (6,)


def test_text_that_has_begun_to_repeat_is_proposed_to_repeat() -> None:
    assert proposed([7, 1, 2, 3, 1, 2, 3, 1, 2], limit=8) == (3, 1, 2, 3, 1, 2, 3, 1)


def test_nothing_is_proposed_behind_an_end_of_generation() -> None:
    assert proposed([1, 2, 3, END, 4, 5, 1, 2], limit=5) == (3, END)


def test_no_match_reaches_over_a_control_token() -> None:
    mark = 50
    turns = [mark, 20, 21, 1, 2, 3, mark, 20, 21]  # a template's words before two answers
    assert PromptLookup().propose([mark, *turns], 1).evidence == (3.0,)
    lookup = PromptLookup(control=frozenset({mark}))
    assert lookup.propose(turns, 1).evidence == (2.0,)
    assert lookup.propose([*turns, 1], 1).evidence == (3.0,)
    assert lookup.propose([*turns, 1, mark], 1).tokens == ()


def test_a_limit_of_nothing_yields_nothing() -> None:
    assert proposed([1, 2, 3, 1, 2], limit=0) == ()


def test_evidence_is_the_match_length_growing_along_the_run() -> None:
    draft = PromptLookup().propose([1, 2, 3, 4, 5, 6, 7, 1, 2, 3], 3)
    assert (draft.source, draft.tokens, draft.evidence) == ("lookup", (4, 5, 6), (3.0, 4.0, 5.0))


@pytest.mark.parametrize(
    ("others", "first"),
    [([], 2.0), ([3], 3.0), ([3, 3, 3], 3.0), ([9], 2.0), ([9, 8], 0.0), ([9, 9, 9, 3], 0.0)],
    ids=str,
)
def test_what_followed_the_last_two_tokens_elsewhere_speaks_for_or_against_the_proposal(
    others: list[int], first: float
) -> None:
    """`others` are what followed 1, 2 before it was followed by the proposed 3."""
    context = [token for other in others for token in (1, 2, other, 7)]
    draft = PromptLookup().propose([*context, 1, 2, 3, 5, 1, 2], 2)
    assert (draft.tokens, draft.evidence) == ((3, 5), (first, 3.0))


def test_a_match_that_goes_on_is_kept_and_grows() -> None:
    lookup = PromptLookup()
    context = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]
    assert lookup.propose(context, 1).evidence == (2.0,)
    for length, token in enumerate([3, 4, 5, 6], start=3):
        context.append(token)
        draft = lookup.propose(context, 1)
        assert (draft.tokens, draft.evidence) == ((token + 1,), (float(length),))
    context.append(0)
    assert lookup.propose(context, 1).tokens == ()


def test_a_match_in_what_the_model_wrote_itself_says_less() -> None:
    context = [1, 2, 3, 4, 5, 6, 7, 8]
    lookup = PromptLookup()
    lookup.observe(context)
    context += [9, 4, 5, 6, 10, 4, 5, 6]
    lookup.observe(context, written=True)
    assert lookup.propose(context, 2).tokens == (10, 4)
    assert lookup.propose(context, 2).evidence == pytest.approx((0.7 * 3, 0.7 * 4))
    context += [7]
    lookup.observe(context, written=True)
    assert lookup.propose(context, 2).tokens == (8, 9)
    assert lookup.propose(context, 1).evidence == (4.0,)


def test_after_a_rollback_new_text_is_told_anew_as_given_or_written() -> None:
    lookup, context = PromptLookup(), [1, 2, 3, 0, 1, 2]
    lookup.observe(context, written=True)
    assert lookup.propose(context, 1).evidence == pytest.approx((0.7 * 2,))
    lookup.rollback(0)
    assert lookup.propose(context, 1).evidence == (2.0,)


@given(TOKENS)
def test_the_proposal_is_what_an_exhaustive_search_finds(context: list[int]) -> None:
    start, length = longest_match(context)
    draft = PromptLookup().propose(context, 6)
    if not start:
        assert draft.tokens == ()
        return
    repeated = context[start:] * 6
    assert draft.tokens == tuple(repeated[:6])
    assert draft.evidence[1:] == tuple(length + i for i in range(1, 6))
    assert draft.evidence[0] - length in (-2, 0, 1)


@given(TOKENS, st.data())
def test_a_rollback_leaves_what_a_fresh_index_would_know(context: list[int], data: st.DataObject) -> None:
    lookup = PromptLookup()
    for end in data.draw(st.lists(st.integers(0, len(context)))):
        if end >= len(lookup._keys):
            lookup.propose(context[:end], 4)
    length = data.draw(st.integers(0, len(context)))
    lookup.observe(context)
    lookup.rollback(length)
    fresh = PromptLookup()
    fresh.observe(context[:length])
    assert lookup._ends == fresh._ends
    later = context[:length] + data.draw(TOKENS)
    assert lookup.propose(later, 6).tokens == fresh.propose(later, 6).tokens


class Counting(list[int]):
    """A list that counts how many of its items were looked at."""

    looked_at = 0

    def __getitem__(self, index: SupportsIndex | slice) -> int | list[int]:  # type: ignore[override]
        self.looked_at += len(range(len(self))[index]) if isinstance(index, slice) else 1
        return super().__getitem__(index)


@pytest.mark.parametrize("period", [1, 2, 7, 1000, None], ids=str)
def test_work_per_token_does_not_grow_with_the_context(period: int | None) -> None:
    tokens = [i % period for i in range(10_000)] if period else Random(0).choices(range(5), k=10_000)

    def looked_at(start: int, end: int) -> int:
        lookup, context = PromptLookup(), Counting(tokens[:start])
        lookup.observe(context)
        context.looked_at = 0
        for token in tokens[start:end]:
            context.append(token)
            lookup.propose(context, 8)
        return context.looked_at

    early, late = looked_at(1000, 1200), looked_at(9000, 9200)
    assert 0 < late <= early * 1.2 + 2000


def test_the_worst_context_costs_a_bounded_search_per_round() -> None:
    """Many occurrences whose matches all differ early: each round compares 48 of them at most."""
    context = Counting()
    for i in range(3000):
        context += [1, 2, 10 + i]
    context += [1, 2]
    lookup = PromptLookup()
    lookup.observe(context)
    context.looked_at = 0
    lookup.propose(context, 4)
    assert 0 < context.looked_at < 48 * 10
