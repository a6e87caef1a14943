"""The tiny models as Hugging Face folders: the same weights and words as `tiny.make` writes into GGUF files."""

import json
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from tiny import CHATML, Architecture
from tiny_tokenizer import END, Tokenizer, byte_level
from tiny_weights import SHAPES, Shape, Weights, tiny_weights

Values = npt.NDArray[np.float32]

_MODEL_TYPES: Final[dict[Architecture, tuple[str, str]]] = {
    "llama": ("llama", "LlamaForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
    "smollm": ("llama", "LlamaForCausalLM"),
}
_NAMES: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2's tokenizer splits text before it merges."""


def make(
    folder: Path,
    *,
    seed: int = 0,
    arch: Architecture = "llama",
    noise: float = 0.0,
    cycle: float = 0.0,
    end: float = 0.0,
    vocab_extra: int = 0,
    context: int = 4096,
    template: str | None = CHATML,
    window: int | None = None,
) -> Path:
    """Writes the folder and returns it; arguments are those of `tiny.make`.

    Args:
        window: makes every other layer of a Qwen model see so many positions only.
    """
    tokenizer = byte_level(vocab_extra)
    weights = tiny_weights(seed, arch, tokenizer, cycle=cycle, noise=noise, end=end)
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config(arch, len(tokenizer.tokens), context, window))
    write_tokenizer(folder, tokenizer, template)
    save_file(renamed(weights, arch), folder / "model.safetensors", {"format": "pt"})
    return folder


def config(arch: Architecture, words: int, context: int = 4096, window: int | None = None) -> dict[str, Any]:
    """config.json of a tiny model."""
    shape, (model_type, name) = SHAPES[arch], _MODEL_TYPES[arch]
    settings: dict[str, Any] = {
        "architectures": [name],
        "model_type": model_type,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": context,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": arch == "smollm",
        "vocab_size": words,
        "dtype": "float32",
    }
    if window is not None:
        kinds = ["full_attention", "sliding_attention"]
        settings |= {
            "use_sliding_window": True,
            "sliding_window": window,
            "max_window_layers": 1,
            "layer_types": [kinds[layer % 2] for layer in range(shape.layers)],
        }
    return settings


def renamed(weights: Weights, arch: Architecture) -> Weights:
    """The weights under the names, and in the order of rows, that Hugging Face files have."""
    found = {}
    for name, values in weights.items():
        new = name_in_folder(name)
        if arch in ("llama", "smollm") and new.endswith(("q_proj.weight", "k_proj.weight")):
            values = _halves(values, SHAPES[arch])
        found[new] = np.ascontiguousarray(values)
    return found


def name_in_folder(name: str) -> str:
    """What Hugging Face files call the tensor that GGUF files call `name`."""
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.{parts[3]}"
    whole = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    return f"{whole[parts[0]]}.{parts[1]}"


def _halves(values: Values, shape: Shape) -> Values:
    """GGUF files of llamas rotate neighbouring numbers of a head, Hugging Face's the halves of it."""
    heads = len(values) // shape.head_dim
    pairs = values.reshape(heads, shape.head_dim // 2, 2, -1)
    return pairs.swapaxes(1, 2).reshape(values.shape)


def write_tokenizer(folder: Path, tokenizer: Tokenizer, template: str | None) -> None:
    """The tokenizer's files, as Qwen2.5 has them: marks for fill-in-the-middle are not called special there."""
    added = [
        {
            "id": id,
            "content": text,
            "special": kind == gguf.TokenType.CONTROL and "fim" not in text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for id, (text, kind) in enumerate(zip(tokenizer.tokens, tokenizer.types, strict=True))
        if kind in (gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED)
    ]
    words = {
        text: id
        for id, (text, kind) in enumerate(zip(tokenizer.tokens, tokenizer.types, strict=True))
        if kind == gguf.TokenType.NORMAL
    }
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_]},
        "post_processor": bytes_,
        "decoder": bytes_,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": words,
            "merges": [merge.split(" ") for merge in tokenizer.merges or ()],
        },
    }
    write_json(folder / "tokenizer.json", described)
    settings = {"bos_token": None, "eos_token": END, "add_bos_token": False}
    write_json(folder / "tokenizer_config.json", settings | ({"chat_template": template} if template else {}))


def write_json(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def make_recurrent(folder: Path) -> Path:
    """A model whose first layer keeps a state that can't be rolled back (a short convolution, as LFM2 has them)."""
    import torch
    from transformers import Lfm2Config, Lfm2ForCausalLM

    tokenizer = byte_level()
    settings = Lfm2Config(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        layer_types=["conv", "full_attention"],
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=len(tokenizer.tokens),
        max_position_embeddings=4096,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=tokenizer.id(END),
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        Lfm2ForCausalLM(settings).save_pretrained(folder)
    write_tokenizer(folder, tokenizer, CHATML)
    return folder
