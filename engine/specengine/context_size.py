"""How many tokens of context a model is given: what was asked for, what it was trained for, what memory allows."""

from dataclasses import dataclass

from specengine.errors import EngineError
from specengine.hardware import DEFAULT_CONTEXT
from specengine.settings import SMALLEST_CONTEXT


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model takes; sizes in bytes."""

    what: str
    """How messages call it."""
    trained: int | None
    """Longest context it was trained for."""
    fixed: int
    """Weights and workspace."""
    per_token: int
    """Of the KV cache; 0 where that isn't known."""


def context_size(asked: int | None, needs: Needs, free: int | None) -> tuple[int, list[str]]:
    """Tokens of context, and what there is to say about them.

    Args:
        free: bytes that can be had; None where the system doesn't say.

    Raises:
        EngineError: it doesn't fit, or what was asked for is too small to work with.
    """
    notices = []
    trained = needs.trained or DEFAULT_CONTEXT
    n_ctx = asked or min(trained, DEFAULT_CONTEXT)
    if n_ctx < SMALLEST_CONTEXT:
        raise EngineError(f"A context of {n_ctx} tokens is too small; --ctx must be {SMALLEST_CONTEXT} or more.")
    if n_ctx > trained:
        n_ctx = trained
        notices.append(f"{needs.what} was trained for contexts of {trained:,} tokens; the context is limited to that.")
    room = None if free is None else free - needs.fixed
    if room is not None and needs.per_token and n_ctx * needs.per_token > room:
        if asked or room < SMALLEST_CONTEXT * needs.per_token:
            need = needs.fixed + n_ctx * needs.per_token
            raise EngineError(
                f"{needs.what} with a context of {n_ctx:,} tokens needs {need / 1e9:.1f} GB of memory and "
                f"{(free or 0) / 1e9:.1f} GB are free; try a smaller --ctx or a smaller model."
            )
        n_ctx = int(room / needs.per_token) // 256 * 256
        notices.append(f"Memory is short: the context is limited to {n_ctx:,} tokens.")
    return n_ctx, notices


def shorter_or_larger(tokens: int, trained: int | None) -> str:
    """What to do about a prompt that the context can't hold; no model goes beyond what it was trained for."""
    if trained is None:
        return "shorten it, or load the model with a larger context (--ctx)."
    if tokens >= trained:
        return f"shorten it; this model was trained for contexts of {trained:,} tokens and takes no more."
    return f"shorten it, or load the model with a larger context (--ctx, up to {trained})."
