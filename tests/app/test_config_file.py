"""Saving settings into config.toml: what the user wrote there stays."""

from pathlib import Path

import pytest

from specchat import config, config_file
from specchat.config import Config
from specengine.errors import EngineError

MINE = """# my settings
temperature = 0.2  # calm

stop = [
  "END",
]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


def test_a_first_save_makes_the_file(file: Path) -> None:
    config_file.save(file, {"temperature": 0.5, "ctx": 4096, "gamma": None, "lookup": False, "system": "Be\nbrief."})
    assert config.from_file(file) == Config(temperature=0.5, ctx=4096, lookup=False, system="Be\nbrief.")


def test_comments_and_other_settings_stay(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(MINE)
    config_file.save(file, {"temperature": 1.5, "top_k": 40})
    assert file.read_text() == MINE.replace("0.2  # calm", "1.5  # calm") + "top_k = 40\n"
    config_file.save(file, {"temperature": None, "top_k": None, "seed": None})
    assert config.from_file(file) == Config(stop=("END",))
    assert file.read_text().startswith("# my settings\n")


def test_text_of_any_kind_comes_back_as_it_was(file: Path) -> None:
    for text in ('"""', 'it\'s \\ "quoted"\nand\t\x01 long', "\nlines\n\n", "ünï 🙂", "''' \"\"\"\n\\"):
        config_file.save(file, {"system": text})
        assert config.from_file(file).system == text


def test_what_is_out_of_range_is_not_saved(file: Path) -> None:
    file.parent.mkdir()
    file.write_text(MINE)
    with pytest.raises(EngineError, match=r"Nothing was saved: temperature is 200\.0; it must lie between 0 and 100\."):
        config_file.save(file, {"temperature": 200.0, "top_k": 1})
    assert file.read_text() == MINE


def test_a_file_that_is_wrong_already_is_not_touched(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("temprature = 1\n")
    with pytest.raises(EngineError, match="line 1: there is no setting called temprature; did you mean temperature"):
        config_file.save(file, {"top_k": 1})
    assert file.read_text() == "temprature = 1\n"


def test_where_nothing_can_be_written_the_sentence_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file, not a folder")
    with pytest.raises(EngineError, match=r"config\.toml can't be"):
        config_file.save(tmp_path / "config" / "config.toml", {"top_k": 1})


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    real = tmp_path / "dotfiles.toml"
    real.write_text(MINE)
    file.symlink_to(real)
    config_file.save(file, {"top_k": 1})
    assert file.is_symlink() and "top_k = 1" in real.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]
