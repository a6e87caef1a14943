"""An answer's counters, in words and as JSON."""

from typing import Any, Final

import msgspec

from specengine.protocol import Done, Loaded
from specengine.stats import Stats

_DERIVED = ("tokens_per_s", "tokens_per_pass", "drafted", "accepted", "acceptance", "speedup", "decode_s")

HANGING: Final = 9
"""Columns before the figures of a line."""


def as_json(done: Done, loaded: Loaded, seed: int) -> dict[str, Any]:
    """Every counter, the figures derived from them, and what is needed to get the same answer again."""
    return {
        **msgspec.to_builtins(done.stats),
        **{name: getattr(done.stats, name) for name in _DERIVED},
        "reason": done.reason,
        "seed": seed,
        "model": loaded.name,
        "draft": loaded.draft,
        "backend": loaded.backend,
        "device": loaded.device,
    }


def in_words(done: Done, loaded: Loaded, seed: int) -> str:
    """A few lines for people."""
    stats = done.stats
    model = f"{loaded.name} + {loaded.draft}" if loaded.draft else loaded.name
    lines = [
        f"model    {model} on {loaded.device}, seed {seed}",
        f"prompt   {_count(stats.prompt_tokens, 'token')}, {stats.reused_tokens} reused" + _after(stats),
        f"answer   {_count(stats.emitted, 'token')} in {_count(stats.target_passes, 'target pass')}" + _rate(stats),
    ]
    for name, source in stats.sources.items():
        if source.acceptance is not None:
            kept = f"{source.accepted} of {source.drafted} drafted tokens accepted ({source.acceptance:.0%})"
            lines.append(f"{name:<8} {kept}")
    return "\n".join(lines)


def _after(stats: Stats) -> str:
    return "" if stats.first_token_s is None else f", first token after {stats.first_token_s:.2f} s"


def _rate(stats: Stats) -> str:
    rate = "" if stats.tokens_per_s is None else f", {stats.tokens_per_s:.1f} tokens/s"
    speedup = "" if stats.speedup is None else f", {stats.speedup:.2f}× plain"
    return rate + speedup


def _count(count: int, thing: str) -> str:
    plural = thing if count == 1 else f"{thing}es" if thing.endswith("s") else f"{thing}s"
    return f"{count} {plural}"
