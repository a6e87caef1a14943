"""Files that a prompt may attach."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from specchat.tui import files
from specchat.tui.files import Files, listed, spelled_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (
        "app/main.py",
        "app/deep/er/view.py",
        "README.md",
        "node_modules/x/index.js",
        ".hidden/key",
        "a b.txt",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n")
    (tmp_path / "outside.txt").write_text("secret\n")
    return root


def links(folder: Path) -> None:
    try:
        (folder / "out").symlink_to(folder.parent)
        (folder / "out.txt").symlink_to(folder.parent / "outside.txt")
        (folder / "in.md").symlink_to(folder / "README.md")
    except OSError:
        pytest.skip("no symbolic links here")


def test_files_below_the_folder_are_found_by_letters_of_their_path(folder: Path) -> None:
    here = Files(folder)
    assert here.matching("view") == ["app/deep/er/view.py"]
    assert here.matching("apmain") == ["app/main.py"]
    assert here.path("app/main.py") == folder / "app/main.py"


def test_made_and_hidden_folders_are_left_out(folder: Path) -> None:
    assert sorted(listed(folder)) == ["README.md", "a b.txt", "app/deep/er/view.py", "app/main.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_in_a_repository_what_git_ignores_is_left_out_and_what_is_gone(folder: Path) -> None:
    (folder / ".gitignore").write_text("*.md\n/app/deep/\n")
    (folder / "gone.py").write_text("")
    for arguments in (["init", "-q"], ["add", "gone.py", "app/main.py"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)
    (folder / "gone.py").unlink()
    found = Files(folder).matching("")
    assert sorted(found) == [".gitignore", ".hidden/key", "a b.txt", "app/main.py", "node_modules/x/index.js"]
    assert Files(folder / "app").matching("") == ["main.py"]


def test_nothing_outside_is_followed_by_accident(folder: Path) -> None:
    links(folder)
    found = Files(folder).matching("")
    assert "in.md" in found and not [path for path in found if path.startswith("out")]


def test_a_path_that_was_spelled_out_leads_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Files(folder)
    assert here.matching(f"{folder.parent}/out") == [f"{folder.parent}/outside.txt"]
    assert here.matching("../outs") == ["../outside.txt"]
    assert here.matching("./ap") == ["./app/"]
    assert here.matching("./app/") == ["./app/deep/", "./app/main.py"]
    assert here.matching("./.h") == ["./.hidden/"]
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    assert here.matching("~/READ") == ["~/README.md"]
    assert here.path("~/README.md") == folder / "README.md"
    assert here.matching("/no/such/folder/") == []


@pytest.mark.parametrize("typed", ["/etc", "~", "~/x", "./x", "..", "../x", "C:\\x", "C:/x"])
def test_a_path_by_itself_is_told_from_letters_of_one(typed: str) -> None:
    assert spelled_out(typed) and not spelled_out("x/y.py")


def test_a_listing_is_bounded_and_takes_the_nearest_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 3)
    assert list(listed(folder)) == ["README.md", "a b.txt", "app/main.py"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions don't hold for this user")
def test_a_folder_that_can_not_be_read_is_passed_over(folder: Path) -> None:
    (folder / "app").chmod(0)
    try:
        assert list(listed(folder)) == ["README.md", "a b.txt"]
    finally:
        (folder / "app").chmod(0o700)
