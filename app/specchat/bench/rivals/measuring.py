"""What all rivals' figures and processes have in common."""

from pathlib import Path
from typing import Final

from specchat.bench.rivals.contract import Question
from specengine.gguf_header import read_header

_WORKSPACE: Final = 400 * 10**6
"""Bytes for compute buffers, logits and the process itself."""


def decoding_s(seconds: float, reading_s: float | None, n_tokens: int) -> float:
    """Seconds of as many passes as a plain answer has tokens.

    Where `reading_s` of them went into reading the prompt, the first token's own pass is taken to have cost the mean
    of the others.
    """
    if reading_s is None:
        return seconds
    return (seconds - reading_s) * n_tokens / (n_tokens - 1) if n_tokens > 1 else reading_s


def patience_s(question: Question) -> float:
    """How long a rival may take: a minute, 0.5 s for each token to be read, 10 s for each to be written."""
    return 60 + 0.5 * len(question.prompt) + 10 * question.max_tokens


def weights_and_cache(model: Path, n_ctx: int) -> int:
    """Bytes that a model takes in a process, as an estimate."""
    return model.stat().st_size + _WORKSPACE + n_ctx * (read_header(model).kv_bytes_per_token or 0)
