"""Tiny real models for tests: GGUF files of a few hundred kilobytes, written in milliseconds, the same for each seed.

The tokenizer is a real byte-level BPE with the usual marks, so text, templates and fill-in-the-middle behave as with a
big model. The weights are random, but shaped so that the next token is neither certain nor arbitrary (see `make`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import gguf
import numpy as np
import numpy.typing as npt

from tiny_tokenizer import CHATML as CHATML
from tiny_tokenizer import CONTROL as CONTROL
from tiny_tokenizer import END as END
from tiny_tokenizer import USER_DEFINED as USER_DEFINED
from tiny_tokenizer import Tokenizer, byte_level, sentencepiece, spelling

Architecture = Literal["llama", "qwen2"]
Weights = dict[str, npt.NDArray[np.float32]]

_NEVER: Final = -30.0
_LAYERS, _WIDTH, _HEADS, _KV_HEADS, _FEED = 2, 64, 4, 2, 128


def make(
    path: Path,
    *,
    seed: int = 0,
    arch: Architecture = "llama",
    noise: float = 0.0,
    cycle: float = 0.0,
    end: float = 0.0,
    vocab_extra: int = 0,
    context: int = 4096,
    template: str | None = CHATML,
) -> Path:
    """Writes a model file and returns its path.

    Measured over seeds 0 to 5, 300 tokens each, for `cycle` 0 / 1 / 2 (llama.cpp, F32 KV): the entropy at T = 1 is
    3.6 / 1.4 / 0.2 nats. A draft with noise 0.03 has the target's greedy token in 0.85 / 0.94 / 0.99 of the positions,
    with noise 0.1 in 0.54 / 0.82 / 0.97; at T = 1 the sum of min(p, q) is 0.92 / 0.94 / 0.98 and 0.75 / 0.80 / 0.94.
    Of the greedy tokens that follow a pair seen before, 0.73 / 0.83 / 0.99 are the one that followed it last time.

    Args:
        noise: standard deviation of Gaussian noise added to the weights of `seed`, relative to each matrix's RMS:
            a draft that agrees with its target often, but not always.
        cycle: how much the next token follows from the current one, along cycles of 5 to 40 tokens, so that prompt
            lookup finds long matches.
        end: added to the logit of <|im_end|>, whose mean probability is else 0.005 / 0.0007 / 0.000004 for `cycle`
            0 / 1 / 2 (end=3: 0.06 / 0.01 / 0.00007; -30: never). Other special tokens are never emitted.
        vocab_extra: padding tokens beyond the real ones, as converted models have them.
    """
    tokenizer = byte_level(vocab_extra)
    weights = _noisy(_weights(seed, arch, tokenizer, cycle), noise)
    _bias(weights, tokenizer, _usual_bias(end))
    return _write_transformer(path, arch, tokenizer, weights, context, template)


def make_mismatched(path: Path, *, seed: int = 0, larger: bool = False) -> Path:
    """A model whose vocabulary differs from `make`'s in the text of one token or, if `larger`, by one more token."""
    tokenizer = byte_level()
    tokens, types = list(tokenizer.tokens), list(tokenizer.types)
    if larger:
        tokens.append("unheard")
        types.append(gguf.TokenType.NORMAL)
    else:
        tokens[tokens.index(spelling(b" hello"))] = spelling(b" jello")
    other = Tokenizer(tokens, types, tokenizer.merges)
    weights = _weights(seed, "llama", other, cycle=0.0)
    _bias(weights, other, _usual_bias(end=0.0))
    return _write_transformer(path, "llama", other, weights, context=4096, template=CHATML)


def make_sentencepiece(path: Path, *, seed: int = 0) -> Path:
    """A model with a SentencePiece tokenizer, and no chat template."""
    tokenizer = sentencepiece()
    weights = _weights(seed, "llama", tokenizer, cycle=0.0)
    _bias(weights, tokenizer, dict.fromkeys(("<unk>", "<s>", *USER_DEFINED), _NEVER))
    return _write_transformer(path, "llama", tokenizer, weights, context=4096, template=None)


def make_recurrent(path: Path, *, seed: int = 0) -> Path:
    """A Mamba model with `make`'s tokenizer: it decodes, but its state can't be rolled back."""
    tokenizer = byte_level()
    writer = gguf.GGUFWriter(path, "mamba")
    inner, state, kernel, rank = 2 * _WIDTH, 16, 4, 4
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(_LAYERS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    tokenizer.write(writer, CHATML)
    draw = np.random.default_rng([seed, 7])
    count = len(tokenizer.tokens)
    weights: Weights = {
        "token_embd.weight": _normal(draw, count, _WIDTH, scale=1.0),
        "output_norm.weight": np.ones(_WIDTH, np.float32),
        "output.weight": _normal(draw, count, _WIDTH, scale=2.2 / _WIDTH**0.5),
    }
    for layer in range(_LAYERS):
        weights |= {
            f"blk.{layer}.attn_norm.weight": np.ones(_WIDTH, np.float32),
            f"blk.{layer}.ssm_in.weight": _normal(draw, 2 * inner, _WIDTH, scale=_WIDTH**-0.5),
            f"blk.{layer}.ssm_conv1d.weight": _normal(draw, inner, kernel, scale=0.5),
            f"blk.{layer}.ssm_conv1d.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_x.weight": _normal(draw, rank + 2 * state, inner, scale=inner**-0.5),
            f"blk.{layer}.ssm_dt.weight": _normal(draw, inner, rank, scale=0.5),
            f"blk.{layer}.ssm_dt.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_a": -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1)),
            f"blk.{layer}.ssm_d": np.ones(inner, np.float32),
            f"blk.{layer}.ssm_out.weight": _normal(draw, _WIDTH, inner, scale=inner**-0.5),
        }
    _write_weights(writer, weights)
    return path


