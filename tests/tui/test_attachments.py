"""Files attached to a prompt, without a terminal."""

from pathlib import Path

import pytest

from specchat.tui import attachments
from specengine.errors import EngineError


def test_a_file_is_read_as_a_paste_would_be(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\x1b[31m\n")
    content = attachments.read(path, "a.txt")
    assert (content.text, content.complaint) == ("one\ntwo[31m\n", None)
    assert (content.file.path, content.file.name, content.file.size_in_words) == (path, "a.txt", "2 lines")


def test_bytes_that_are_no_utf8_are_shown_and_complained_of(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    content = attachments.read(tmp_path / "latin.txt", "latin.txt")
    assert content.text == "caf\ufffd"
    assert content.complaint and "not valid UTF-8" in content.complaint


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent", "absent is not there (any more); take its chip out or attach another file."),
        ("folder", "folder is a folder; attach the files in it that matter."),
        ("binary", "binary is not a text file, so it can't be attached."),
        ("large", "large has 20 MB, more than any context holds; attach a part."),
    ],
)
def test_what_can_not_be_attached_is_one_sentence(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(EngineError) as refused:
        attachments.read(tmp_path / name, name)
    assert str(refused.value) == sentence


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert attachments.read(tmp_path / "empty", "empty").file.size_in_words == "0 lines"
