"""The round: where an answer ends inside a block, what the caches hold after it, and what is counted."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pytest

import decode_checks
from backends import BOTH, FULL, Backend
from decode_checks import (
    GREEDY,
    WARM,
    Repeating,
    Varied,
    check_caches,
    check_counts,
    check_ends,
    check_reason_where_two_ends_meet,
)
from decoding import CacheWatch, Ends, StopAt, run
from specengine.controls import Controls
from specengine.errors import EngineError
from specengine.language_model import Rows
from specengine.settings import Sampling

SOURCES: Final = ("lookup", "draft", "both")
GAMMAS: Final = range(1, 17)
FEW_GAMMAS: Final = (1, 2, 5, 16)
"""Where a pass costs more: the rules of a round are the same in every engine."""


def end_with(tokens: frozenset[int]) -> Ends:
    return lambda _, token: "end" if token in tokens else None


@pytest.fixture(scope="module", params=BOTH)
def backend(request: pytest.FixtureRequest) -> Backend:
    name: Backend = request.param
    return name


@pytest.fixture(scope="module")
def repeating(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repeating]:
    with decode_checks.repeating(tmp_path_factory.mktemp("repeating"), backend) as made:
        yield made


@pytest.fixture(scope="module")
def varied(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Varied]:
    with decode_checks.varied(tmp_path_factory.mktemp("varied"), backend) as made:
        yield made


def gammas(backend: Backend) -> Iterable[int]:
    return GAMMAS if backend == "llamacpp" or FULL else FEW_GAMMAS


@pytest.mark.parametrize("sources", SOURCES)
def test_an_end_at_any_position_of_a_block_cuts_the_answer_there(
    repeating: Repeating, backend: Backend, sources: str
) -> None:
    for gamma in gammas(backend):
        check_ends(repeating, sources, gamma)


@pytest.mark.parametrize("sources", SOURCES)
def test_max_tokens_may_fall_on_any_position_of_a_block(repeating: Repeating, backend: Backend, sources: str) -> None:
    rig, prompt, following = repeating.rig, repeating.prompt, repeating.following
    for gamma in gammas(backend):
        reached: set[int] = set()
        for count in range(1, gamma + 4):
            answer = run(rig.decoder(prompt, sources), GREEDY, count, gamma=gamma)
            assert (answer.tokens, answer.reason) == (following[:count], "length")
            reached.add(answer.rounds[-1].last_offset)
        assert reached == set(range(gamma + 1))


@pytest.mark.parametrize("sources", SOURCES)
def test_an_end_of_generation_token_at_any_position_of_a_block_is_the_last(
    repeating: Repeating, backend: Backend, sources: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, prompt, following = repeating.rig, repeating.prompt, repeating.following
    for gamma in gammas(backend):
        reached: set[int] = set()
        for last in range(gamma + 2):
            ending = frozenset({following[last]})
            assert following.index(following[last]) == last
            for vocabulary in (rig.target.vocabulary, rig.draft.vocabulary):
                monkeypatch.setattr(vocabulary, "end_of_generation", ending)
            monkeypatch.setattr(rig.engine.lookup, "_end_of_generation", ending)
            decoder = rig.decoder(prompt, sources)
            answer = run(decoder, GREEDY, 80, gamma=gamma, ends=end_with(ending))
            assert (answer.tokens, answer.reason) == (following[: last + 1], "end")
            assert decoder.committed == prompt + answer.tokens
            reached.add(answer.rounds[-1].last_offset)
        assert reached >= set(range(gamma))


def test_where_the_end_and_max_tokens_meet_the_end_is_the_reason(repeating: Repeating) -> None:
    check_reason_where_two_ends_meet(repeating)


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("sources", SOURCES)
@pytest.mark.parametrize("gamma", [1, 2, 3, 5, 8, 16, None])
def test_caches_hold_exactly_the_committed_tokens_after_every_round(
    varied: Varied, sources: str, gamma: int | None, sampling: Sampling
) -> None:
    check_caches(varied, sources, gamma, sampling)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_passes_and_caught_up_tokens_are_those_of_the_mathematics(varied: Varied, gamma: int) -> None:
    check_counts(varied, gamma)


def test_a_growing_draft_costs_at_most_one_pass_beyond_its_tokens(varied: Varied) -> None:
    rig, prompt = varied.rig, varied.prompt
    answer = run(rig.decoder(prompt, "draft"), WARM, 80)
    drafting = answer.rounds[1:]
    assert all(one.drafted <= one.draft_passes <= one.drafted + 1 for one in drafting)
    assert len({one.drafted for one in drafting}) > 2
    assert {one.caught_up for one in drafting} <= {1, 2}


def test_a_draft_model_that_paused_reads_what_it_missed_once(varied: Varied) -> None:
    rig, prompt = varied.rig, varied.prompt

    def pause(done: int, controls: Controls) -> None:
        controls.speculation = "off" if 3 <= done < 10 else "on"

    answer = run(rig.decoder(prompt, "draft"), WARM, 60, gamma=2, each_round=pause)
    before, back = answer.rounds[2], answer.rounds[10]
    assert [one.draft_passes for one in answer.rounds[3:10]] == [0] * 7
    full = before.accepted == before.drafted
    assert (back.prefilled, back.caught_up) == (7 + full, 1)
    assert sum(one.prefilled for one in answer.rounds[11:]) == 0


@pytest.mark.parametrize("sources", SOURCES)
@pytest.mark.parametrize("how", ["stop", "close"])
def test_an_answer_abandoned_after_any_round_can_be_continued(
    varied: Varied, backend: Backend, sources: str, how: str
) -> None:
    rig, prompt = varied.rig, varied.prompt
    plain = run(rig.decoder(prompt, "none"), WARM, 40).tokens
    rounds = len(run(rig.decoder(prompt, sources), WARM, 40, gamma=4).rounds)
    for abandoned in range(1, rounds, 1 if backend == "llamacpp" or FULL else 4):
        decoder = rig.decoder(prompt, sources)

        def stop(done: int, controls: Controls, last: int = abandoned) -> None:
            controls.stop = done == last

        if how == "stop":
            first = run(decoder, WARM, 40, gamma=4, each_round=stop)
            assert first.reason == "stopped"
        else:
            first = run(decoder, WARM, 40, gamma=4, close_after=abandoned)
        assert len(first.rounds) == abandoned
        watch = CacheWatch(rig.engine)
        watch(0, Controls())
        rest = run(decoder, WARM, 40 - len(first.tokens), gamma=4, each_round=watch)
        assert first.tokens + rest.tokens == plain
        if abandoned % 5 == 1 or backend == "torch":
            varied.check(watch)


@pytest.mark.parametrize("sources", SOURCES)
def test_a_stop_inside_a_wide_pass_leaves_the_answer_as_it_was_before_the_round(
    repeating: Repeating, sources: str
) -> None:
    rig, prompt, following = repeating.rig, repeating.prompt, repeating.following
    counting = StopAt(10**9)
    run(rig.decoder(prompt, sources), GREEDY, 60, gamma=20, controls=counting)
    assert counting.times > 5
    lengths = set()
    for limit in range(0, counting.times, max(1, counting.times // 20)):
        decoder = rig.decoder(prompt, sources)
        stopped = run(decoder, GREEDY, 60, gamma=20, controls=StopAt(limit))
        assert stopped.reason == "stopped"
        assert stopped.tokens == following[: len(stopped.tokens)]
        assert decoder.committed == prompt + stopped.tokens
        assert rig.target.length == len(decoder.committed) - 1
        assert rig.draft.length <= rig.target.length
        rest = run(decoder, GREEDY, 60 - len(stopped.tokens), gamma=20)
        assert stopped.tokens + rest.tokens == following[:60]
        lengths.add(len(stopped.tokens))
    assert len(lengths) >= 3


@pytest.mark.parametrize("failing", ["target", "draft"])
def test_a_pass_that_fails_leaves_the_caches_at_the_committed_tokens(
    varied: Varied, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, prompt = varied.rig, varied.prompt
    plain = run(rig.decoder(prompt, "none"), WARM, 30).tokens
    model = rig.target if failing == "target" else rig.draft
    for at in range(2, 9):
        decoder = rig.decoder(prompt, "draft")
        with monkeypatch.context() as patched, pytest.raises(EngineError, match="memory"):
            patched.setattr(model, "forward", _failing(model.forward, at))
            run(decoder, WARM, 30, gamma=4)
        assert rig.target.length == len(decoder.committed) - 1
        assert rig.draft.length <= len(decoder.committed) - 1
        done = len(decoder.committed) - len(prompt)
        assert decoder.committed[len(prompt) :] == plain[:done]
        assert run(decoder, WARM, 30 - done, gamma=4).tokens == plain[done:]


def _failing(forward: Callable[..., Rows], at: int) -> Callable[..., Rows]:
    calls = iter(range(1, at + 1))

    def run_or_fail(*arguments: object) -> Rows:
        if next(calls) == at:
            raise EngineError("memory is short")
        return forward(*arguments)

    return run_or_fail


def test_a_full_context_ends_the_answer_with_its_last_token(varied: Varied) -> None:
    rig, prompt = varied.rig, varied.prompt
    long = (prompt * 10)[: rig.target.n_ctx - 24]
    plain = run(rig.decoder(long, "none"), WARM, 24)
    for sources in SOURCES:
        for gamma in (1, 4, 16, 40):
            decoder = rig.decoder(long, sources)
            answer = run(decoder, WARM, 24, gamma=gamma)
            assert answer.tokens == plain.tokens
            assert len(decoder.committed) == rig.target.n_ctx
