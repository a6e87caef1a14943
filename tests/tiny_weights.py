"""The weights of the tiny models: random, but shaped so that the next token is neither certain nor arbitrary.

They are named as GGUF files name them; `tiny.make` says what they amount to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import gguf
import numpy as np
import numpy.typing as npt

from tiny_tokenizer import CONTROL, END, USER_DEFINED, Tokenizer, spelling

Architecture = Literal["llama", "qwen2", "qwen3", "smollm"]
"""smollm is a llama of SmolLM2's make: three heads share one, and the head is the embedding."""
Weights = dict[str, npt.NDArray[np.float32]]

NEVER: Final = -30.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes; all multiples of what 4-bit kernels take."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    feed: int = 128


SHAPES: Final[dict[Architecture, Shape]] = {
    "llama": Shape(),
    "qwen2": Shape(),
    "qwen3": Shape(heads=4, kv_heads=1, head_dim=32),
    "smollm": Shape(width=192, heads=3, kv_heads=1, head_dim=64, feed=256),
}


def tiny_weights(
    seed: int, arch: Architecture, tokenizer: Tokenizer, *, cycle: float, noise: float, end: float
) -> Weights:
    """The weights of `tiny.make`."""
    weights = noisy(random_weights(seed, arch, tokenizer, cycle), noise)
    bias(weights, tokenizer, usual_bias(end))
    return weights


def normal(draw: np.random.Generator, *shape: int, scale: float) -> npt.NDArray[np.float32]:
    return (draw.standard_normal(shape) * scale).astype(np.float32)


def random_weights(seed: int, arch: Architecture, tokenizer: Tokenizer, cycle: float) -> Weights:
    draw = np.random.default_rng([seed, 0])
    shape = SHAPES[arch]
    count, width, feed = len(tokenizer.tokens), shape.width, shape.feed
    query, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    unit = width**-0.5
    tied = arch == "smollm"
    embedding = normal(draw, count, width, scale=_SPREAD * unit if tied else 1.0)
    weights: Weights = {"token_embd.weight": embedding, "output_norm.weight": np.ones(width, np.float32)}
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        weights |= {
            block + "attn_norm.weight": np.ones(width, np.float32),
            block + "attn_q.weight": normal(draw, query, width, scale=_SHARPNESS * unit),
            block + "attn_k.weight": normal(draw, kv, width, scale=_SHARPNESS * unit),
            block + "attn_v.weight": normal(draw, kv, width, scale=_SHARPNESS * unit),
            block + "attn_output.weight": normal(draw, width, query, scale=query**-0.5),
            block + "ffn_norm.weight": np.ones(width, np.float32),
            block + "ffn_gate.weight": normal(draw, feed, width, scale=_SHARPNESS * unit),
            block + "ffn_up.weight": normal(draw, feed, width, scale=unit),
            block + "ffn_down.weight": normal(draw, width, feed, scale=feed**-0.5),
        }
        if arch == "qwen2":
            for name, rows in (("attn_q", query), ("attn_k", kv), ("attn_v", kv)):
                weights[block + name + ".bias"] = normal(draw, rows, scale=0.2)
        if arch == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                weights[f"{block}{name}.weight"] = 1 + normal(draw, shape.head_dim, scale=0.2)
    if not tied:
        weights["output.weight"] = _output(draw, seed, tokenizer, embedding, cycle)
    return weights


def _output(
    draw: np.random.Generator, seed: int, tokenizer: Tokenizer, embedding: npt.NDArray[np.float32], cycle: float
) -> npt.NDArray[np.float32]:
    count, width = embedding.shape
    output = normal(draw, count, width, scale=_SPREAD * width**-0.5)
    if cycle:
        tokens, following = _cycles(np.random.default_rng([seed, 1]), tokenizer)
        output[following] += cycle * _CYCLE_GAIN * width**-0.5 * embedding[tokens]
    return output


def _cycles(draw: np.random.Generator, tokenizer: Tokenizer) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The tokens of readable text, and the one that follows each, in cycles of 5 to 40."""
    rare = {spelling(bytes([byte])) for byte in _RARE_BYTES}
    usual = [
        token
        for token, (text, kind) in enumerate(zip(tokenizer.tokens, tokenizer.types, strict=True))
        if kind == gguf.TokenType.NORMAL and text not in rare
    ]
    order = draw.permutation(usual)
    cuts = np.cumsum(draw.integers(5, 41, size=len(order) // 5))
    rings = np.split(order, cuts[cuts < len(order)])
    return order, np.concatenate([np.roll(ring, -1) for ring in rings])


def noisy(weights: Weights, noise: float) -> Weights:
    if not noise:
        return weights
    draw = np.random.default_rng(99)
    return {
        name: (values + noise * np.sqrt(np.mean(values**2)) * draw.standard_normal(values.shape)).astype(np.float32)
        for name, values in weights.items()
    }


def bias(weights: Weights, tokenizer: Tokenizer, rarer: Mapping[str, float]) -> None:
    """Adds to the logits of some tokens: the residual stream's first coordinate is kept constant and serves as bias.

    Where the head is the embedding, that coordinate is constant only while no token with a bias is read, so only those
    that never come have one.
    """
    weights["token_embd.weight"][:, 0] = 1.0
    for name, values in weights.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            values[0] = 0.0
    tied = "output.weight" not in weights
    head = weights["token_embd.weight" if tied else "output.weight"]
    if not tied:
        head[:, 0] = 0.0
    for token, amount in rarer.items():
        if not tied or amount <= NEVER:
            head[tokenizer.id(token), 0] = amount * _BIAS_GAIN


def usual_bias(end: float) -> dict[str, float]:
    never = dict.fromkeys((*CONTROL, *USER_DEFINED), NEVER)
    return never | {END: end} | {spelling(bytes([byte])): -3.0 for byte in _RARE_BYTES}


_SPREAD: Final = 2.2
_CYCLE_GAIN: Final = 2.0
_SHARPNESS: Final = 1.2
_BIAS_GAIN: Final = 1.5
_RARE_BYTES: Final = (*range(9), *range(11, 32), *range(127, 256))
