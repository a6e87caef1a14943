"""Tiny real models for tests: GGUF files of a few hundred kilobytes, written in milliseconds, the same for each seed.

The tokenizer is a real byte-level BPE with the usual marks, so text, templates and fill-in-the-middle behave as with a
big model. The weights are random, but shaped so that the next token is neither certain nor arbitrary (see `make`).
"""

from pathlib import Path
from typing import Final

import gguf
import numpy as np

from tiny_tokenizer import CHATML as CHATML
from tiny_tokenizer import CONTROL as CONTROL
from tiny_tokenizer import END as END
from tiny_tokenizer import USER_DEFINED as USER_DEFINED
from tiny_tokenizer import Tokenizer, byte_level, sentencepiece, spelling
from tiny_weights import NEVER, SHAPES, Shape, Weights, bias, normal, random_weights, tiny_weights
from tiny_weights import Architecture as Architecture

_PLAIN: Final = SHAPES["llama"]
_WIDTH: Final = _PLAIN.width


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
    weights = tiny_weights(seed, arch, tokenizer, cycle=cycle, noise=noise, end=end)
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
    weights = tiny_weights(seed, "llama", other, cycle=0.0, noise=0.0, end=0.0)
    return _write_transformer(path, "llama", other, weights, context=4096, template=CHATML)


def make_sentencepiece(path: Path, *, seed: int = 0) -> Path:
    """A model with a SentencePiece tokenizer, and no chat template."""
    tokenizer = sentencepiece()
    weights = random_weights(seed, "llama", tokenizer, cycle=0.0)
    bias(weights, tokenizer, dict.fromkeys(("<unk>", "<s>", *USER_DEFINED), NEVER))
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
    writer.add_block_count(_PLAIN.layers)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    tokenizer.write(writer, CHATML)
    draw = np.random.default_rng([seed, 7])
    count = len(tokenizer.tokens)
    weights: Weights = {
        "token_embd.weight": normal(draw, count, _WIDTH, scale=1.0),
        "output_norm.weight": np.ones(_WIDTH, np.float32),
        "output.weight": normal(draw, count, _WIDTH, scale=2.2 / _WIDTH**0.5),
    }
    for layer in range(_PLAIN.layers):
        weights |= {
            f"blk.{layer}.attn_norm.weight": np.ones(_WIDTH, np.float32),
            f"blk.{layer}.ssm_in.weight": normal(draw, 2 * inner, _WIDTH, scale=_WIDTH**-0.5),
            f"blk.{layer}.ssm_conv1d.weight": normal(draw, inner, kernel, scale=0.5),
            f"blk.{layer}.ssm_conv1d.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_x.weight": normal(draw, rank + 2 * state, inner, scale=inner**-0.5),
            f"blk.{layer}.ssm_dt.weight": normal(draw, inner, rank, scale=0.5),
            f"blk.{layer}.ssm_dt.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_a": -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1)),
            f"blk.{layer}.ssm_d": np.ones(inner, np.float32),
            f"blk.{layer}.ssm_out.weight": normal(draw, _WIDTH, inner, scale=inner**-0.5),
        }
    _write_weights(writer, weights)
    return path


def truncate(path: Path, share: float = 0.7) -> Path:
    """Cuts a file to a share of its bytes, as a broken download leaves it."""
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share))
    return path


def _write_transformer(
    path: Path, arch: Architecture, tokenizer: Tokenizer, weights: Weights, context: int, template: str | None
) -> Path:
    writer = gguf.GGUFWriter(path, "llama" if arch == "smollm" else arch)
    _write_shape(writer, SHAPES[arch], context)
    tokenizer.write(writer, template)
    _write_weights(writer, weights)
    return path


def _write_shape(writer: gguf.GGUFWriter, shape: Shape, context: int) -> None:
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(shape.head_dim)


def _write_weights(writer: gguf.GGUFWriter, weights: Weights) -> None:
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
