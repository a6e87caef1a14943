"""What a cost table says about a machine: which source of drafts can pay, from what acceptance on, and what would help.

With E(α, γ) = (1 − α^(γ+1)) / (1 − α) tokens a round at acceptance α (Leviathan 2023, equation 1), a draft of γ tokens
pays where E is greater than the round's time over that of a plain one: (γ·t_draft + t(γ+1) + host) / (t(1) + host).
"""

from dataclasses import dataclass
from typing import Final

from specengine.costs import GRID, CostTable
from specengine.gamma import MAX_MODEL_GAMMA

CONTEXT: Final = 1024
"""Tokens of context that figures are given for, as in a chat about a page or two."""
TYPICAL_ACCEPTANCE: Final = 0.8
"""Of a draft model of the target's family, on code and explanations."""
_RARE_ACCEPTANCE: Final = 0.9
"""A draft model that needs more than this pays on near-copies only, which prompt lookup drafts for nothing."""
_WORTH_IT: Final = 1.05
"""Gains below this are not worth speaking of."""
_FLAT: Final = 1.5
"""Where a pass over 8 tokens costs less than this many passes over one, memory bandwidth is the limit already."""


@dataclass(frozen=True, slots=True)
class SourceAdvice:
    """What one source of drafts can do under a cost table."""

    best: float
    """Speedup over plain decoding if every token is accepted, with"""
    best_gamma: int
    """this draft length."""
    needed: float | None
    """The least acceptance at which it pays, with"""
    needed_gamma: int | None
    """this draft length; None where it can't pay even if every token is accepted."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Figures, and as a string what to do about them."""

    lookup: SourceAdvice
    draft_name: str | None
    draft: SourceAdvice | None
    c: float | None
    """t_draft / t_target of the draft model."""
    two_tokens: float
    """v(2): a pass over two tokens, in passes over one."""
    eight_tokens: float
    """v(8)."""
    paying_c: float
    """The greatest c at which a draft model of typical acceptance would pay; 0 or less where not even a free one."""

    def __str__(self) -> str:
        outlook = "" if self._draft_pays_at(TYPICAL_ACCEPTANCE) else self._outlook()
        return " ".join(filter(None, (self._action(), outlook)))

    @property
    def lookup_pays(self) -> bool:
        return self.lookup.best >= _WORTH_IT

    def _draft_pays_at(self, acceptance: float) -> bool:
        return self.draft is not None and self.draft.needed is not None and self.draft.needed <= acceptance

    def _action(self) -> str:
        if self._draft_pays_at(_RARE_ACCEPTANCE):
            return self._keep_draft()
        if self.draft is not None:
            return self._leave_draft_out(self.draft)
        if self.lookup_pays:
            pays = f"here it pays {self._lookup_gain()},{_from(self.lookup)}"
            return f"Keep prompt lookup on: {pays}; {self._checking()}."
        return f"Expect nothing of speculation here: {self._checking()}."

    def _keep_draft(self) -> str:
        assert self.draft is not None
        lookup = f", beside prompt lookup ({self._lookup_gain()})" if self.lookup_pays else ""
        costs = f"a step costs c = {self.c:.2f} of a target pass and {self._checking()}"
        return (
            f"Keep {self.draft_name} as draft model{lookup}: {costs}, so it pays{_from(self.draft)} and gives up to "
            f"{self.draft.best:.1f}× (drafts of {self.draft.best_gamma})."
        )

    def _leave_draft_out(self, draft: SourceAdvice) -> str:
        if self.lookup_pays:
            action = f"Leave {self.draft_name} out here (--draft none); prompt lookup pays {self._lookup_gain()}"
        else:
            action = f"Leave {self.draft_name} out here (--draft none), and expect nothing of prompt lookup either"
        loses = "loses even if every token is accepted"
        if draft.needed is not None:
            loses = f"would pay only{_from(draft)}, which is rare"
        why = f"a draft step costs c = {self.c:.2f} of a target pass and {self._checking()}"
        return f"{action}: {why}, so the draft {loses}."

    def _outlook(self) -> str:
        if self.paying_c < 0.01:
            small = f"Not even a draft model that costs nothing would pay at an acceptance of {TYPICAL_ACCEPTANCE:g}"
        else:
            small = (
                f"At an acceptance of {TYPICAL_ACCEPTANCE:g} a {'smaller ' if self.c else ''}draft model would pay if "
                f"its step cost less than {self.paying_c:.2f} of a pass"
            )
        if self.eight_tokens < _FLAT:
            return f"{small}."
        bandwidth = "where memory bandwidth is the limit, as on most GPUs"
        if self.c is None:
            return f"{small}; {bandwidth}, both sources pay more."
        if self.c < 1:
            return f"{small}; {bandwidth}, this one would pay from an acceptance of {self.c:.2f} on."
        return f"{small}; this one can't pay anywhere, since its step costs as much as a target pass."

    def _lookup_gain(self) -> str:
        return f"up to {self.lookup.best:.1f}× on copied text"

    def _checking(self) -> str:
        return f"checking two tokens at once costs {self.two_tokens:.1f} passes"


