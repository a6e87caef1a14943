"""Which model is loaded, from what was said and what is installed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specchat import choice, paths
from specchat.config import Config
from specengine import catalog
from specengine.catalog import Catalog
from specengine.errors import EngineError
from specengine.protocol import Load

MODELS = """
[models."{name}"]
parameters = {parameters}
context = 4096
{draft}
gguf = {{ file = "{name}.gguf", size = {size} }}
"""


@pytest.fixture
def models(tmp_path: Path) -> Catalog:
    """A small default, a middle one that drafts with it, and one that no machine can hold."""
    shipped = tmp_path / "models.toml"
    entries = [
        MODELS.format(name="small", parameters=0.1, size=4, draft=""),
        MODELS.format(name="middle", parameters=1, size=5, draft='draft = "small"'),
        MODELS.format(name="vast", parameters=900, size=10**15, draft=""),
    ]
    shipped.write_text('default = "small"\n' + "".join(entries))
    return catalog.load((), shipped)


@pytest.fixture
def install(tmp_path: Path) -> Callable[..., Path]:
    def put(**sizes: int) -> Path:
        folder = tmp_path / "models"
        folder.mkdir(exist_ok=True)
        for name, size in sizes.items():
            with (folder / f"{name}.gguf").open("wb") as file:
                file.truncate(size)
        return folder

    return put


def load(models: Catalog, folder: Path, name: str, draft: str | None = None, config: Config | None = None) -> Load:
    return choice.load_of(models.find(name), draft, config or Config(), models, folder, paths.costs_file())


def chosen(models: Catalog, folder: Path, **settings: str) -> str | None:
    entry = choice.chosen(Config(**settings), models, folder)  # type: ignore[arg-type]
    return entry.name if entry else None


def test_nothing_installed_and_nothing_said_is_no_model(models: Catalog, install: Callable[..., Path]) -> None:
    assert chosen(models, install()) is None


def test_the_largest_installed_model_is_taken(models: Catalog, install: Callable[..., Path]) -> None:
    assert chosen(models, install(small=4)) == "small"
    assert chosen(models, install(small=4, middle=5)) == "middle"


def test_a_model_that_is_too_large_for_the_machine_is_not_taken(models: Catalog, install: Callable[..., Path]) -> None:
    folder = install(small=4)
    with (folder / "vast.gguf").open("wb") as file:
        file.truncate(10**12)
    vast = models.models["vast"]
    assert vast.gguf.size == 10**15
    assert chosen(models, folder) == "small"


def test_a_named_model_is_taken_whether_it_is_installed_or_not(models: Catalog, install: Callable[..., Path]) -> None:
    assert chosen(models, install(middle=5), model="small") == "small"
    with pytest.raises(EngineError, match="There is no model called 'smal'"):
        chosen(models, install(), model="smal")


def test_a_model_that_is_not_installed_says_how_to_get_it(models: Catalog, install: Callable[..., Path]) -> None:
    with pytest.raises(EngineError, match=r"^small is not installed; `specchat models pull small` fetches it\.$"):
        load(models, install(), "small")


def test_where_the_network_is_off_that_is_said_too(models: Catalog, install: Callable[..., Path]) -> None:
    with pytest.raises(EngineError, match=r"pull small` fetches it once the network, switched off now, is on\.$"):
        choice.load_of(models.models["small"], None, Config(offline=True), models, install(), Path("costs.json"))


def test_the_catalogues_draft_is_used_where_it_is_installed(models: Catalog, install: Callable[..., Path]) -> None:
    folder = install(small=4, middle=5)
    with_draft = load(models, folder, "middle")
    assert with_draft.draft == str(folder / "small.gguf") and with_draft.draft_name == "small"
    assert load(models, folder, "small").draft is None


def test_a_draft_that_is_not_installed_is_named_without_a_path(models: Catalog, install: Callable[..., Path]) -> None:
    missing = load(models, install(middle=5), "middle")
    assert (missing.draft, missing.draft_name) == (None, "small")


def test_none_means_no_draft(models: Catalog, install: Callable[..., Path]) -> None:
    without = load(models, install(small=4, middle=5), "middle", "none")
    assert (without.draft, without.draft_name) == (None, "")


def test_self_means_the_model_itself_and_nothing_to_fetch(models: Catalog, install: Callable[..., Path]) -> None:
    folder = install(middle=5)
    itself = load(models, folder, "middle", "self")
    assert (itself.draft, itself.draft_name, itself.self_draft, itself.draft_called) == (None, "", True, "self")
    assert choice.missing(models.find("middle"), "self", Config(), models, folder) == ()
    assert choice.without_draft(itself) == load(models, folder, "middle", "none")


def test_another_draft_may_be_named(models: Catalog, install: Callable[..., Path]) -> None:
    folder = install(small=4, middle=5)
    assert load(models, folder, "small", "middle").draft == str(folder / "middle.gguf")
    with pytest.raises(EngineError, match="There is no model called 'nonsense'"):
        load(models, folder, "small", "nonsense")


def test_settings_reach_the_load(models: Catalog, install: Callable[..., Path]) -> None:
    settings = Config(ctx=100, threads=3, gpu_layers=0, exact=True)
    wanted = load(models, install(small=4), "small", config=settings)
    assert (wanted.n_ctx, wanted.threads, wanted.gpu_layers, wanted.exact) == (100, 3, 0, True)
    assert wanted.costs_file == str(paths.costs_file())


def test_a_file_of_the_users_own_is_loaded_by_its_path(models: Catalog, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF" + bytes([3]) + bytes(19))
    wanted = load(models, tmp_path, str(own))
    assert (wanted.model, wanted.name) == (str(own), "")
