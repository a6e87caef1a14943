"""What the command line prints fits the terminal, and stays whole where no terminal is."""

import io

import pytest
from rich.cells import cell_len

from specchat.bench.help import HELP
from specchat.folding import columns, folded
from specchat.help_text import as_drawn
from specchat.table import Column, table

LONG = "passes of different widths disagree by up to 0.12 in a logit; run `specchat models pull smollm2-135m` to see"
PATH = "/home/somebody/.local/share/specchat/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
SHOWN = (Column("name"), Column("licence", spare=2), Column("draft", spare=1), Column("about it", least=12))
ROWS = [
    ("small", "Apache-2.0", "tiny", "answers at once"),
    ("a-large-one", "Qwen Research", "", "takes its time, and then answers well"),
]


@pytest.mark.parametrize("width", [80, 60, 40, 25])
def test_text_is_broken_between_words_and_loses_none(width: int) -> None:
    lines = folded(LONG, width).split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(lines) == LONG


def test_a_command_between_backticks_stays_on_one_line() -> None:
    assert "`specchat models pull smollm2-135m`" in folded(LONG, 40).split("\n")[2]


def test_further_rows_begin_below_what_hangs() -> None:
    lines = folded(f"OK       engine    {LONG}", 60, hanging=19).split("\n")
    assert lines[0].startswith("OK       engine    passes")
    assert all(line.startswith(" " * 19) and line[19] != " " for line in lines[1:])


def test_where_too_little_room_is_left_beside_the_head_the_text_stands_below_it() -> None:
    lines = folded(f"OK       engine    {LONG}", 30, hanging=19).split("\n")
    assert lines[0] == "OK       engine" and lines[1].startswith("    passes")
    assert all(len(line) <= 30 for line in lines)


def test_a_path_is_broken_only_where_it_is_longer_than_a_line_and_then_behind_a_separator() -> None:
    assert folded(f"It lies in {PATH}.", 90).split("\n") == ["It lies in", f"{PATH}."]
    lines = folded(f"It lies in {PATH}.", 50).split("\n")
    assert "".join(lines[1:]) == f"{PATH}."
    assert all(line.endswith(("/", "-", "_", ".")) for line in lines[1:])


def test_wide_letters_take_two_columns() -> None:
    lines = folded("日本語 の テキスト は 幅 が 広い", 12).split("\n")
    assert all(cell_len(line) <= 12 for line in lines) and len(lines) == 3


def test_without_a_terminal_nothing_is_folded() -> None:
    assert columns(io.StringIO()) is None
    assert folded(f"{LONG}\n{PATH}", None) == f"{LONG}\n{PATH}"
    lines = table(SHOWN, ROWS, None)
    assert lines[1] == "a-large-one  Qwen Research        takes its time, and then answers well"
    assert len(lines) == len(ROWS)


def test_a_narrow_table_leaves_out_what_can_be_spared_and_says_so_then_folds() -> None:
    assert table(SHOWN, ROWS, 45) == [
        "small        Apache-2.0     answers at once",
        "a-large-one  Qwen Research  takes its time,",
        "                            and then answers",
        "                            well",
        "",
        "A wider terminal also shows: draft.",
    ]
    narrow = table(SHOWN, ROWS, 30)
    assert narrow[-2:] == ["A wider terminal also shows:", "licence, draft."]
    assert all(len(line) <= 30 for line in narrow)


def test_a_title_is_shortened_rather_than_folded() -> None:
    titles = (Column("ID"), Column("title", least=10, cut=True))
    assert table(titles, [("k3mzq", "Tell me about key-value caches")], 20) == ["k3mzq  Tell me abou…"]


def test_columns_are_as_wide_as_what_stands_in_them_and_empty_ones_take_no_room() -> None:
    numbers = (Column("name"), Column("size", right=True), Column("nothing"))
    assert table(numbers, [("a", "98 MB", ""), (), ("long-name", "1.1 GB", "")], 80, headed=True) == [
        "name         size",
        "a           98 MB",
        "",
        "long-name  1.1 GB",
    ]


def test_lists_in_help_are_folded_below_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [
        "Modes: plain    no speculation at all",
        "       lookup   drafts by prompt lookup, which costs next to nothing,",
        "                and gains most on edits",
    ]
    monkeypatch.setattr("specchat.help_text.columns", lambda stream: 50)
    assert as_drawn(drawn, 80) == drawn
    assert as_drawn(drawn, 50) == [
        "Modes: plain    no speculation at all",
        "       lookup   drafts by prompt lookup, which",
        "                costs next to nothing, and gains",
        "                most on edits",
    ]


def test_the_help_of_the_bench_tells_of_other_engines_beside_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specchat.help_text.columns", lambda stream: 80)
    (lines,) = [part.splitlines()[1:] for part in HELP.split("\n\n") if "\nOthers (--against)" in part]
    title, *rows = as_drawn(lines, 76)
    assert title == "Others (--against):"
    names = [row[:26].strip() for row in rows]
    assert [name for name in names if name] == [
        "llama-cpp-python",
        "transformers",
        "PATH of a llama-server",
        "http://127.0.0.1:8080",
    ]
    assert all(row[26:].strip() and len(row) <= 76 for row in rows)
