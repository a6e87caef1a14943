"""What a rival is: another engine that answers the very token ids that ours was asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from specengine.settings import Sampling

ShouldStop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Setup:
    """What our engine runs with, so that a rival runs with the same."""

    model: Path
    draft: Path | None
    n_ctx: int
    n_vocab: int
    threads: int
    gpu_layers: int
    """Layers on a GPU; 0 keeps everything on the CPU."""
    bf16: bool = False
    """KV cache type: bf16 instead of f16."""


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt, as the ids that our engine read: no template or tokenizer can make a difference."""

    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    continues: bool = False
    """A further turn of a chat: what is kept of the turns before may stay, but the new message is to be read before
    the answer is timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalRun:
    """One answer of a rival, measured as ours is: the last prompt token's pass counts, the others' don't."""

    tokens: tuple[int, ...] | None
    """The emitted ids, the end-of-generation token included; None where the rival doesn't tell them."""
    n_tokens: int
    seconds: float
    first_token_s: float | None = None
    """Time to first token from an empty KV cache; None where the prompt was in it already."""
    target_passes: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    """Counters are None where the rival doesn't tell them."""


class Rival(Protocol):
    """An engine in processes of its own, in one or more modes."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def modes(self) -> Mapping[str, str]:
        """Name → what it is, in words."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of its figures should know, a sentence each."""
        ...

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun | None:
        """One answer from a KV cache that holds the prompt, with nothing else kept of earlier answers (other than those
        of the same chat); None where such a state can't be reached again.

        Raises:
            EngineError: the rival could not answer.
            Stopped: `should_stop` returned true.
        """
        ...
