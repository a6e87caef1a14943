"""Model folders that say what they are and hold zeros, written without any library."""

import json
import struct
from pathlib import Path
from typing import Any

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 4096,
}


def write_weights(file: Path, shapes: dict[str, list[int]]) -> None:
    """A safetensors file of zeros, as the format's page describes it."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * shape[-1] if len(shape) > 1 else 2 * shape[0]
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
