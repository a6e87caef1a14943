"""Where a completion goes, where it ends, and how it gets into a file."""

import os
import stat
from pathlib import Path

import pytest

from specchat.complete import document as documents
from specchat.complete.ending import Ending, Until
from specchat.complete.place import Gap, Place, gap, parsed
from specchat.complete.run import news
from specengine.errors import EngineError


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("app.py:3", Place("app.py", 3)),
        ("app.py:3:14", Place("app.py", 3, 14)),
        (r"C:\code\app.py:3:14", Place(r"C:\code\app.py", 3, 14)),
        (r"C:\code\app.py", Place(r"C:\code\app.py")),
        ("a:1:2:3", Place("a:1", 2, 3)),
        ("-", Place("-")),
        ("-:2:1", Place("-", 2, 1)),
    ],
)
def test_a_place_is_a_file_a_line_and_perhaps_a_column(argument: str, place: Place) -> None:
    assert parsed(argument) == place


@pytest.mark.parametrize(
    ("place", "before"),
    [
        (Place("f", 1), "öne"),
        (Place("f", 1, 1), ""),
        (Place("f", 1, 4), "öne"),
        (Place("f", 2), "öne\r\ntwo"),
        (Place("f", 3, 2), "öne\r\ntwo\nt"),
        (Place("f", 4), "öne\r\ntwo\nthree\n"),
    ],
)
def test_lines_and_columns_count_from_one_and_an_absent_column_is_the_end_of_the_line(
    place: Place, before: str
) -> None:
    found = gap("öne\r\ntwo\nthree\n", place)
    assert found == Gap(len(before), len(before))


@pytest.mark.parametrize(("text", "lines"), [("", "0 lines"), ("a", "1 line"), ("a\n", "1 line"), ("a\nb", "2 lines")])
def test_lines_are_counted_as_editors_do_and_the_place_behind_the_last_line_end_is_one(text: str, lines: str) -> None:
    assert gap("a\n", Place("f", 2)) == Gap(2, 2)
    with pytest.raises(EngineError, match=f"^f has {lines}: there is no line 9"):
        gap(text, Place("f", 9))


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (Place("f", 0), "f has 2 lines: there is no line 0."),
        (Place("f", 3), "f has 2 lines: there is no line 3."),
        (Place("f", 1, 5), "Line 1 of f has 3 characters: there is no column 5."),
        (Place("f", 2, 0), "Line 2 of f has 1 character: there is no column 0."),
        (Place("f"), "Say where: f:LINE, f:LINE:COL, or put <|cursor|> into the text."),
    ],
)
def test_a_place_that_is_not_there_is_one_sentence(place: Place, sentence: str) -> None:
    with pytest.raises(EngineError) as refused:
        gap("one\n2", place)
    assert str(refused.value) == sentence


def test_a_mark_in_the_text_is_the_place_and_makes_way() -> None:
    assert gap("a<|cursor|>b", Place("f")) == Gap(1, 11)
    assert gap("a<|cursor|>b", Place("-")) == Gap(1, 11)
    assert gap("piped", Place("-")) == Gap(5, 5)
    with pytest.raises(EngineError, match="2 times; leave one"):
        gap("<|cursor|><|cursor|>", Place("f"))


def ended(until: Until, before: str, completion: str) -> str:
    """The same however the completion is cut into parts."""
    results = set()
    for size in (1, 2, 3, 7, len(completion) or 1):
        ending = Ending(until, before)
        parts = [ending.push(completion[start : start + size]) for start in range(0, len(completion), size)]
        results.add("".join(parts))
    (result,) = results
    return result


METHOD = "        return self.width\n\n    def area(self):\n        pass\n"


@pytest.mark.parametrize(
    ("until", "before", "completion", "kept"),
    [
        ("end", "", "a\n\n\nb\n", "a\n\n\nb\n"),
        ("line", "x = ", "1\ny = 2\n", "1"),
        ("line", "def f():", "\n    return 1\n", "\n    return 1"),
        ("blank", "", "a = 1\nb = 2\n  \nc = 3", "a = 1\nb = 2"),
        ("blank", "", "\n\na = 1", "\n\na = 1"),
        ("blank", "", "a = 1\n", "a = 1"),
        ("block", "    def width(self):", "\n" + METHOD, "\n        return self.width"),
        ("block", "        ", METHOD.lstrip(), "return self.width"),
        ("block", "", METHOD, "        return self.width"),
        ("block", "", "a = 1\n\nb = 2\n", "a = 1\n\nb = 2"),
        ("block", "    x = ", "1\n    y = 2\nz = 3", "1\n    y = 2"),
        ("block", "if (x) {", "\n\tfoo();\n}\nbar();", "\n\tfoo();\n}"),
        ("block", "x = [", "\n    1,\n]\ny = 2", "\n    1,\n]"),
        ("block", "x = f(", "a, b", "a, b"),
    ],
)
def test_a_completion_ends_where_it_was_asked_to(until: Until, before: str, completion: str, kept: str) -> None:
    assert ended(until, before, completion) == kept


