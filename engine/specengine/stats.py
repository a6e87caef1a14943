"""Counters of an answer, and the few figures derived from them. Everything shown anywhere comes from here."""

from dataclasses import dataclass, field
from typing import Final

TELLING_TOKENS: Final = 8
"""So many tokens have to be drafted,"""
TELLING_SHARE: Final = 0.1
"""and so many for each token of the answer, before its rate beside the plain one tells what drafts did. With fewer the
two differ by little more than what the machine does from one second to the next."""


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
class Why:
    """Why the drafts of an answer were as long as they were. Counts are of rounds; the rest is set when it ends."""

    off: int = 0
    """Speculation was off."""
    fixed: int = 0
    """The user had fixed γ."""
    free: int = 0
    """γ was the engine's choice. The other counts are of these rounds."""
    offered: int = 0
    """Prompt lookup had a draft to offer."""
    behind: int = 0
    """It went on behind the draft model's tokens, which takes a shorter match than a pass of its own."""
    shortest_taken: int | None = None
    """Length of the shortest match whose continuation was a draft of its own;"""
    longest_left: int | None = None
    """and of the longest one whose continuation was not."""
    probes: int = 0
    """The draft model drafted to learn whether it would pay."""
    lookup_needs: int | None = None
    """Match length from which lookup is expected to pay; None where no match is long enough."""
    lookup_acceptance: float | None = None
    """Acceptance expected at that length."""
    best: float | None = None
    """Speedup that the costs allow if all that lookup drafts is accepted."""
    two_tokens: float | None = None
    """What a pass over two tokens costs, in passes over one."""
    c: float | None = None
    """A step of the draft model, in target passes; None without a draft model."""
    draft_needs: float | None = None
    """The least acceptance at which the draft model pays; None where even full acceptance is too little."""
    draft_needs_gamma: int | None = None
    """The draft length that needs least."""
    draft_acceptance: float | None = None
    """What is expected of the draft model, from what was accepted lately."""


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
    """Source of the last round's draft: "lookup", "draft", "both" where lookup went on behind the draft model's tokens,
    or "none"."""
    n_ctx: int = 0
    context_used: int = 0
    why: Why = field(default_factory=Why)

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
    def speculated(self) -> bool:
        """Enough was drafted to tell what speculation did. Otherwise the answer was decoded plainly, or nearly so, and
        its rate beside the plain one tells how the machine was busy."""
        return self.drafted >= max(TELLING_TOKENS, TELLING_SHARE * self.emitted)

    @property
    def acceptance(self) -> float | None:
        """accepted / drafted over all sources; None before any draft."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def drafted_share(self) -> float | None:
        """accepted / emitted: how much of the answer was drafted. Others call this acceptance, too."""
        return self.accepted / self.emitted if self.emitted else None

    @property
    def tokens_per_pass(self) -> float | None:
        return self.emitted / self.target_passes if self.target_passes else None

    @property
    def tokens_per_s(self) -> float | None:
        """Decoding rate over the whole answer, prefill excluded."""
        return self.emitted / self.decode_s if self.decode_s > 0 else None

    @property
    def speedup(self) -> float | None:
        """Rate of the whole answer over the measured plain rate; None where too little was drafted to tell."""
        if not self.speculated or self.tokens_per_s is None or self.plain_s_per_token is None:
            return None
        return self.tokens_per_s * self.plain_s_per_token

    @property
    def recent_speedup(self) -> float | None:
        """Recent rate over the measured plain rate; None where too little was drafted to tell."""
        if not self.speculated or self.recent_tokens_per_s is None or self.plain_s_per_token is None:
            return None
        return self.recent_tokens_per_s * self.plain_s_per_token
