"""Makes a Hugging Face folder of a GGUF file, for real models in places where the original can't be fetched."""

import shutil
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors.torch import save_file

import tiny_folder
from tiny_tokenizer import Tokenizer


def folder_of(source: Path) -> Path:
    """The folder beside `source` with its weights in bf16, written on first use.

    Only for small Qwen2 models: their head is the embedding. GGUF files keep it twice, the head more precisely.
    """
    target = source.with_name(f"{source.stem}-dequantised")
    if not target.exists():
        unfinished = target.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        _convert(gguf.GGUFReader(source), unfinished)
        unfinished.replace(target)
    return target


def _convert(reader: gguf.GGUFReader, folder: Path) -> None:
    weights = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        weights[tiny_folder.name_in_folder(tensor.name)] = torch.from_numpy(values.copy()).to(torch.bfloat16)
    weights["model.embed_tokens.weight"] = weights.pop("lm_head.weight", weights["model.embed_tokens.weight"])
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    tiny_folder.write_json(folder / "config.json", _config(reader))
    types = [gguf.TokenType(kind) for kind in _all(reader, "tokenizer.ggml.token_type")]
    words = Tokenizer(
        [str(text) for text in _all(reader, "tokenizer.ggml.tokens")],
        types,
        [str(merge) for merge in _all(reader, "tokenizer.ggml.merges")],
    )
    tiny_folder.write_tokenizer(folder, words, str(_one(reader, "tokenizer.chat_template")))


def _config(reader: gguf.GGUFReader) -> dict[str, Any]:
    def number(key: str) -> int | float:
        value = _one(reader, f"qwen2.{key}")
        assert isinstance(value, int | float)
        return value

    heads, width = number("attention.head_count"), number("embedding_length")
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": width,
        "intermediate_size": number("feed_forward_length"),
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": number("attention.head_count_kv"),
        "hidden_act": "silu",
        "max_position_embeddings": number("context_length"),
        "rms_norm_eps": number("attention.layer_norm_rms_epsilon"),
        "rope_theta": number("rope.freq_base"),
        "rope_parameters": {"rope_type": "default", "rope_theta": number("rope.freq_base")},
        "tie_word_embeddings": True,
        "vocab_size": len(_all(reader, "tokenizer.ggml.tokens")),
        "dtype": "bfloat16",
    }


def _one(reader: gguf.GGUFReader, key: str) -> object:
    field = reader.get_field(key)
    assert field is not None, key
    return field.contents()


def _all(reader: gguf.GGUFReader, key: str) -> list[Any]:
    values = _one(reader, key)
    assert isinstance(values, list)
    return values