def test_nothing_is_passed_on_behind_the_end() -> None:
    ending = Ending("line", "")
    assert ending.push("one\ntwo") == "one" and ending.reached
    assert ending.push("more") == ""


def write(path: Path, data: bytes, place: Place, completion: str) -> bytes:
    path.write_bytes(data)
    document = documents.read(str(path))
    documents.check_writable(document)
    documents.write(document, document.filled(gap(document.text, place), completion))
    return path.read_bytes()


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (b"one\ntwo", b"oneX\nY\ntwo"),
        (b"one\r\ntwo\r\n", b"oneX\r\nY\r\ntwo\r\n"),
        (b"one", b"oneX\nY"),
        (b"\xef\xbb\xbf\xc3\xb6ne\n", b"\xef\xbb\xbf\xc3\xb6neX\nY\n"),
        (b"one\xff\nt\xfe", b"one\xffX\nY\nt\xfe"),
        ("\ufefföne\r\n".encode("utf-16-le"), "\ufefföneX\r\nY\r\n".encode("utf-16-le")),
        ("\ufefföne\r\n".encode("utf-16-be"), "\ufefföneX\r\nY\r\n".encode("utf-16-be")),
    ],
)
def test_every_other_byte_stays_as_it_was(tmp_path: Path, data: bytes, written: bytes) -> None:
    assert write(tmp_path / "file", data, Place("f", 1), "X\nY") == written


def test_a_mark_is_replaced_by_the_completion(tmp_path: Path) -> None:
    assert write(tmp_path / "file", b"a<|cursor|>b", Place("f"), "-") == b"a-b"


def test_characters_that_would_mix_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="is not valid UTF-8"):
        write(tmp_path / "file", b"caf\xe9", Place("f", 1), "é")
    assert (tmp_path / "file").read_bytes() == b"caf\xe9"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_and_symbolic_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.sh", tmp_path / "link.sh"
    link.symlink_to(real)
    real.write_bytes(b"")
    real.chmod(0o751)
    assert write(link, b"one\n", Place("f", 1), "X") == b"oneX\n"
    assert link.is_symlink() and real.read_bytes() == b"oneX\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o751
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.sh", "real.sh"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    document = documents.read(str(path))
    path.write_bytes(b"changed")
    with pytest.raises(EngineError, match="changed meanwhile, so it was left alone"):
        documents.write(document, document.filled(Gap(3, 3), "X"))
    assert path.read_bytes() == b"changed"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(b"a\0b", "is not a text file"), (b"\xff\xfea", "is not a text file")],
)
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes, sentence: str) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(EngineError, match=sentence):
        documents.read(str(tmp_path / "file"))


def test_a_model_reads_newlines_and_replacement_characters(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one\r\ntw\xff\rthree")
    assert documents.read(str(tmp_path / "file")).readable(0) == "one\ntw\ufffd\nthree"


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_file_that_can_not_be_read_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError) as refused:
        documents.read(str(tmp_path / name))
    assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize(
    ("text", "apply", "interrupted", "said"),
    [
        ("one\ntwo", True, False, "app.py:3: 2 lines written."),
        ("one", True, False, "app.py:3: 1 line written."),
        ("one", False, False, ""),
        ("", False, False, "The model has nothing to add there."),
        ("", True, False, "The model has nothing to add there."),
        ("", True, True, "Interrupted: app.py was left as it was."),
        ("one", True, True, "Interrupted: app.py was left as it was."),
        ("", False, True, ""),
    ],
)
def test_what_is_said_of_a_completion_is_true_also_where_it_was_interrupted(
    text: str, apply: bool, interrupted: bool, said: str
) -> None:
    assert news(Place("app.py", 3), text, apply, interrupted) == said
