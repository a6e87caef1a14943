"""The distribution of answers under the maximal coupling, against what the target's logits say.

Under shared noise every answer is the plain one, token for token, which other tests hold it to.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

import tiny
from decoding import Rig, engine, read, run
from specengine import decode
from specengine.noise import Noise
from specengine.settings import Sampling
from specengine.verify import verify
from toy import Tokens, fit, reference

SAMPLING: Final = Sampling(temperature=1.5, top_k=4, top_p=1, presence_penalty=0.5, coupling="maximal")
"""Four tokens in play at each position, so 16 answers of two tokens."""
SAMPLES: Final = 1200
LEVEL: Final = 1e-3


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, list[int]]]:
    """A target with a draft that is wrong more often than not."""
    folder = tmp_path_factory.mktemp("couplings")
    target = tiny.make(folder / "target.gguf", seed=1, end=-30)
    draft = tiny.make(folder / "draft.gguf", seed=1, noise=0.3, end=-30)
    with engine(target, draft) as made:
        yield Rig(made), made.target.vocabulary.tokenize("def hello(self")


@pytest.fixture(scope="module")
def law(rig: tuple[Rig, list[int]]) -> dict[Tokens, float]:
    """The probability of every answer of two tokens, from the target's logits."""
    target, prompt = rig[0].target, rig[1]
    answers: dict[Tokens, float] = {}
    first = reference(read(target, prompt)[-1], prompt, SAMPLING).probabilities
    for one in map(int, first.nonzero()[0]):
        second = reference(read(target, [*prompt, one])[-1], [*prompt, one], SAMPLING).probabilities
        answers |= {(one, int(other)): first[one] * second[other] for other in second.nonzero()[0]}
    assert len(answers) == 16
    return answers


def sample(rig: Rig, prompt: list[int], gamma: int, counts: Counter[str], samples: int = SAMPLES) -> list[Tokens]:
    """The first two tokens of answers of four, so that drafts reach beyond them."""
    answers = []
    for seed in range(samples):
        decoder = rig.decoder(prompt, "draft")
        # Else the first token, which doesn't wait for the draft model, would never be drafted.
        rig.draft.forward(prompt[:-1], 0)
        answer = run(decoder, replace(SAMPLING, seed=seed), 4, gamma=gamma)
        answers.append(tuple(answer.tokens[:2]))
        counts["accepted"] += answer.stats.accepted
        counts["rejected"] += answer.rejected("draft")
    return answers


@pytest.mark.parametrize("gamma", [1, 3])
def test_answers_are_as_likely_as_the_logits_say(
    rig: tuple[Rig, list[int]], law: dict[Tokens, float], gamma: int
) -> None:
    counts = Counter[str]()
    assert fit(sample(*rig, gamma, counts), law) > LEVEL
    assert min(counts["accepted"], counts["rejected"]) > SAMPLES / 4


def test_noise_that_starts_anew_each_round_is_caught(
    rig: tuple[Rig, list[int]], law: dict[Tokens, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reused(Noise):
        def fork(self, stream: int) -> Noise:
            return Noise(self.seed)

    def from_position_zero(rows: Any, draft: Any, history: Sequence[int], _: int, *rest: Any) -> Any:  # noqa: ANN401
        return verify(rows, draft, history, 0, *rest)

    monkeypatch.setattr(decode, "Noise", Reused)
    monkeypatch.setattr(decode, "verify", from_position_zero)
    assert fit(sample(*rig, 1, Counter()), law) < LEVEL


def test_rejected_tokens_left_in_the_cache_are_caught(
    rig: tuple[Rig, list[int]], law: dict[Tokens, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_nothing(decoder: decode.Decoder) -> None:
        assert decoder.model is not None
        decoder.model.rollback(len(decoder.committed) - 1)

    monkeypatch.setattr(decode, "_cut_to_committed", cut_nothing)
    assert fit(sample(*rig, 3, Counter(), samples=300), law) < LEVEL
