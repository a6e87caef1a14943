"""Folders of safetensors arrive whole or not at all."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hollow_folder import CONFIG, write_weights
from repository import COMMIT, Repository, serving
from specengine.catalog import Entry, Gguf, Safetensors
from specengine.download import installed_weights
from specengine.errors import EngineError
from specengine.model_folder import read_folder
from specengine.transfer import Patience, PullCancelled, PullProgress
from specengine.weights_download import pull_weights, remove_weights

ENTRY = Entry(gguf=Gguf(file="tiny.gguf"), name="tiny", safetensors=Safetensors(repo="owner/tiny"))
QUICK = Patience(connect=2.0, stall=2.0, tries=2, pause=0.01)
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    source = tmp_path / "source"
    source.mkdir()
    places = {}
    for number, file in enumerate((FIRST, SECOND)):
        write_weights(source / file, {f"model.layers.{number}.mlp.up_proj.weight": [64, 4096]})
        places[f"model.layers.{number}.mlp.up_proj.weight"] = file
    files = {file.name: file.read_bytes() for file in source.iterdir()}
    for name, value in {
        "config.json": CONFIG,
        "tokenizer.json": {"model": {}},
        "tokenizer_config.json": {},
        "model.safetensors.index.json": {"weight_map": places},
    }.items():
        files[name] = json.dumps(value).encode()
    files |= {"README.md": b"words", "pytorch_model.bin": b"pickle", "run_me.py": b"code"}
    with serving(Repository(files)) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def test_a_folder_is_fetched_with_what_the_model_needs_and_nothing_else(repository: Repository, models: Path) -> None:
    seen: list[PullProgress] = []
    folder = pull_weights(ENTRY, models, progress=seen.append, patience=QUICK)
    assert folder == models / "tiny" == installed_weights(ENTRY, models)
    assert {file.name for file in folder.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors.index.json",
        FIRST,
        SECOND,
        "specchat.json",
    }
    assert read_folder(folder).layers == CONFIG["num_hidden_layers"]
    assert json.loads((folder / "specchat.json").read_text())["revision"] == COMMIT
    assert [path.name for path in models.iterdir()] == ["tiny"]
    whole = sum(
        len(content) for name, content in repository.files.items() if name in {f.name for f in folder.iterdir()}
    )
    downloading = [one for one in seen if one.phase == "downloading"]
    assert {one.total for one in downloading} == {whole}
    assert [one.done for one in downloading] == sorted(one.done for one in downloading)


def test_a_broken_pull_offers_nothing_and_is_gone_on_from(repository: Repository, models: Path) -> None:
    repository.cuts[SECOND] = 1000
    with pytest.raises(EngineError, match=r"The safetensors of tiny can't be fetched.*are kept; pull again"):
        pull_weights(ENTRY, models, patience=Patience(connect=2.0, stall=2.0, tries=1, pause=0.01))
    assert installed_weights(ENTRY, models) is None
    repository.asked.clear()
    pull_weights(ENTRY, models, patience=QUICK)
    asked = dict(repository.asked)
    assert FIRST not in asked
    assert asked[SECOND] == "bytes=1000-"
    assert (models / "tiny" / SECOND).read_bytes() == repository.files[SECOND]


def test_a_cancelled_pull_offers_nothing_and_is_gone_on_from(repository: Repository, models: Path) -> None:
    with pytest.raises(PullCancelled):
        pull_weights(ENTRY, models, cancelled=lambda: any(name == SECOND for name, _ in repository.asked))
    assert installed_weights(ENTRY, models) is None
    pull_weights(ENTRY, models, patience=QUICK)
    assert [name for name, _ in repository.asked].count(FIRST) == 1


def test_a_file_that_is_not_what_the_server_lists_is_refused_and_deleted(repository: Repository, models: Path) -> None:
    content = repository.files[FIRST]
    repository.wrong[FIRST] = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(EngineError, match=r"another version|is not that file"):
        pull_weights(ENTRY, models, patience=QUICK)
    assert installed_weights(ENTRY, models) is None
    pull_weights(ENTRY, models, patience=QUICK)


def test_weights_that_changed_since_are_fetched_again(repository: Repository, models: Path) -> None:
    repository.cuts[SECOND] = 10
    with pytest.raises(EngineError):
        pull_weights(ENTRY, models, patience=Patience(connect=2.0, stall=2.0, tries=1, pause=0.01))
    repository.files[FIRST] = repository.files[FIRST][:-1] + b"\x01"
    folder = pull_weights(ENTRY, models, patience=QUICK)
    assert (folder / FIRST).read_bytes() == repository.files[FIRST]


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "weights"])
def test_a_repository_without_what_a_model_needs_is_refused_before_the_weights_are_fetched(
    repository: Repository, models: Path, missing: str
) -> None:
    for name in (FIRST, SECOND) if missing == "weights" else (missing,):
        del repository.files[name]
    with pytest.raises(EngineError, match="no safetensors" if missing == "weights" else f"has no {missing}"):
        pull_weights(ENTRY, models, patience=QUICK)
    assert repository.asked == []


def test_a_repository_that_is_not_there_is_one_sentence(repository: Repository, models: Path) -> None:
    entry = Entry(gguf=Gguf(file="x.gguf"), name="x", safetensors=Safetensors(repo="owner/other"))
    with pytest.raises(EngineError, match="can't be fetched") as refused:
        pull_weights(entry, models, patience=QUICK)
    assert "\n" not in str(refused.value)


def test_without_the_network_only_what_is_here_will_do(repository: Repository, models: Path) -> None:
    with pytest.raises(EngineError, match="network is switched off; run `specchat models pull tiny --engine torch`"):
        pull_weights(ENTRY, models, offline=True)
    pull_weights(ENTRY, models, patience=QUICK)
    assert pull_weights(ENTRY, models, offline=True) == models / "tiny"


def test_a_folder_is_deleted_whole(repository: Repository, models: Path) -> None:
    folder = pull_weights(ENTRY, models, patience=QUICK)
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert remove_weights(ENTRY, models) == size
    assert list(models.iterdir()) == []
    assert remove_weights(ENTRY, models) == 0
