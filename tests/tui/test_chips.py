"""Chips, without a terminal."""

from pathlib import Path

from specchat.tui import chips
from specchat.tui.attachments import Attachment
from specchat.tui.chips import file_label, pasted_label

A = Attachment(Path("/code/my app.py"), "my app.py", 3, 0)
LABEL = pasted_label(1, "one\n" * 9)


def test_a_chip_says_how_much_it_stands_for() -> None:
    shown = [pasted_label(1, "a\nb\nc\n"), pasted_label(12, "x" * 1234), file_label(A)]
    assert [label.replace("\xa0", " ") for label in shown] == [
        "[Pasted #1: 3 lines]",
        "[Pasted #12: 1,234 characters]",
        "[@my app.py: 3 lines]",
    ]


def test_the_words_of_a_chip_typed_by_hand_are_not_that_chip() -> None:
    typed = LABEL.replace("\xa0", " ")
    assert chips.spelled_out(f"{typed} {LABEL}", {LABEL: "text"}) == f"{typed} text"


def test_chips_expand_once_and_only_if_they_are_known() -> None:
    other, unknown = pasted_label(2, "two\n" * 9), pasted_label(3, "x" * 900)
    known = {LABEL: f"see {other}", other: "two"}
    assert chips.spelled_out(f"{LABEL} and {unknown}", known) == f"see {other} and {unknown}"


def test_a_label_that_begins_like_another_is_told_apart() -> None:
    files = [Attachment(Path(f"/{name}"), name, 1, 0) for name in ("a", "a: 1 line] b")]
    known = {file_label(file): file for file in files}
    assert [known[label] for label in chips.used("".join(known), known)] == files


def test_a_place_is_inside_a_chip_only_between_its_ends() -> None:
    line = f"a{LABEL}b"
    assert chips.inside(line, 1, {LABEL: ""}) is None
    assert chips.inside(line, 2, {LABEL: ""}) == (1, 1 + len(LABEL))
    assert chips.inside(line, 1 + len(LABEL), {LABEL: ""}) is None
    assert chips.inside(line, 2, {}) is None


def test_the_chip_behind_which_the_cursor_stands_is_meant_before_the_next_one() -> None:
    other = pasted_label(2, "two\n" * 9)
    known = {LABEL: "", other: ""}
    assert chips.touching(LABEL + other, len(LABEL), known) == (0, len(LABEL))
    assert chips.touching(LABEL + other, 0, known) == (0, len(LABEL))
    assert chips.touching("a b", 1, known) is None


def test_files_stand_in_fences_above_the_words_that_name_them() -> None:
    text = f"Compare {file_label(A)} with {LABEL}"
    prompt = chips.prompt_of(text, {file_label(A): A, LABEL: "the paste"}, {A.path: "x = 1\n"})
    assert prompt == "my app.py:\n```\nx = 1\n```\n\nCompare my app.py with the paste"


def test_a_file_named_twice_is_read_once() -> None:
    prompt = chips.prompt_of(f"{file_label(A)} {file_label(A)}", {file_label(A): A}, {A.path: "x"})
    assert prompt == "my app.py:\n```\nx\n```\n\nmy app.py my app.py"


def test_without_files_the_words_stay_exactly_as_they_are() -> None:
    assert chips.prompt_of("\n a \n", {}, {}) == "\n a \n"
