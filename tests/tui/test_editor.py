"""The user's editor on the prompt, without a terminal."""

import os
import sys
from pathlib import Path

import pytest

from specchat.tui import editor
from specchat.tui.attachments import Attachment
from specchat.tui.chips import file_label, pasted_label, spelled_out
from specengine.errors import EngineError

ONE, TWO = "".join(f"one {n}\n" for n in range(20)), "".join(f"two {n}\n" for n in range(20))
A, B = pasted_label(1, ONE), pasted_label(2, TWO)
FILE = Attachment(Path("/a.py"), "a.py", 3, 0)
CHIPS: dict[str, str | Attachment] = {A: ONE, B: TWO, file_label(FILE): FILE}


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"VISUAL": f"{sys.executable} -i", "EDITOR": "other"}, [sys.executable, "-i"]),
        ({"VISUAL": " ", "EDITOR": sys.executable}, [sys.executable]),
    ],
)
def test_visual_comes_before_editor_and_may_have_arguments(environment: dict[str, str], words: list[str]) -> None:
    assert editor.command(environment) == words


@pytest.mark.parametrize("named", ["no-such-editor-anywhere --wait", "'unclosed"])
def test_an_editor_that_is_not_there_is_one_sentence(named: str) -> None:
    with pytest.raises(EngineError, match="is not there: set VISUAL or EDITOR"):
        editor.command({"EDITOR": named})


def test_no_editor_at_all_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="There is no editor: set VISUAL or EDITOR"):
        editor.command({})


def script(folder: Path, program: str) -> list[str]:
    path = folder / "editor.py"
    path.write_text(f"import sys; from pathlib import Path; file = Path(sys.argv[1])\n{program}\n")
    return [sys.executable, str(path)]


def test_what_was_written_comes_back_without_the_line_end_that_editors_add(tmp_path: Path) -> None:
    command = script(tmp_path, "file.write_text(file.read_text() + ' more\\n')")
    assert editor.edited("a\nb", command) == "a\nb more"
    assert editor.edited("a\n", script(tmp_path, "pass")) == "a\n"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_nobody_else_can_read_what_is_edited_and_nothing_stays_behind(tmp_path: Path) -> None:
    program = "import os; Path(sys.argv[1]).write_text(f'{file} {os.stat(file.parent).st_mode & 0o777:o}')"
    path, mode = editor.edited("secret", script(tmp_path, program)).split()
    assert mode == "700" and not Path(path).exists()


def test_an_editor_that_fails_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="ended with exit status 3, so the prompt stays as it was"):
        editor.edited("a", script(tmp_path, "file.write_text('b'); sys.exit(3)"))


def closed(text: str, written: str) -> str:
    """The parts, those of changed chips in angle brackets."""
    parts = editor.closed(written, text, CHIPS)
    return "".join(part if isinstance(part, str) else _shown(*part) for part in parts)


def _shown(label: str, text: str) -> str:
    return label if CHIPS[label] == text else f"<{text}>"


TEXT = f"compare {A} with {B} please"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda written: written, TEXT),
        (lambda written: written.replace("compare", "Compare:"), f"Compare: {A} with {B} please"),
        (lambda written: written.replace("one 7", "ONE"), f"compare <{ONE.replace('one 7', 'ONE')}> with {B} please"),
        (lambda written: written.replace("two 7", "TWO"), f"compare {A} with <{TWO.replace('two 7', 'TWO')}> please"),
        (lambda written: written.replace(ONE, ""), f"compare <> with {B} please".replace("<>", "")),
        (lambda written: "all new", "<all new>"),
    ],
)
def test_pastes_become_chips_again_and_changed_ones_stay_apart_from_the_words(change: object, expected: str) -> None:
    assert callable(change)
    assert closed(TEXT, change(spelled_out(TEXT, CHIPS))) == expected


def test_files_stay_chips_in_the_editor() -> None:
    text = f"{file_label(FILE)} {A}"
    assert spelled_out(text, CHIPS) == f"{file_label(FILE)} {ONE}"
    assert closed(text, spelled_out(text, CHIPS)) == text
