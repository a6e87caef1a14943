"""Reads what a GGUF file says about itself, without loading it: is it whole, and what model is it?

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from specengine.errors import EngineError
from specengine.ggml_types import BLOCKS, FILE_TYPES

MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Facts from the metadata and the tensor table; None where the file doesn't say."""

    path: Path
    architecture: str
    name: str | None
    licence: str | None
    parameters: int
    """Weights in all tensors."""
    quantisation: str | None
    """As llama.cpp calls it."""
    context_length: int | None
    block_count: int | None
    embedding_length: int | None
    head_count: int | None
    kv_head_count: int | None
    """The largest of all layers, where they differ."""
    key_length: int | None
    """Numbers in the key of one head."""
    vocabulary_size: int | None
    chat_template: bool
    tensor_count: int
    tensors_end: int
    """Where the last tensor ends, in bytes from the start: the least size of a whole file."""

    @property
    def kv_bytes_per_token(self) -> int | None:
        """Bytes that one token takes in an F16 KV cache."""
        if self.block_count is None or self.kv_head_count is None or self.key_length is None:
            return None
        return 2 * 2 * self.block_count * self.kv_head_count * self.key_length


def read_header(path: Path) -> GgufHeader:
    """Reads and checks the header of a model file.

    Raises:
        EngineError: no such file, not a GGUF file, one of a version that can't be read, or one cut short.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(64)
            _check_kind(path, start)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _parse(path, data)
    except FileNotFoundError:
        raise EngineError(f"There is no file {path}; check the path, or see `specchat models list`.") from None
    except IsADirectoryError:
        raise EngineError(f"{path} is a folder, not a model file; name a .gguf file in it.") from None
    except (struct.error, IndexError, OverflowError):
        raise EngineError(f"{path} is cut short: its header is incomplete; download it again.") from None
    except (UnicodeDecodeError, _Nonsense):
        raise EngineError(f"{path} is damaged: its header makes no sense; download it again.") from None
    except OSError as error:
        raise EngineError(f"{path} can't be read: {error.strerror or error}.") from None
    if size < header.tensors_end:
        missing = header.tensors_end - size
        raise EngineError(
            f"{path} is cut short: {missing:,} of its {header.tensors_end:,} bytes are missing; download it again."
        )
    return header


class _Nonsense(Exception):
    """The bytes can't be a header."""


def _check_kind(path: Path, start: bytes) -> None:
    if start.startswith(b"version https://git-lfs"):
        raise EngineError(f"{path} is a Git LFS pointer, not the model itself; fetch it with `git lfs pull`.")
    if not start.startswith(MAGIC):
        raise EngineError(f"{path} is not a GGUF model file; specchat runs models in the .gguf format.")
    (version,) = struct.unpack_from("<I", start, 4)
    if version > 0xFFFF:
        raise EngineError(f"{path} is a big-endian GGUF file; specchat needs a little-endian one.")
    if version not in (2, 3):
        raise EngineError(f"{path} is a GGUF file of version {version}; specchat reads versions 2 and 3.")


def _parse(path: Path, data: mmap.mmap) -> GgufHeader:
    cursor = _Cursor(data, at=8)
    tensor_count, metadata_count = cursor.number("Q"), cursor.number("Q")
    if max(tensor_count, metadata_count) > len(data):
        raise _Nonsense
    metadata = {cursor.text(): cursor.value(cursor.number("I")) for _ in range(metadata_count)}
    tensors = list(_tensors(cursor, tensor_count))
    ends = [tensor.offset + tensor.size for tensor in tensors]
    alignment = _whole(metadata, "general.alignment") or 32
    data_start = -(-cursor.at // alignment) * alignment
    architecture = str(metadata.get("general.architecture", ""))
    heads = _whole(metadata, f"{architecture}.attention.head_count")
    embedding = _whole(metadata, f"{architecture}.embedding_length")
    return GgufHeader(
        path=path,
        architecture=architecture,
        name=_text(metadata, "general.name"),
        licence=_text(metadata, "general.license"),
        parameters=sum(tensor.weights for tensor in tensors),
        quantisation=FILE_TYPES.get(_whole(metadata, "general.file_type")),
        context_length=_whole(metadata, f"{architecture}.context_length"),
        block_count=_whole(metadata, f"{architecture}.block_count"),
        embedding_length=embedding,
        head_count=heads,
        kv_head_count=_whole(metadata, f"{architecture}.attention.head_count_kv") or heads,
        key_length=_whole(metadata, f"{architecture}.attention.key_length")
        or (embedding // heads if embedding and heads else None),
        vocabulary_size=_length(metadata, "tokenizer.ggml.tokens"),
        chat_template="tokenizer.chat_template" in metadata,
        tensor_count=tensor_count,
        tensors_end=data_start + max(ends) if ends else cursor.at,
    )


@dataclass(frozen=True, slots=True)
class _Array:
    """An array's length, and its items where they are a few numbers; longer ones and texts are passed over."""

    length: int
    items: tuple[float, ...] = ()


Value = float | str | _Array
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_FEW = 4096


class _Cursor:
    """Reads one value after the other; past the end of the file it raises struct.error, IndexError or OverflowError."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data, self.at = data, at

    def number(self, code: str) -> int:
        number = struct.unpack_from(f"<{code}", self.data, self.at)[0]
        self.at += struct.calcsize(f"<{code}")
        return number  # type: ignore[no-any-return]

    def text(self) -> str:
        length = self.number("Q")
        end = self.at + length
        if end > len(self.data):
            raise IndexError
        text = self.data[self.at : end].decode()
        self.at = end
        return text

    def value(self, kind: int) -> Value:
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            return self._array(self.number("I"), self.number("Q"))
        raise _Nonsense

    def _array(self, kind: int, length: int) -> _Array:
        if length > len(self.data):
            raise IndexError
        if kind == _TEXT:
            self._pass_texts(length)
            return _Array(length)
        if kind not in _NUMBERS:
            raise _Nonsense
        code = f"<{length}{_NUMBERS[kind]}"
        items = struct.unpack_from(code, self.data, self.at) if length <= _FEW else ()
        self.at += struct.calcsize(code)
        return _Array(length, items)

    def _pass_texts(self, count: int) -> None:
        at, data, read = self.at, self.data, struct.Struct("<Q").unpack_from
        for _ in range(count):
            at += 8 + read(data, at)[0]
        self.at = at


@dataclass(frozen=True, slots=True)
class _Tensor:
    offset: int
    """Into the tensor data."""
    size: int
    """Bytes; 0 where the type is new to us."""
    weights: int


def _tensors(cursor: _Cursor, count: int) -> Iterator[_Tensor]:
    for _ in range(count):
        cursor.text()
        weights = prod(cursor.number("Q") for _ in range(min(cursor.number("I"), 8)))
        block, size = BLOCKS.get(cursor.number("I"), (1, 0))
        yield _Tensor(cursor.number("Q"), weights // block * size, weights)


def _whole(metadata: Mapping[str, Value], key: str) -> int | None:
    value = metadata.get(key)
    if isinstance(value, _Array):
        return int(max(value.items)) if value.items else None
    return int(value) if isinstance(value, int | float) else None


def _text(metadata: Mapping[str, Value], key: str) -> str | None:
    value = metadata.get(key)
    return value if isinstance(value, str) else None


def _length(metadata: Mapping[str, Value], key: str) -> int | None:
    value = metadata.get(key)
    return value.length if isinstance(value, _Array) else None