def advise(costs: CostTable, draft_name: str | None = None, context: int = CONTEXT) -> Advice:
    """What follows from `costs` behind `context` tokens; `draft_name` is the draft model they were measured with."""
    costs = costs.at(context)
    step = costs.draft_step_s if draft_name else None
    return Advice(
        lookup=_source(costs, 0.0, GRID[-1] - 1),
        draft_name=draft_name if step is not None else None,
        draft=_source(costs, step, MAX_MODEL_GAMMA) if step is not None else None,
        c=step / costs.target(1) if step is not None else None,
        two_tokens=costs.target(2) / costs.target(1),
        eight_tokens=costs.target(8) / costs.target(1),
        paying_c=max(_paying_c(costs, gamma) for gamma in range(1, MAX_MODEL_GAMMA + 1)),
    )


def expected_tokens(acceptance: float, gamma: int) -> float:
    """E(α, γ): tokens that a round with a draft of γ emits, each accepted with probability α."""
    return sum(acceptance**i for i in range(gamma + 1))


def needed_acceptance(round_s: float, plain_s: float, gamma: int) -> float | None:
    """The least α at which a round of `round_s` pays; None if even γ + 1 tokens are too few for it."""
    wanted = round_s / plain_s
    if wanted > gamma + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_tokens(middle, gamma) < wanted else (low, middle)
    return high


def _source(costs: CostTable, step_s: float, longest: int) -> SourceAdvice:
    plain_s = costs.plain_s
    rounds = {gamma: gamma * step_s + costs.target(gamma + 1) + costs.host_s for gamma in range(1, longest + 1)}
    best_gamma = max(rounds, key=lambda gamma: (gamma + 1) / rounds[gamma])
    needed = {
        gamma: alpha for gamma in rounds if (alpha := needed_acceptance(rounds[gamma], plain_s, gamma)) is not None
    }
    needed_gamma = min(needed, key=lambda gamma: needed[gamma], default=None)
    return SourceAdvice(
        best=(best_gamma + 1) * plain_s / rounds[best_gamma],
        best_gamma=best_gamma,
        needed=None if needed_gamma is None else needed[needed_gamma],
        needed_gamma=needed_gamma,
    )


def _paying_c(costs: CostTable, gamma: int) -> float:
    """The c at which drafts of γ tokens are just even at the typical acceptance."""
    spare_s = expected_tokens(TYPICAL_ACCEPTANCE, gamma) * costs.plain_s - costs.target(gamma + 1) - costs.host_s
    return spare_s / gamma / costs.target(1)


def _from(source: SourceAdvice) -> str:
    assert source.needed is not None
    return f" from an acceptance of {max(source.needed, 0.01):.2f} on (drafts of {source.needed_gamma})"
