"""What must hold for rounds, as checks that `decode` passes and its mutants fail."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from backends import Backend, maker
from decoding import CacheWatch, Ends, Rig, engine, loaded, run
from specengine.language_model import LanguageModel
from specengine.protocol import Reason
from specengine.settings import Sampling

CODE: Final = "def hello(self):\n    return 'the world'"
GREEDY: Final = Sampling(temperature=0)
WARM: Final = Sampling(temperature=1.0, top_k=40, top_p=0.95, frequency_penalty=0.4, seed=3)


@dataclass(frozen=True)
class Repeating:
    """A model in an endless cycle of 26 tokens, a prompt of some of them and what follows: nearly every draft stands,
    so that blocks are as long as gamma allows."""

    rig: Rig
    prompt: list[int]
    following: list[int]


@contextmanager
def repeating(folder: Path, backend: Backend = "llamacpp") -> Iterator[Repeating]:
    make = maker(backend)
    target = make(folder / "target", seed=3, cycle=3.0, end=-30)
    draft = make(folder / "draft", seed=3, cycle=3.0, noise=0.03, end=-30)
    with engine(target, draft) as made:
        rig = Rig(made)
        prompt = made.target.vocabulary.tokenize(CODE)
        text = run(rig.decoder(prompt, "none"), GREEDY, 220).tokens
        yield Repeating(rig, prompt + text[:140], text[140:])


@dataclass(frozen=True)
class Varied:
    """A model with a draft that is often wrong, a prompt with some repetition, what `WARM` makes of it without
    speculation, and the same models once more, which read nothing but what they are compared by."""

    rig: Rig
    prompt: list[int]
    text: list[int]
    fresh_target: LanguageModel
    fresh_draft: LanguageModel

    def check(self, watch: CacheWatch) -> None:
        watch.check(self.fresh_target, self.fresh_draft)


@contextmanager
def varied(folder: Path, backend: Backend = "llamacpp") -> Iterator[Varied]:
    make = maker(backend)
    target = make(folder / "target", cycle=1.5, end=-30)
    draft = make(folder / "draft", cycle=1.5, noise=0.1, end=-30)
    with engine(target, draft) as made, loaded(target) as fresh_target, loaded(draft) as fresh_draft:
        rig = Rig(made)
        prompt = made.target.vocabulary.tokenize(CODE)
        prompt += run(rig.decoder(prompt, "none"), GREEDY, 120).tokens
        text = run(rig.decoder(prompt, "none"), WARM, 60).tokens
        yield Varied(rig, prompt, text, fresh_target, fresh_draft)


def end_at(last: int, reason: Reason) -> Ends:
    return lambda index, _: reason if index == last else None


def check_ends(on: Repeating, sources: str, gamma: int) -> None:
    """An end at any position of a block is the last token of the answer."""
    reached: set[int] = set()
    for last in range(gamma + 3):
        decoder = on.rig.decoder(on.prompt, sources)
        answer = run(decoder, GREEDY, 80, gamma=gamma, ends=end_at(last, "stop"))
        assert (answer.tokens, answer.reason) == (on.following[: last + 1], "stop")
        assert decoder.committed == on.prompt + answer.tokens
        assert decoder.target.length == len(decoder.committed) - 1
        reached.add(answer.rounds[-1].last_offset)
    assert reached == set(range(gamma + 1))


def check_reason_where_two_ends_meet(on: Repeating) -> None:
    """Where the answer's own end and max tokens fall on one token, the end is the reason."""
    reasons: tuple[Reason, ...] = ("stop", "end")
    for reason in reasons:
        for last in range(8):
            answer = run(on.rig.decoder(on.prompt, "lookup"), GREEDY, last + 1, gamma=5, ends=end_at(last, reason))
            assert (answer.tokens, answer.reason) == (on.following[: last + 1], reason)


def check_text(on: Varied, sources: str, gamma: int | None) -> None:
    """Sampled text with a penalty is the one that was decoded plainly, at the start."""
    assert run(on.rig.decoder(on.prompt, sources), WARM, len(on.text), gamma=gamma).tokens == on.text


def check_caches(on: Varied, sources: str, gamma: int | None, sampling: Sampling) -> None:
    """After every round the caches hold exactly the committed tokens."""
    watch = CacheWatch(on.rig.engine)
    answer = run(on.rig.decoder(on.prompt, sources), sampling, 40, gamma=gamma, each_round=watch)
    assert answer.stats.accepted > 0
    assert any(one.rejected for one in answer.rounds)
    on.check(watch)


def check_counts(on: Varied, gamma: int) -> None:
    """Passes and tokens fed to the draft model are those of the mathematics."""
    answer = run(on.rig.decoder(on.prompt, "draft"), WARM, 60, gamma=gamma)
    first, second = answer.rounds[:2]
    # The first token doesn't wait for the draft model, which has still to read the prompt.
    assert (first.drafted, first.draft_passes, first.prefilled, first.caught_up) == (0, 0, 0, 0)
    assert (second.prefilled, second.caught_up) == (len(on.prompt), 1)
    emitted = first.kept
    for before, one in pairwise(answer.rounds):
        assert one.drafted == one.draft_passes == min(gamma, 60 - emitted - 1)
        assert one.target_passes == 1
        assert one.kept == one.accepted + 1
        if one.drafted and before is not first:
            assert (one.prefilled, one.caught_up) == (0, 1 if before.rejected else 2)
        emitted += one.kept
    assert emitted == len(answer.tokens) == 60
    if gamma <= 4:
        assert {one.caught_up for one in answer.rounds} >= {1, 2}
