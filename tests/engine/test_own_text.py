"""Which tokens of a prompt the model wrote itself."""

import pytest

from specengine.own_text import own_text
from specengine.protocol import Message

USER = Message("user", "")


def said(*tokens: int) -> Message:
    """An answer; its last token is the end of it, which the template writes."""
    return Message("assistant", "", (*tokens, 0))


@pytest.mark.parametrize(
    ("prompt", "messages", "found"),
    [
        pytest.param(
            [9, 1, 2, 8, 3, 4, 7], [USER, said(1, 2), USER, said(3, 4), USER], [(1, 3), (4, 6)], id="in order"
        ),
        pytest.param([9, 1, 2, 3, 8, 7, 1, 2, 3, 6], [USER, said(1, 2, 3), USER], [(6, 9)], id="a quoted text"),
        pytest.param([1, 2, 8, 1, 2, 7], [said(1, 2), USER, said(1, 2), USER], [(0, 2), (3, 5)], id="said twice"),
        pytest.param([9, 5, 6, 8], [USER, said(1, 2), USER], [], id="not as it was emitted"),
        pytest.param([9, 8], [USER, said(), USER], [], id="an empty answer"),
        pytest.param([9, 8], [USER, Message("assistant", "text"), USER], [], id="another model's"),
    ],
)
def test_answers_are_found_by_their_tokens(
    prompt: list[int], messages: list[Message], found: list[tuple[int, int]]
) -> None:
    assert [(own.start, own.stop) for own in own_text(prompt, messages)] == found


def test_what_is_known_already_is_not_looked_through_again() -> None:
    prompt, messages = [9, 1, 2, 8, 3, 4, 7], [USER, said(1, 2), USER, said(3, 4), USER]
    found = [own_text(prompt, messages, known) for known in (1, 2, 4, 5, 7)]
    assert found == [[range(1, 3), range(4, 6)], [range(4, 6)], [range(4, 6)], [], []]


def test_the_answer_that_goes_on_is_the_models_own_too() -> None:
    assert own_text([9, 1, 2, 8, 3, 4], [USER, said(1, 2), USER, said(3, 4)], begun=2) == [range(1, 3), range(4, 6)]
