"""What a user may choose about an answer: how tokens are sampled and how far speculation may go."""

from dataclasses import dataclass
from typing import Final, Literal

SMALLEST_CONTEXT: Final = 64
"""Tokens; below it no prompt has room for an answer, and passes can't be measured."""

LONGEST_DRAFT: Final = 127
"""Tokens; a pass takes one more, and no backend gives the logits of more than 128 at once."""

Coupling = Literal["shared", "maximal"]
Speculation = Literal["auto", "on", "off"]
EngineChoice = Literal["auto", "torch", "llamacpp"]
"""What runs the models; "auto" takes torch where a CUDA card makes it worth while, else llama.cpp."""
Device = Literal["auto", "cuda", "cpu"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How logits become a token. Processing order: penalties, temperature, top-k, top-p, min-p.

    A temperature of 0 is greedy: the largest penalised logit, the lowest id among equals.
    Penalties count the last `penalty_window` tokens of the context, prompt included.
    """

    temperature: float = 0.7
    top_k: int = 20
    """Keep the k most likely tokens; 0 keeps all."""
    top_p: float = 0.8
    """Keep the fewest most likely tokens whose probabilities reach p; 1 keeps all."""
    min_p: float = 0.0
    """Keep tokens at least this fraction as likely as the most likely one; 0 keeps all."""
    repetition_penalty: float = 1.0
    """Divide positive logits of seen tokens by it, multiply negative ones (Keskar 2019, section 4.1)."""
    frequency_penalty: float = 0.0
    """Subtract this much per earlier occurrence."""
    presence_penalty: float = 0.0
    """Subtract this much from every token that occurred."""
    penalty_window: int = 64
    seed: int = 0
    coupling: Coupling = "shared"

    def __post_init__(self) -> None:
        bounds: dict[str, tuple[float, float]] = {
            "temperature": (0, 100),
            "top_k": (0, 2**31),
            "top_p": (0, 1),
            "min_p": (0, 1),
            "repetition_penalty": (0.01, 100),
            "frequency_penalty": (-100, 100),
            "presence_penalty": (-100, 100),
            "penalty_window": (0, 2**31),
            "seed": (0, 2**64 - 1),
        }
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name.replace('_', '-')} is {value}; it must lie between {low} and {high}.")
        if self.top_p == 0:
            raise ValueError("top-p is 0; it must be greater than 0 (1 keeps every token).")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def penalised(self) -> bool:
        return self.penalty_window > 0 and (
            self.repetition_penalty != 1 or self.frequency_penalty != 0 or self.presence_penalty != 0
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """When an answer ends, apart from the model's own end-of-generation token."""

    max_tokens: int | None = None
    """Most tokens of one answer; None leaves it to the context."""
    stop: tuple[str, ...] = ()
    """Strings that end the answer; they are not part of its text."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max-tokens is {self.max_tokens}; it must be 1 or more.")
        if "" in self.stop:
            raise ValueError("A stop string is empty; it would end every answer before its first character.")
