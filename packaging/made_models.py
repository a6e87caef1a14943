"""Makes Qwen2 folders of any size for measurements: the time of a pass doesn't depend on what its weights are."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True)
class Shape:
    """What a Qwen2 model's matrices are like."""

    hidden: int
    feed: int
    layers: int
    heads: int
    kv_heads: int
    words: int
    tied: bool = False


SEVEN_B: Final = Shape(3584, 18944, 28, 28, 4, 152064)
HALF_B: Final = Shape(896, 4864, 24, 14, 2, 151936, tied=True)


def hollow(folder: Path, shape: Shape) -> Path:
    """A model of zeros, whose file has holes where they are."""
    table: dict[str, Any] = {}
    at = 0
    for name, dimensions in _tensors(shape).items():
        size = 2 * dimensions[0] * (dimensions[1] if len(dimensions) > 1 else 1)
        table[name] = {"dtype": "BF16", "shape": dimensions, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table).encode()
    _describe(folder, shape)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return folder


def randomised(folder: Path, shape: Shape) -> Path:
    """A model of random weights."""
    import torch
    from safetensors.torch import save_file

    _describe(folder, shape)
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.ones(dimensions, dtype=torch.bfloat16)
        if "norm" in name
        else (torch.randn(dimensions, generator=generator) * 0.04).to(torch.bfloat16)
        for name, dimensions in _tensors(shape).items()
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def _tensors(shape: Shape) -> dict[str, list[int]]:
    key = shape.hidden * shape.kv_heads // shape.heads
    found = {"model.embed_tokens.weight": [shape.words, shape.hidden], "model.norm.weight": [shape.hidden]}
    for layer in range(shape.layers):
        inside = {
            "input_layernorm.weight": [shape.hidden],
            "post_attention_layernorm.weight": [shape.hidden],
            "self_attn.o_proj.weight": [shape.hidden, shape.hidden],
            "mlp.gate_proj.weight": [shape.feed, shape.hidden],
            "mlp.up_proj.weight": [shape.feed, shape.hidden],
            "mlp.down_proj.weight": [shape.hidden, shape.feed],
        }
        for part, rows in (("q", shape.hidden), ("k", key), ("v", key)):
            inside |= {f"self_attn.{part}_proj.weight": [rows, shape.hidden], f"self_attn.{part}_proj.bias": [rows]}
        found |= {f"model.layers.{layer}.{name}": dimensions for name, dimensions in inside.items()}
    return found if shape.tied else found | {"lm_head.weight": [shape.words, shape.hidden]}


def _describe(folder: Path, shape: Shape) -> None:
    """What the folder says beside its weights: a Qwen2 model with an alphabet of eight letters."""
    folder.mkdir(parents=True)
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        "tie_word_embeddings": shape.tied,
        "vocab_size": shape.words,
        "dtype": "bfloat16",
    }
    words = {"model": {"type": "BPE", "vocab": {letter: id for id, letter in enumerate("abcdefgh")}, "merges": []}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    words |= {"version": "1.0", "added_tokens": [], "pre_tokenizer": byte_level, "decoder": byte_level}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(words), encoding="utf-8")
