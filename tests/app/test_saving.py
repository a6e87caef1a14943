"""Saving code into a file."""

from pathlib import Path

import pytest

from specchat.saving import save, suggested_name
from specengine.errors import EngineError


@pytest.mark.parametrize(
    ("language", "name"),
    [("python", "code.py"), ("js", "code.js"), ("bash", "code.sh"), ("", "code.txt"), ("no such thing", "code.txt")],
)
def test_the_name_has_the_ending_of_the_language(language: str, name: str, tmp_path: Path) -> None:
    assert suggested_name(language, tmp_path) == name


def test_the_name_is_a_free_one(tmp_path: Path) -> None:
    for name in ("code.py", "code-2.py"):
        (tmp_path / name).touch()
    assert suggested_name("python", tmp_path) == "code-3.py"


def test_a_file_that_is_there_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    save(path, "x = 'é'\r\n")
    assert path.read_bytes() == "x = 'é'\r\n".encode()
    path.chmod(0o640)
    with pytest.raises(FileExistsError):
        save(path, "y")
    assert path.read_bytes() == "x = 'é'\r\n".encode()
    save(path, "y", replace=True)
    assert path.read_text() == "y" and path.stat().st_mode & 0o777 == 0o640
    assert [found.name for found in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.parametrize("name", ["no/such/folder/a.py", "folder"])
def test_what_can_not_be_written_is_told_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises((EngineError, FileExistsError)) as told:
        save(tmp_path / name, "x", replace=name == "folder")
    assert "\n" not in str(told.value)
