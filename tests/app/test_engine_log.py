"""The engine's log: what it keeps, what it quotes, and where it can't be kept."""

from pathlib import Path

import pytest

from specchat.engine_log import EngineLog


def logged(path: Path, text: str) -> str:
    log = EngineLog(path)
    with log.opened() as file:
        assert file is not None
        file.write(text.encode())
    return log.last_words()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\ntwo\n", "two"),
        ("GGML_ASSERT(n > 0) failed\n#2 in ggml_abort () from lib.so\n", "GGML_ASSERT(n > 0) failed"),
        ("ValueError: no\nmore\n", "ValueError: no"),
        ("two\nAMX is not ready to be used!\n", "two"),
        ("AMX is not ready to be used!\n", ""),
    ],
)
def test_the_most_telling_line_of_the_last_start_is_quoted(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "engine.log"
    logged(path, "GGML_ASSERT(of an earlier start) failed\n")
    assert logged(path, text) == words


def test_nobody_is_quoted_but_the_own_process(tmp_path: Path) -> None:
    """Two windows whose engines die at the same time, and a command that starts meanwhile."""
    path = tmp_path / "engine.log"
    mine, theirs = EngineLog(path), EngineLog(path)
    with mine.opened() as file, theirs.opened() as other:
        assert file is not None and other is not None
        file.write(b"mine\n")
        other.write(b"GGML_ASSERT(theirs) failed\n")
    with EngineLog(path).opened():
        assert mine.last_words() == "mine"
    assert theirs.last_words() == "GGML_ASSERT(theirs) failed"
    assert (mine.path.name, theirs.path.name) == ("engine.log", "engine-2.log")
    mine.close()
    with EngineLog(path).opened() as file:
        assert file is not None and file.name == str(path)


def test_a_full_disk_is_no_reason_not_to_start(tmp_path: Path) -> None:
    full = tmp_path / "engine.log"
    full.symlink_to("/dev/full")
    with EngineLog(full).opened() as file:
        assert file is None
