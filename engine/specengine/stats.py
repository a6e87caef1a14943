"""Counters of an answer, and the few figures derived from them. Everything shown anywhere comes from here."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class SourceStats:
    """What became of one source's drafts."""

    rounds: int = 0
    """Target passes that verified a draft of this source."""
    drafted: int = 0
    """Tokens that the target verified, up to the end of the answer."""
    accepted: int = 0
    """Tokens of the answer that stand as they were drafted."""

    @property
    def acceptance(self) -> float | None:
        """accepted / drafted; None before any draft."""
        return self.accepted / self.drafted if self.drafted else None


@dataclass(slots=True)
class Stats:
    """Counters of one answer. Seconds are wall-clock; passes count calls of a model's forward."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    """Prompt tokens found in the target's KV cache."""
    prefilled_tokens: int = 0
    """Prompt tokens that the target had to read, the last one excepted: it runs in the first round."""
    draft_prefilled_tokens: int = 0
    """Tokens that the draft model read before its first draft or after a pause, beyond two a round."""
    draft_caught_up_tokens: int = 0
    """Committed tokens fed to the draft model at the start of a round (one, or two after a full accept)."""
    emitted: int = 0
    """Tokens of the answer, an end-of-generation token included."""
    target_passes: int = 0
    """Rounds: each runs the target once and emits at least one token."""
    draft_passes: int = 0
    sources: dict[str, SourceStats] = field(default_factory=dict)
    prefill_s: float = 0.0
    draft_s: float = 0.0
    """Proposing: the lookup's search and the draft model's passes."""
    verify_s: float = 0.0
    """Target passes."""
    host_s: float = 0.0
    """The rest of the rounds: sampling, verification, bookkeeping, text."""
    first_token_s: float | None = None
    """From the request to the first token, prefill included."""
    recent_tokens_per_s: float | None = None
    """Over about the last second of decoding."""
    plain_s_per_token: float | None = None
    """Measured cost of one plain token at the current context length; None until it was measured."""
    gamma: int = 0
    """Length of the last round's draft."""
    source: str = "none"
    """Source of the last round's draft."""
    n_ctx: int = 0
    context_used: int = 0

    @property
    def decode_s(self) -> float:
        """Seconds spent in rounds, prefill excluded."""
        return self.draft_s + self.verify_s + self.host_s

    @property
    def drafted(self) -> int:
        return sum(source.drafted for source in self.sources.values())

    @property
    def accepted(self) -> int:
        return sum(source.accepted for source in self.sources.values())

    @property
    def acceptance(self) -> float | None:
        """accepted / drafted over all sources; None before any draft."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def tokens_per_pass(self) -> float | None:
        return self.emitted / self.target_passes if self.target_passes else None

    @property
    def tokens_per_s(self) -> float | None:
        """Decoding rate over the whole answer, prefill excluded."""
        return self.emitted / self.decode_s if self.decode_s > 0 else None

    @property
    def speedup(self) -> float | None:
        """Rate of the whole answer over the measured plain rate."""
        if self.tokens_per_s is None or self.plain_s_per_token is None:
            return None
        return self.tokens_per_s * self.plain_s_per_token

    @property
    def recent_speedup(self) -> float | None:
        """Recent rate over the measured plain rate."""
        if self.recent_tokens_per_s is None or self.plain_s_per_token is None:
            return None
        return self.recent_tokens_per_s * self.plain_s_per_token