def truncate(path: Path, share: float = 0.7) -> Path:
    """Cuts a file to a share of its bytes, as a broken download leaves it."""
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    return path


def _normal(draw: np.random.Generator, *shape: int, scale: float) -> npt.NDArray[np.float32]:
    return (draw.standard_normal(shape) * scale).astype(np.float32)


def _weights(seed: int, arch: Architecture, tokenizer: Tokenizer, cycle: float) -> Weights:
    draw = np.random.default_rng([seed, 0])
    count, kv = len(tokenizer.tokens), _WIDTH // _HEADS * _KV_HEADS
    unit = _WIDTH**-0.5
    embedding = _normal(draw, count, _WIDTH, scale=1.0)
    weights: Weights = {"token_embd.weight": embedding, "output_norm.weight": np.ones(_WIDTH, np.float32)}
    for layer in range(_LAYERS):
        block = f"blk.{layer}."
        weights |= {
            block + "attn_norm.weight": np.ones(_WIDTH, np.float32),
            block + "attn_q.weight": _normal(draw, _WIDTH, _WIDTH, scale=_SHARPNESS * unit),
            block + "attn_k.weight": _normal(draw, kv, _WIDTH, scale=_SHARPNESS * unit),
            block + "attn_v.weight": _normal(draw, kv, _WIDTH, scale=_SHARPNESS * unit),
            block + "attn_output.weight": _normal(draw, _WIDTH, _WIDTH, scale=unit),
            block + "ffn_norm.weight": np.ones(_WIDTH, np.float32),
            block + "ffn_gate.weight": _normal(draw, _FEED, _WIDTH, scale=_SHARPNESS * unit),
            block + "ffn_up.weight": _normal(draw, _FEED, _WIDTH, scale=unit),
            block + "ffn_down.weight": _normal(draw, _WIDTH, _FEED, scale=_FEED**-0.5),
        }
        if arch == "qwen2":
            for name, width in (("attn_q", _WIDTH), ("attn_k", kv), ("attn_v", kv)):
                weights[block + name + ".bias"] = _normal(draw, width, scale=0.2)
    output = _normal(draw, count, _WIDTH, scale=_SPREAD * unit)
    if cycle:
        tokens, following = _cycles(np.random.default_rng([seed, 1]), tokenizer)
        output[following] += cycle * _CYCLE_GAIN * unit * embedding[tokens]
    weights["output.weight"] = output
    return weights


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


def _noisy(weights: Weights, noise: float) -> Weights:
    if not noise:
        return weights
    draw = np.random.default_rng(99)
    return {
        name: (values + noise * np.sqrt(np.mean(values**2)) * draw.standard_normal(values.shape)).astype(np.float32)
        for name, values in weights.items()
    }


def _bias(weights: Weights, tokenizer: Tokenizer, rarer: Mapping[str, float]) -> None:
    """Adds to the logits of some tokens: the residual stream's first coordinate is kept constant and serves as bias."""
    weights["token_embd.weight"][:, 0] = 1.0
    for name, values in weights.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            values[0] = 0.0
    bias = np.zeros(len(tokenizer.tokens), np.float32)
    for token, amount in rarer.items():
        bias[tokenizer.id(token)] = amount
    weights["output.weight"][:, 0] = bias * _BIAS_GAIN


def _usual_bias(end: float) -> dict[str, float]:
    never = dict.fromkeys((*CONTROL, *USER_DEFINED), _NEVER)
    return never | {END: end} | {spelling(bytes([byte])): -3.0 for byte in _RARE_BYTES}


_SPREAD: Final = 2.2
_CYCLE_GAIN: Final = 2.0
_SHARPNESS: Final = 1.2
_BIAS_GAIN: Final = 1.5
_RARE_BYTES: Final = (*range(9), *range(11, 32), *range(127, 256))


def _write_transformer(
    path: Path, arch: Architecture, tokenizer: Tokenizer, weights: Weights, context: int, template: str | None
) -> Path:
    writer = gguf.GGUFWriter(path, arch)
    _write_shape(writer, context)
    tokenizer.write(writer, template)
    _write_weights(writer, weights)
    return path


def _write_shape(writer: gguf.GGUFWriter, context: int) -> None:
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(context)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)


def _write_weights(writer: gguf.GGUFWriter, weights: Weights) -> None:
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
