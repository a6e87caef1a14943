"""What a Hugging Face model folder says about itself, without loading it: is it whole, which model is it, how large?

Format of the weights: https://github.com/huggingface/safetensors#format (a length, a JSON table, the numbers).
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

from specengine.errors import EngineError

CONFIG: Final = "config.json"
TOKENIZER: Final = "tokenizer.json"
_INDEX: Final = "model.safetensors.index.json"
_LONGEST_HEADER: Final = 100 * 10**6
"""Bytes; the format's own limit."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a safetensors file."""

    file: Path
    dtype: str
    """As the format spells it: "BF16", "F32", "U8", …"""
    shape: tuple[int, ...]
    size: int
    """Bytes in the file."""

    @property
    def count(self) -> int:
        """Numbers in it."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Facts from config.json and the tables of the weight files; None where they don't say."""

    path: Path
    config: Mapping[str, Any]
    """Of the language model alone where the folder holds more (an image encoder, say)."""
    tensors: Mapping[str, Tensor]
    mtime_ns: int
    """When the newest weight file was written, in nanoseconds."""

    @property
    def architecture(self) -> str:
        """The class that the model was made for, "Qwen2ForCausalLM" say; empty if the folder doesn't say."""
        names = self.config.get("architectures")
        return str(names[0]) if isinstance(names, list) and names else ""

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    @property
    def context_length(self) -> int | None:
        return self._whole("max_position_embeddings")

    @property
    def layers(self) -> int | None:
        return self._whole("num_hidden_layers")

    @property
    def kv_heads(self) -> int | None:
        return self._whole("num_key_value_heads") or self._whole("num_attention_heads")

    @property
    def head_dim(self) -> int | None:
        hidden, heads = self._whole("hidden_size"), self._whole("num_attention_heads")
        return self._whole("head_dim") or (hidden // heads if hidden and heads else None)

    @property
    def layer_types(self) -> frozenset[str]:
        """The kinds of its layers; empty where all are alike and the folder doesn't say which."""
        types = self.config.get("layer_types")
        return frozenset(map(str, types)) if isinstance(types, list) else frozenset()

    @property
    def tied(self) -> bool:
        """The output head is the embedding. Where the folder doesn't say so, it is if there is no other."""
        return bool(self.config.get("tie_word_embeddings", "lm_head.weight" not in self.tensors))

    @property
    def size(self) -> int:
        """Bytes of all weights as stored."""
        return sum(tensor.size for tensor in self.tensors.values())

    @property
    def quantisation(self) -> str | None:
        """The method that the weights were quantised with; None for plain weights."""
        described = self.config.get("quantization_config")
        return str(described.get("quant_method", "unknown")) if isinstance(described, dict) else None

    def kv_bytes_per_token(self, bytes_per_number: int = 2) -> int | None:
        """Bytes that one token takes in the KV cache."""
        if self.layers is None or self.kv_heads is None or self.head_dim is None:
            return None
        return 2 * bytes_per_number * self.layers * self.kv_heads * self.head_dim

    def _whole(self, key: str) -> int | None:
        value = self.config.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def is_model_folder(path: Path) -> bool:
    """Whether this is a folder that means to be a model; it may still be incomplete."""
    return path.is_dir() and (path / CONFIG).is_file()


def read_folder(path: Path) -> ModelFolder:
    """Reads and checks what describes the model.

    Raises:
        EngineError: no such folder, something is missing in it, or a file is damaged or cut short.
    """
    if not path.is_dir():
        raise EngineError(f"There is no model folder {path}; check the path, or see `specchat models list`.")
    if not (path / CONFIG).is_file():
        raise EngineError(
            f"{path} is not a model folder: it has no {CONFIG}; name a Hugging Face folder or a .gguf file."
        )
    config = read_json(path / CONFIG)
    text = config.get("text_config")
    described = {**config, **text} if isinstance(text, dict) else config
    files = _weight_files(path)
    tensors = {name: tensor for file in files for name, tensor in _tensors(file)}
    return ModelFolder(path, described, tensors, max(file.stat().st_mtime_ns for file in files))


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object in a model folder.

    Raises:
        EngineError: it can't be read, or is something else.
    """
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}.") from None
    except ValueError:
        raise EngineError(f"{file} is damaged: it is not JSON; download the model again.") from None
    if not isinstance(value, dict):
        raise EngineError(f"{file} is damaged: it holds no JSON object; download the model again.")
    return value


def _weight_files(path: Path) -> list[Path]:
    """The safetensors files that make up the model."""
    index = path / _INDEX
    if index.is_file():
        places = read_json(index).get("weight_map")
        names = sorted({str(name) for name in places.values()}) if isinstance(places, dict) else []
        files = [path / name for name in names if Path(name).name == name]
        if not files:
            raise EngineError(f"{index} is damaged: it names no weight files; download the model again.")
    else:
        files = sorted(path.glob("*.safetensors"))
    for file in files:
        if not file.is_file():
            raise EngineError(f"{path} is incomplete: {file.name} is missing; download the model again.")
    if not files:
        others = any(path.glob("*.bin")) or any(path.glob("*.pt")) or any(path.glob("*.pth"))
        why = "its weights are pickle files, which may run code when opened; " if others else ""
        raise EngineError(f"{path} has no .safetensors files: {why}find a version of the model that has them.")
    return files


def _tensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    """The tensors that the table of `file` names.

    Raises:
        EngineError: the file is damaged or cut short.
    """
    size = file.stat().st_size
    try:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError
            table = json.loads(opened.read(length))
        end = 8 + length
        for name, entry in table.items():
            if name == "__metadata__":
                continue
            first, last = entry["data_offsets"]
            shape = tuple(int(part) for part in entry["shape"])
            end = max(end, 8 + length + last)
            yield name, Tensor(file, str(entry["dtype"]), shape, last - first)
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}.") from None
    except (struct.error, ValueError, KeyError, TypeError, AttributeError):
        raise EngineError(f"{file} is not a safetensors file, or is cut short; download the model again.") from None
    if size < end:
        raise EngineError(
            f"{file} is cut short: {end - size:,} of its {end:,} bytes are missing; download the model again."
        )
