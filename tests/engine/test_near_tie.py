"""Answers compared with each other: what they start from and leave behind, and whether they parted at a near-tie."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pytest

import tiny
from decoding import engine
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.near_tie import measure_near_tie, scores
from specengine.noise import Noise
from specengine.protocol import Chat, Chunk, Done, Generate, MeasureNearTie, Message, NearTie
from specengine.sampling import choose, distribution
from specengine.settings import Limits, Sampling

WARM: Final = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=5)
CODE: Final = "def hello(self):\n    return 'the world'\n" * 6
DRAFTED: Final = Generate(1, Chat((Message("user", CODE),)), WARM, Limits(24), aside=True)
PLAIN: Final = msgspec.structs.replace(DRAFTED, speculation="off", lookup=False, draft=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("near_tie")
    return tiny.make(folder / "target.gguf", cycle=1.0), tiny.make(folder / "draft.gguf", cycle=1.0, noise=0.03)


@pytest.fixture
def chat(files: tuple[Path, Path]) -> Iterator[Engine]:
    with engine(*files) as made:
        yield made


def run(chat: Engine, request: Generate) -> tuple[Done, list[tuple[str, int]]]:
    """The end of an answer, and source and length of the draft of each round."""
    drafts = []
    for message in chat.generate(request, Controls(speculation=request.speculation, gamma=request.gamma)):
        if isinstance(message, Chunk):
            drafts.append((message.stats.source, message.stats.gamma))
        elif isinstance(message, Done):
            return message, drafts
    raise AssertionError("no Done")


def test_both_orders_decide_alike_and_find_the_prompt_in_the_cache(files: tuple[Path, Path]) -> None:
    seen = []
    for order in ((PLAIN, DRAFTED), (DRAFTED, PLAIN)):
        with engine(*files) as chat:
            run(chat, msgspec.structs.replace(DRAFTED, aside=False))
            ends = {request is PLAIN: run(chat, request) for request in order}
        assert ends[True][0].tokens == ends[False][0].tokens
        for done, _ in ends.values():
            assert done.stats.reused_tokens == done.stats.prompt_tokens - 1
        seen.append((ends[False][1], ends[False][0].stats.drafted))
    assert seen[0] == seen[1]


def test_nothing_is_learned_from_an_answer_aside(files: tuple[Path, Path]) -> None:
    question = Message("user", "and what does it return?")
    follow_ups = []
    for aside in ((), (DRAFTED, PLAIN)):
        with engine(*files) as chat:
            first, _ = run(chat, msgspec.structs.replace(DRAFTED, aside=False))
            for request in aside:
                run(chat, request)
            said = Message("assistant", "", first.tokens)
            turns = Chat((Message("user", CODE), said, question))
            follow_ups.append(run(chat, Generate(2, turns, WARM, Limits(24))))
    assert follow_ups[0][0].tokens == follow_ups[1][0].tokens
    assert follow_ups[0][1] == follow_ups[1][1]


def test_costs_go_on_being_followed_meanwhile(chat: Engine) -> None:
    table = chat.gamma.costs
    run(chat, DRAFTED)
    assert chat.gamma.costs is table


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0),
        Sampling(temperature=0, repetition_penalty=1.5),
        WARM,
        Sampling(temperature=0.3, top_k=8, top_p=0.9, presence_penalty=0.8, seed=9),
    ],
)
def test_the_token_that_is_chosen_has_the_greatest_score(sampling: Sampling) -> None:
    rng = np.random.default_rng(3)
    context = [int(token) for token in rng.integers(0, 50, 40)]
    for _ in range(50):
        row = rng.normal(0, 2, 50).astype(np.float32)
        history = context[-sampling.penalty_window :] if sampling.penalised else []
        chosen = choose(row, history, sampling, Noise(sampling.seed), len(context))
        for other in range(50):
            ours, theirs = scores(row, context, (chosen, other), sampling)
            assert ours > theirs or other == chosen
            if not sampling.greedy:
                assert np.isfinite(theirs) == (other in distribution(row, history, sampling).ids)


def test_scores_of_greedy_decoding_are_logits_apart(chat: Engine) -> None:
    row = np.asarray([1.0, 3.5, 2.0], dtype=np.float32)
    ours, theirs = scores(row, [0, 1], (1, 2), Sampling(temperature=0))
    assert ours - theirs == pytest.approx(1.5)


def test_where_passes_agree_the_lead_stands_whatever_the_width(chat: Engine) -> None:
    done, _ = run(chat, PLAIN)
    wrong = (done.tokens[10] + 1) % 200
    greedy = msgspec.structs.replace(PLAIN, sampling=Sampling(temperature=0))
    done, _ = run(chat, greedy)
    tie = chat.measure_near_tie(MeasureNearTie(greedy, done.tokens[:10], (done.tokens[10], wrong)))
    assert tie.lead is not None and tie.lead > 0.01 and tie.shift < 1e-3
    assert not tie.turns and not tie.decided_by_rounding
    turned = chat.measure_near_tie(MeasureNearTie(greedy, done.tokens[:10], (wrong, done.tokens[10])))
    assert turned.lead == pytest.approx(-tie.lead, abs=1e-4)


def test_a_token_that_sampling_cuts_off_has_no_lead_to_measure(chat: Engine) -> None:
    one = msgspec.structs.replace(PLAIN, sampling=Sampling(temperature=1, top_k=1))
    done, _ = run(chat, one)
    tie = chat.measure_near_tie(MeasureNearTie(one, done.tokens[:5], (done.tokens[5], (done.tokens[5] + 1) % 200)))
    assert tie == NearTie(None, 0.0, turns=False)


def test_the_caches_are_as_before_a_round_and_the_conversation_goes_on(chat: Engine) -> None:
    done, _ = run(chat, DRAFTED)
    chat.measure_near_tie(MeasureNearTie(DRAFTED, done.tokens[:10], (done.tokens[10], 7)))
    assert chat.target.length == len(chat.committed) - 1
    assert chat.committed[-10:] == list(done.tokens[:10])
    again, _ = run(chat, DRAFTED)
    assert again.tokens == done.tokens and again.stats.reused_tokens == again.stats.prompt_tokens - 1


def test_a_choice_that_turns_with_the_width_is_told() -> None:
    """A model whose wide passes add to one logit what puts it in front."""

    class Widths:
        n_batch = 64
        length = 0

        def rollback(self, length: int) -> None:
            self.length = length

        def forward(self, tokens: list[int], rows: int) -> np.ndarray:
            self.length += len(tokens)
            return np.asarray([[0.0, 1.0, 0.9 + 0.2 * (len(tokens) >= 8)]], dtype=np.float32)

    greedy = Sampling(temperature=0)
    wide = measure_near_tie(Widths(), list(range(40)), (1, 2), greedy)  # type: ignore[arg-type]
    assert wide.turns and wide.lead == pytest.approx(0.1) and wide.shift == pytest.approx(0.2)
    narrow = measure_near_tie(Widths(), list(range(6)), (1, 2), greedy)  # type: ignore[arg-type]
    assert not narrow.turns and narrow.shift == 0


def test_short_contexts_are_measured_with_the_passes_that_fit(chat: Engine) -> None:
    context = chat.target.vocabulary.tokenize("one two")
    chat.target.forward(context[:-1], 0)
    tie = measure_near_tie(chat.target, context, (1, 2), Sampling(temperature=0))
    assert tie.lead is not None and chat.target.length == len(context) - 1


@pytest.mark.parametrize(
    ("tie", "rounding"),
    [
        (NearTie(0.02, 0.1, False), True),
        (NearTie(-0.02, 0.1, False), True),
        (NearTie(0.5, 0.1, True), True),
        (NearTie(0.5, 0.1, False), False),
        (NearTie(None, 0.0, True), True),
        (NearTie(None, 0.0, False), False),
    ],
)
def test_rounding_explains_a_lead_of_its_own_size(tie: NearTie, rounding: bool) -> None:
    assert tie.decided_by_rounding is rounding
