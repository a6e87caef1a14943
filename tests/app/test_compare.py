"""What two compared answers are asked for, and where they part."""

from dataclasses import replace

import pytest

from specchat.chat import Answer, Conversation, Settings, answer, ask
from specchat.compare import Fork, fork, order, requests, shared_text
from specengine.errors import EngineError
from specengine.protocol import Chat
from specengine.settings import Limits, Sampling

SETTINGS = Settings(Sampling(seed=3, temperature=0.4), Limits(50), "auto", lookup=True, draft=True)
TALK = answer(
    answer(ask(Conversation("Be brief."), "one"), Answer("1", "end", (1,)))
    and ask(answer(ask(Conversation("Be brief."), "one"), Answer("1", "end", (1,))), "two"),
    Answer("2", "end", (2,), settings=replace(SETTINGS, sampling=Sampling(seed=99))),
)


def said(prompt: object) -> list[str]:
    assert isinstance(prompt, Chat)
    return [message.content for message in prompt.messages]


def test_the_last_prompt_is_asked_again_with_the_seed_that_its_answer_had() -> None:
    wanted = requests(TALK, None, SETTINGS, 7)
    for request in wanted.values():
        assert said(request.prompt) == ["Be brief.", "one", "1", "two"]
        assert request.sampling.seed == 99 and request.aside
    assert [request.id for request in wanted.values()] == [8, 7]
    plain, drafted = wanted["plain"], wanted["drafted"]
    assert (plain.speculation, plain.lookup, plain.draft) == ("off", False, False)
    assert (drafted.speculation, drafted.lookup, drafted.draft) == ("auto", True, True)
    assert (plain.sampling, plain.limits) == (drafted.sampling, drafted.limits)


def test_another_prompt_is_asked_behind_what_was_said_with_the_settings_of_now() -> None:
    for request in requests(TALK, "three", SETTINGS, 7).values():
        assert said(request.prompt) == ["Be brief.", "one", "1", "two", "2", "three"]
        assert request.sampling == SETTINGS.sampling and request.limits == SETTINGS.limits


@pytest.mark.parametrize(
    ("now", "speculation", "gamma"),
    [
        (replace(SETTINGS, speculation="off"), "auto", None),
        (replace(SETTINGS, speculation="on", gamma=4), "on", 4),
        (replace(SETTINGS, gamma=0), "auto", None),
    ],
)
def test_one_of_both_always_speculates(now: Settings, speculation: str, gamma: int | None) -> None:
    wanted = requests(TALK, "three", now, 1)
    assert (wanted["drafted"].speculation, wanted["drafted"].gamma) == (speculation, gamma)
    assert (wanted["plain"].speculation, wanted["plain"].gamma) == ("off", None)


def test_the_noise_is_shared_whatever_the_coupling_so_that_the_same_text_is_expected() -> None:
    maximal = replace(SETTINGS, sampling=replace(SETTINGS.sampling, coupling="maximal"))
    assert {request.sampling.coupling for request in requests(TALK, "three", maximal, 1).values()} == {"shared"}


def test_an_empty_chat_has_nothing_to_compare() -> None:
    with pytest.raises(EngineError, match="nothing to compare yet"):
        requests(Conversation(), None, SETTINGS, 1)


def test_they_take_turns_at_going_first() -> None:
    assert [order(number)[0] for number in range(4)] == ["plain", "drafted", "plain", "drafted"]
    assert all(set(order(number)) == {"plain", "drafted"} for number in range(4))


@pytest.mark.parametrize(
    ("plain", "drafted", "ending", "found"),
    [
        ((1, 2, 3), (1, 2, 3), "end", None),
        ((1, 2, 3), (1, 9, 3), "end", Fork(1, (2, 9))),
        ((1, 2), (1, 2, 3), "end", Fork(2, None)),
        ((1, 2), (1, 2, 3), "stopped", None),
        ((1, 2), (1, 3), "stopped", Fork(1, (2, 3))),
        ((), (1, 3), "end", Fork(0, None)),
    ],
)
def test_a_fork_is_the_first_token_that_differs(
    plain: tuple[int, ...], drafted: tuple[int, ...], ending: str, found: Fork | None
) -> None:
    one, other = Answer("", "end", plain), Answer("", ending, drafted)  # type: ignore[arg-type]
    assert fork(one, other) == found


def test_texts_share_what_both_begin_with() -> None:
    assert shared_text("abcd", "abX") == 2 and shared_text("ab", "abc") == 2 and shared_text("", "x") == 0
