"""What `specchat doctor` says about speculation, from costs that an earlier start has kept, and about full disks."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench_records import tiny_pair
from specchat.doctor import places
from specengine import loading
from specengine.protocol import Load


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tiny_pair(tmp_path_factory.mktemp("models"))


def doctor(home: Path, settings: Mapping[str, str]) -> list[str]:
    """The lines that give advice."""
    ended = subprocess.run(
        (sys.executable, "-c", "from specchat.cli import main; main(['doctor'])"),
        env={**os.environ, "SPECCHAT_HOME": str(home), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return [line for line in ended.stdout.splitlines() if line[9:].startswith("advice")]


def load(home: Path, target: Path, draft: Path | None) -> None:
    request = Load(
        str(target), draft=str(draft) if draft else None, n_ctx=256, costs_file=str(home / "cache" / "costs.json")
    )
    engine = loading.load(request, lambda what, done: None, lambda: False)
    engine.measure_costs(lambda: False)
    engine.close()


def test_it_advises_on_the_pair_that_a_chat_would_load(files: tuple[Path, Path], tmp_path: Path) -> None:
    target, draft = files
    settings = {"SPECCHAT_MODEL": str(target), "SPECCHAT_DRAFT": str(draft)}
    (before,) = doctor(tmp_path, settings)
    assert before == "OK       advice    none yet: what passes of target cost is measured when it is first loaded"
    load(tmp_path, target, None)
    (alone,) = doctor(tmp_path, settings)
    assert alone.startswith("OK       advice    target: ") and "draft (--draft none)" not in alone
    load(tmp_path, target, draft)
    (pair,) = doctor(tmp_path, settings)
    assert "Leave draft out here" in pair or "Keep draft as draft model" in pair
    (without,) = doctor(tmp_path, {**settings, "SPECCHAT_DRAFT": "none"})
    assert without == alone


def test_a_full_disk_is_found_where_files_are_to_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path / "home"))
    assert all(place.hint == "" for place in places())
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage._replace(free=4096))
    assert all("free some space on this disk" in place.hint for place in places())


def test_a_file_is_found_where_their_folder_should_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path / "file"))
    hints = {place.hint for place in places()}
    assert hints == {f"{tmp_path / 'file'} is a file: take it away, or set SPECCHAT_HOME to a folder"}


def test_without_a_model_there_is_nothing_to_advise_on(tmp_path: Path) -> None:
    assert doctor(tmp_path, {}) == []


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    (line,) = doctor(tmp_path, {"SPECCHAT_MODEL": "smollm2-135m"})
    assert "none: smollm2-135m is not installed" in line
