"""A pass of a few tokens without the library's layers around it: what drafting and verifying spend their time in.

Through the library's modules a token of a 0.5B model takes a processor twice as long as its matrices do. Here the same
numbers are added and multiplied in the same order over static buffers. On a processor the logits are the library's to
the last bit. On a card the whole pass can be captured once and replayed (see `graphs`): nothing in it waits for the
device, and what changes between passes of one shape - tokens, positions, what is seen - lies in the buffers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from transformers import PreTrainedModel

from specengine.backends.torch_nf4 import attention
from specengine.backends.torch_nf4.four_bits import Linear, linear
from specengine.backends.torch_nf4.kv import KvCache

WIDEST: Final = 8
"""Tokens, at most: as many as the 4-bit kernels for cards read each weight once for."""
_FAMILIES: Final = frozenset({"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"})
_STATIC_ROTATIONS: Final = frozenset({"default", "linear", "llama3", "yarn"})
"""Others depend on how far a text has come."""
_FIRST_BUCKET: Final = 512


@dataclass(frozen=True, slots=True)
class Shape:
    """What passes that run the same operations on the same buffers have in common."""

    tokens: int
    rows: int
    """Positions at the end whose logits are wanted, at least one."""
    bucket: int
    """Positions of the cache that attention reads; the mask hides those that aren't seen."""


@dataclass(frozen=True, slots=True)
class _Layer:
    index: int
    """Of its place in the cache."""
    before_attention: "_Norm"
    query: Linear
    key: Linear
    value: Linear
    query_norm: "_Norm | None"
    key_norm: "_Norm | None"
    output: Linear
    before_feed: "_Norm"
    gate: Linear
    up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: torch.Tensor
    epsilon: float

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        # Rounded before the weight, as the library does it.
        return self.weight * F.rms_norm(states, self.weight.shape, eps=self.epsilon)


def fits(model: PreTrainedModel) -> bool:
    """Whether this model is of a family that is computed here: rotated positions, full attention, gated SiLU."""
    config = model.config
    rotation = getattr(getattr(model.get_decoder(), "rotary_emb", None), "rope_type", None)
    return (
        type(model).__name__ in _FAMILIES
        and config.hidden_act == "silu"
        and rotation in _STATIC_ROTATIONS
        and getattr(config, "sliding_window", None) is None
    )


class FewTokens:
    """Passes of up to `WIDEST` tokens over a model and its cache; both must be on the device."""

    def __init__(self, model: PreTrainedModel, kv: KvCache, static: bool) -> None:
        """Args:
        model: one that `fits`.
        static: buckets are powers of two and never smaller than 512, so that few shapes come up, each a graph; else
            they are the cache's own blocks, so that passes agree with wider ones to the last bit.
        """
        self.model = model
        self._kv = kv
        self._static = static
        decoder, config = model.get_decoder(), model.config
        self._embedding: torch.Tensor = decoder.embed_tokens.weight
        self._rotation: Callable[..., tuple[torch.Tensor, torch.Tensor]] = decoder.rotary_emb
        self._layers = [_layer(layer) for layer in decoder.layers]
        self._norm = _norm(decoder.norm)
        self._head = linear(model.get_output_embeddings())
        self._heads: int = config.num_attention_heads
        self._kv_heads: int = config.num_key_value_heads
        self._scaling: float = decoder.layers[0].self_attn.scaling
        device = self._embedding.device
        self._offsets = torch.arange(WIDEST, device=device)
        self._ids = torch.zeros(WIDEST, dtype=torch.long, device=device)
        self._positions = torch.zeros(WIDEST, dtype=torch.long, device=device)
        self._places = torch.arange(self.bucket(kv.limit), device=device)

    def bucket(self, length: int) -> int:
        """Positions that attention reads when the cache holds `length`."""
        if not self._static:
            return self._kv.padded(length)
        size = _FIRST_BUCKET
        while size < length:
            size *= 2
        return min(size, self._kv.padded(self._kv.limit))

    def place(self, tokens: Sequence[int], rows: int) -> Shape:
        """Puts what the next `run` reads into the buffers, and makes room in the cache."""
        count, start = len(tokens), self._kv.end
        shape = Shape(count, rows, self.bucket(start + count))
        self._kv.reserve(shape.bucket)
        self._ids[:count].copy_(torch.tensor(tokens))
        torch.add(self._offsets[:count], start, out=self._positions[:count])
        return shape

    def run(self, shape: Shape) -> torch.Tensor:
        """The pass: keys and values go into the cache behind the committed tokens, whose length stays as it is.

        Returns:
            fp32 logits, shape (rows, vocabulary).
        """
        positions = self._positions[: shape.tokens]
        states = F.embedding(self._ids[: shape.tokens], self._embedding)[None]
        cos, sin = self._rotation(states, positions[None])
        # The library turns the halves of a head and negates one: the sign goes into the sine instead.
        half = sin.shape[-1] // 2
        sin = torch.cat((-sin[..., :half], sin[..., half:]), -1)
        seen = (self._places[: shape.bucket] <= positions[:, None])[None, None]
        # As every layer would make it of what is seen: laid out for all heads of a group, and added to the scores.
        seen = attention.mask_of_groups(seen, self._heads // self._kv_heads)
        hidden = torch.zeros_like(seen, dtype=states.dtype).masked_fill_(~seen, -torch.inf)
        for layer in self._layers:
            mixed = self._attend(layer, layer.before_attention(states), positions, cos, sin, hidden)
            states = states + layer.output(mixed)
            inner = layer.before_feed(states)
            states = states + layer.down(F.silu(layer.gate(inner)) * layer.up(inner))
        return self._head(self._norm(states[:, shape.tokens - shape.rows :]))[0].float()

    def _attend(
        self,
        layer: _Layer,
        states: torch.Tensor,
        positions: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        hidden: torch.Tensor,
    ) -> torch.Tensor:
        count, bucket = len(positions), hidden.shape[-1]
        query = layer.query(states).view(1, count, self._heads, -1)
        key = layer.key(states).view(1, count, self._kv_heads, -1)
        value = layer.value(states).view(1, count, self._kv_heads, -1)
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = layer.query_norm(query), layer.key_norm(key)
        both = torch.cat((query, key), 2).transpose(1, 2)
        both = both * cos + both.roll(both.shape[-1] // 2, -1) * sin
        keys, values = self._kv.buffers(layer.index)
        keys.index_copy_(2, positions, both[:, self._heads :])
        values.index_copy_(2, positions, value.transpose(1, 2))
        keys, values = keys[:, :, :bucket], values[:, :, :bucket]
        mixed = attention.in_groups(both[:, : self._heads], keys, values, hidden, self._scaling)
        return mixed.transpose(1, 2).reshape(1, count, -1)


def _layer(layer: Any) -> _Layer:  # noqa: ANN401 - the library's modules are untyped
    mixer, feed = layer.self_attn, layer.mlp
    normed = hasattr(mixer, "q_norm")
    return _Layer(
        mixer.layer_idx,
        _norm(layer.input_layernorm),
        linear(mixer.q_proj),
        linear(mixer.k_proj),
        linear(mixer.v_proj),
        _norm(mixer.q_norm) if normed else None,
        _norm(mixer.k_norm) if normed else None,
        linear(mixer.o_proj),
        _norm(layer.post_attention_layernorm),
        linear(feed.gate_proj),
        linear(feed.up_proj),
        linear(feed.down_proj),
    )


def _norm(norm: Any) -> _Norm:  # noqa: ANN401
    return _Norm(norm.weight, norm.variance_epsilon)
