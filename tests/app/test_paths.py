"""Where files belong."""

import stat
from pathlib import Path

import pytest

from specchat import paths
from specengine import catalog
from specengine.errors import EngineError


def test_specchat_home_moves_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path))
    for place in (paths.config_dir, paths.data_dir, paths.models_dir, paths.state_dir, paths.cache_dir, paths.log_file):
        assert place().is_relative_to(tmp_path)


def test_specchat_models_moves_the_models_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = paths.data_dir()
    monkeypatch.setenv("SPECCHAT_MODELS", str(tmp_path))
    assert paths.models_dir() == tmp_path
    assert paths.data_dir() == before


def test_without_variables_files_lie_where_the_system_keeps_them(isolated: Path) -> None:
    for place in (paths.config_dir, paths.data_dir, paths.state_dir, paths.cache_dir):
        assert place().is_relative_to(isolated) and "specchat" in place().name


def test_a_named_overlay_counts_even_if_it_is_missing_and_the_users_own_lies_on_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path))
    monkeypatch.setenv("SPECCHAT_MODELS_TOML", str(tmp_path / "extra.toml"))
    assert paths.models_overlays() == (tmp_path / "extra.toml",)
    with pytest.raises(EngineError, match=r"extra\.toml can't be read"):
        catalog.load(paths.models_overlays())
    own = paths.ensure(paths.config_dir()) / "models.toml"
    own.touch()
    assert paths.models_overlays() == (tmp_path / "extra.toml", own)


def test_folders_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    made = paths.ensure(tmp_path / "a" / "b")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
