"""What a model file says about itself, and how broken ones are told."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

import tiny
from specengine import ggml_types
from specengine.errors import EngineError
from specengine.gguf_header import read_header


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small file with one value of every kind, written by llama.cpp's own library."""
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name("Tïny")
    writer.add_license("mit")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_context_length(4096)
    writer.add_block_count(3)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_token_list(["a", "b", "é", ""])
    writer.add_token_scores([0.0, 1.0, 2.0, 3.0])
    writer.add_chat_template("{{ messages }}")
    writer.add_bool("test.flag", True)
    writer.add_float64("test.float", 0.5)
    writer.add_int16("test.small", -3)
    writer.add_uint64("test.large", 2**60)
    writer.add_tensor("first", np.zeros((5, 64), np.float32))
    writer.add_tensor("second", np.zeros((2, 144), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_K)
    writer.add_tensor("last", np.zeros(7, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_the_header_tells_architecture_sizes_and_template(model: Path) -> None:
    header = read_header(model)
    assert (header.architecture, header.name, header.context_length) == ("qwen2", "Tïny", 4096)
    assert (header.block_count, header.embedding_length, header.head_count, header.kv_head_count) == (3, 64, 4, 2)
    assert (header.key_length, header.vocabulary_size, header.chat_template) == (16, 4, True)
    assert (header.licence, header.quantisation) == ("mit", "Q4_K_M")
    assert (header.tensor_count, header.parameters) == (3, 5 * 64 + 2 * 256 + 7)
    assert header.kv_bytes_per_token == 2 * 2 * 3 * 2 * 16


def test_file_types_are_called_as_llama_cpp_calls_them() -> None:
    for number, name in ggml_types.FILE_TYPES.items():
        assert number is not None and gguf.LlamaFileType(number).name in (
            f"MOSTLY_{name}",
            f"ALL_{name}",
            f"MOSTLY_{name}_MOE",
        )


def test_the_last_tensor_ends_with_the_file(model: Path) -> None:
    """The library pads the last tensor to the alignment, 32 bytes."""
    assert 0 <= model.stat().st_size - read_header(model).tensors_end < 32


def test_a_file_cut_anywhere_is_told_to_be_cut_short(model: Path) -> None:
    whole, end = model.read_bytes(), read_header(model).tensors_end
    for length in [*range(24, end - 1, 7), end - 1]:
        model.write_bytes(whole[:length])
        with pytest.raises(EngineError, match=r"model\.gguf is cut short: .*; download it again\."):
            read_header(model)
    model.write_bytes(whole[:end])
    assert read_header(model).tensors_end == end


def test_what_is_missing_is_told_in_bytes(model: Path) -> None:
    end = read_header(model).tensors_end
    os.truncate(model, end - 5)
    with pytest.raises(EngineError, match=rf"5 of its {end:,} bytes are missing"):
        read_header(model)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a GGUF model file"),
        (b"PK\x03\x04 a zip archive", "is not a GGUF model file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
        (b"GGUF", "is cut short"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "of version 1; specchat reads versions 2 and 3"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "of version 9"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "is a big-endian GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0), "is damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<I", 99), "is damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2) + b"\xff\xff" + bytes(8), "is damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63) + bytes(40), "is cut short"),
    ],
)
def test_what_is_no_model_is_told_in_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(EngineError, match=words) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_random_damage_to_the_header_is_an_engine_error_or_nothing(model: Path) -> None:
    whole, rng = model.read_bytes(), np.random.default_rng(0)
    outcomes = set()
    for _ in range(400):
        damaged = bytearray(whole)
        for at in rng.integers(8, 600, 3):
            damaged[at] = rng.integers(256)
        model.write_bytes(damaged)
        try:
            read_header(model)
            outcomes.add("read")
        except EngineError:
            outcomes.add("told")
    assert outcomes == {"read", "told"}


def test_a_folder_and_nothing_at_all_are_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="is a folder, not a model file"):
        read_header(tmp_path)
    with pytest.raises(EngineError, match=r"There is no file .*gone\.gguf"):
        read_header(tmp_path / "gone.gguf")


def test_the_block_sizes_are_llama_cpps() -> None:
    for kind, (weights, size) in gguf.GGML_QUANT_SIZES.items():
        if kind.name != "Q8_1" and kind.value in ggml_types.BLOCKS:  # the library counts Q8_1's sums as F32
            assert ggml_types.BLOCKS[kind.value] == (weights, size), kind.name


@pytest.mark.real
@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "gemma-3-270m"])
def test_real_files_end_where_their_header_says(real_model: Callable[[str], Path], name: str) -> None:
    path = real_model(name)
    header = read_header(path)
    assert header.tensors_end == path.stat().st_size
    assert header.chat_template == (name != "gemma-3-270m")


def test_a_model_without_attention_has_no_kv_cache(tmp_path: Path) -> None:
    assert read_header(tiny.make_recurrent(tmp_path / "mamba.gguf")).kv_bytes_per_token is None
    assert read_header(tiny.make(tmp_path / "llama.gguf")).kv_bytes_per_token
