"""What is told of every model, whoever asks."""

import json
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

import tiny
from model_server import model_bytes
from specchat import choice, noise_file, paths
from specchat.model_facts import ModelFacts, about, own_files, survey
from specchat.models_command import models as models_command
from specengine import catalog
from specengine.catalog import Catalog
from specengine.errors import EngineError
from specengine.hardware import Hardware
from specengine.protocol import Loaded, WidthNoise

MACHINE = Hardware(2, 8 * 10**9, 4 * 10**9, 10**11, bandwidth=10e9)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Catalog:
    shipped = tmp_path / "models.toml"
    shipped.write_text(
        'default = "small"\n'
        '[models.small]\nparameters = 0.1\ngguf = { file = "small-Q4_1.gguf" }\n'
        '[models.big]\nparameters = 7\ndraft = "small"\nlicence = "MIT"\ncontext = 4096\n'
        'gguf = { file = "big.Q4_K_M.gguf", size = 4700000000 }\n'
    )
    return catalog.load((), shipped)


def told(models: Catalog, folder: Path) -> dict[str, ModelFacts]:
    return {facts.entry.name: facts for facts in survey(models, folder, MACHINE, folder / "noise.json")}


def test_a_missing_model_is_judged_with_its_draft(models: Catalog, folder: Path) -> None:
    big = told(models, folder)["big"]
    assert (big.state, big.size, big.entry.quantisation) == ("too large", 4_700_000_000, "Q4_K_M")
    assert big.draft and big.draft.name == "small" and big.draft_path is None
    assert big.fit.needed > 4_700_000_000 > (big.fit.available or 0) == 4 * 10**9
    assert big.fit.tokens_per_s == pytest.approx(0.7 * 2 * 10e9 / 4.7e9)


def test_an_installed_model_has_a_path_and_what_was_measured(models: Catalog, folder: Path) -> None:
    path = folder / "small-Q4_1.gguf"
    path.write_bytes(model_bytes())
    runs = Loaded("small", str(path), "llama.cpp", "CPU, 2 threads", 8192, 1000)
    noise_file.remember(folder / "noise.json", runs, False, WidthNoise(0.0, 0.0, True))
    facts = told(models, folder)
    assert (facts["small"].state, facts["small"].path, facts["small"].size) == ("here", path, path.stat().st_size)
    assert facts["small"].noise and facts["small"].noise.noise.identical_text_expected
    assert facts["big"].draft_path == path


def test_an_unfinished_pull_shows_what_is_kept(models: Catalog, folder: Path) -> None:
    (folder / "big.Q4_K_M.gguf.part").write_bytes(b"x" * 1_200_000)
    (folder / "big.Q4_K_M.gguf.part.json").write_text('{"identity": "etag 1"}')
    big = told(models, folder)["big"]
    assert (big.path, big.kept, big.state) == (None, 1_200_000, "1.2 MB here")


def test_files_in_the_folder_are_told_from_their_headers(models: Catalog, folder: Path) -> None:
    own = tiny.make(folder / "mine-F32.gguf")
    facts = told(models, folder)["mine-F32"]
    assert (facts.state, facts.path, facts.name) == ("here", own, str(own))
    assert facts.entry.parameters and facts.entry.quantisation == "F32" and facts.entry.context == 4096


def test_what_is_no_model_is_not_offered_and_what_is_broken_says_why(models: Catalog, folder: Path) -> None:
    for name in (".big.gguf.lock", ".hidden.gguf", "big.gguf.part", "notes.txt", "split-00002-of-00003.gguf"):
        (folder / name).write_bytes(b"")
    (folder / "folder.gguf").mkdir()
    (folder / "split-00001-of-00003.gguf").write_bytes(model_bytes())
    (folder / "empty.gguf").write_bytes(b"")
    assert [path.name for path in own_files(models, folder)] == ["empty.gguf", "split-00001-of-00003.gguf"]
    empty = told(models, folder)["empty"]
    assert (empty.state, empty.path) == ("unusable", None)
    assert empty.trouble.startswith(f"{folder / 'empty.gguf'} ")


def test_folders_of_safetensors_are_told_too(models: Catalog, folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "config.json").write_text('{"architectures": ["Qwen2ForCausalLM"]}')
    (folder / "notes").mkdir()
    assert [path.name for path in own_files(models, folder)] == ["own"]
    assert told(models, folder)["own"].state == "unusable"
    header = json.dumps({"weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "own" / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    own = told(models, folder)["own"]
    assert (own.state, own.path, own.size) == ("here", folder / "own", 8)


def test_a_model_that_is_here_as_safetensors_only_is_here(tmp_path: Path, folder: Path) -> None:
    shipped = tmp_path / "models.toml"
    shipped.write_text(
        'default = "small"\n[models.small]\ngguf = { file = "s.gguf" }\nsafetensors = { repo = "owner/small" }\n'
    )
    models = catalog.load((), shipped)
    entry = models.models["small"]
    assert entry.safetensors
    weights = folder / entry.safetensors.folder
    weights.mkdir(parents=True)
    (weights / "config.json").write_text("{}")
    (weights / "model.safetensors").write_bytes(bytes(100))
    facts = told(models, folder)
    assert list(facts) == ["small"], "the folder is the entry's, not one more model"
    assert (facts["small"].path, facts["small"].weights, facts["small"].size) == (weights, weights, 100)


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.34, "about 0.3"), (1.6, "about 2"), (41.4, "about 41"), (167.2, "about 170"), (13_998.0, "about 14,000")],
)
def test_an_estimated_speed_has_no_more_digits_than_an_estimate_has(rate: float, words: str) -> None:
    assert about(rate) == f"{words} tok/s"


def test_no_folder_is_no_own_file(models: Catalog, tmp_path: Path) -> None:
    assert own_files(models, tmp_path / "nowhere") == []


def test_a_file_in_the_folder_is_found_by_its_name_alone(models: Catalog, folder: Path) -> None:
    own = tiny.make(folder / "mine.gguf")
    assert choice.find("mine", models, folder).path == own
    assert choice.find("mine.gguf", models, folder).path == own
    assert choice.find("Small", models, folder).name == "small"
    with pytest.raises(EngineError, match="no model called 'other'"):
        choice.find("other", models, folder)


def test_the_command_line_lists_the_very_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path))
    paths.models_dir().mkdir(parents=True)
    tiny.make(paths.models_dir() / "mine.gguf")
    (paths.models_dir() / "empty.gguf").write_bytes(b"")
    (paths.models_dir() / ".model.gguf.lock").write_bytes(b"")
    facts = survey(catalog.load(), paths.models_dir(), MACHINE, paths.noise_file())
    rows = json.loads(CliRunner().invoke(models_command, ["list", "--json"]).stdout)["models"]
    assert [(row["name"], row["path"], row["trouble"]) for row in rows] == [
        (one.entry.name, str(one.path) if one.path else None, one.trouble or None) for one in facts
    ]
    lines = CliRunner().invoke(models_command, ["list"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [one.entry.name for one in facts]
    assert next(line for line in lines if line.startswith("empty ")).split()[1:3] == ["?", "unusable"]
