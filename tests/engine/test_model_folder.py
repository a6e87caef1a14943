"""What a Hugging Face folder says about itself, and how folders are broken."""

import json
import struct
from pathlib import Path

import pytest

from hollow_folder import CONFIG, write_weights
from specengine.errors import EngineError
from specengine.model_folder import is_model_folder, read_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(CONFIG))
    write_weights(made / "model.safetensors", {"model.embed_tokens.weight": [10, 64], "model.norm.weight": [64]})
    return made


def test_sizes_and_kinds_are_read_without_the_weights(folder: Path) -> None:
    found = read_folder(folder)
    assert (found.architecture, found.model_type) == ("LlamaForCausalLM", "llama")
    assert (found.context_length, found.layers, found.kv_heads, found.head_dim) == (4096, 3, 2, 16)
    assert found.kv_bytes_per_token() == 2 * 2 * 3 * 2 * 16
    assert found.size == 2 * (640 + 64)
    assert found.tensors["model.embed_tokens.weight"].shape == (10, 64)
    assert found.tensors["model.embed_tokens.weight"].count == 640
    assert found.quantisation is None
    assert found.layer_types == frozenset()


def test_the_language_model_inside_a_larger_one_is_what_counts(folder: Path) -> None:
    inner = {"num_hidden_layers": 7, "head_dim": 32, "layer_types": ["full_attention", "linear_attention"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "outer", "hidden_size": 64, "text_config": inner}))
    found = read_folder(folder)
    assert (found.layers, found.head_dim) == (7, 32)
    assert found.layer_types == {"full_attention", "linear_attention"}


def test_a_model_of_several_files_is_read_by_its_index(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    places = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    for name, file in places.items():
        write_weights(folder / file, {name: [4, 4]})
    write_weights(folder / "consolidated.safetensors", {"copy": [4, 4]})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert set(read_folder(folder).tensors) == {"a", "b"}
    (folder / "model-2.safetensors").unlink()
    with pytest.raises(EngineError, match=r"incomplete: model-2\.safetensors is missing"):
        read_folder(folder)


@pytest.mark.parametrize("map", [{}, {"a": "../outside.safetensors"}, []])
def test_an_index_that_names_no_files_of_the_folder_is_refused(folder: Path, map: object) -> None:
    write_weights(folder.parent / "outside.safetensors", {"a": [4, 4]})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": map}))
    with pytest.raises(EngineError, match="names no weight files"):
        read_folder(folder)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.5, 0.999])
def test_a_file_cut_short_anywhere_is_refused(folder: Path, share: float) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    with pytest.raises(EngineError, match=r"model\.safetensors .*cut short") as refused:
        read_folder(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"\xff" * 100, struct.pack("<Q", 4) + b"null", struct.pack("<Q", 2**40) + b"{}"])
def test_a_file_that_is_no_safetensors_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(EngineError, match="not a safetensors file"):
        read_folder(folder)


@pytest.mark.parametrize("config", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_config_that_is_no_json_object_is_refused(folder: Path, config: bytes) -> None:
    (folder / "config.json").write_bytes(config)
    with pytest.raises(EngineError, match=r"config\.json is damaged"):
        read_folder(folder)


def test_pickled_weights_are_refused_with_the_reason(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EngineError, match="may run code"):
        read_folder(folder)


def test_what_is_no_model_folder_is_said_to_be_none(tmp_path: Path) -> None:
    assert not is_model_folder(tmp_path)
    with pytest.raises(EngineError, match=r"has no config\.json"):
        read_folder(tmp_path)
    with pytest.raises(EngineError, match="There is no model folder"):
        read_folder(tmp_path / "nowhere")
