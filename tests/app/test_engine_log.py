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


def test_a_full_disk_is_no_reason_not_to_start(tmp_path: Path) -> None:
    full = tmp_path / "engine.log"
    full.symlink_to("/dev/full")
    with EngineLog(full).opened() as file:
        assert file is None
