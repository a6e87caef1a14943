"""Markdown in rows of text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.tui.markdown import laid_out, parsed
from specchat.tui.wrapping import breaks, cells


def rows(source: str, width: int = 40) -> list[str]:
    """What is shown, block by block with a blank row between them."""
    shown: list[str] = []
    for block in parsed(source):
        shown += [""] * bool(shown)
        shown += [row.content.plain.rstrip() for row in laid_out(block.lines, width)]
    return shown


def styles(source: str) -> dict[str, str]:
    """The style of each part that has one."""
    found = {}
    for block in parsed(source):
        for row in laid_out(block.lines, 80):
            for span in row.content.spans:
                if str(span.style).strip():
                    found[row.content.plain[span.start : span.end]] = " ".join(str(span.style).split())
    return found


def test_paragraphs_wrap_at_words_and_break_where_two_blanks_say_so() -> None:
    assert rows("one two three\nfour  \nfive", 10) == ["one two", "three four", "five"]


def test_emphasis_code_and_links_have_styles_that_add_up() -> None:
    found = styles("a **b *c* `d`** ~~e~~ f")
    assert found == {"b ": "bold", "c": "bold italic", " ": "bold", "d": "bold $text-accent on $surface", "e": "strike"}


def test_headings_stand_out_without_their_marks() -> None:
    assert rows("# One\n## Two\n### Three `x`") == ["One", "", "Two", "", "Three x"]
    assert styles("## Two")["Two"] == "bold $text-primary"


def test_lists_keep_their_numbers_nesting_and_indentation() -> None:
    source = "9. nine and more words than fit\n10. ten\n    - a\n    - b\n11. eleven"
    assert rows(source, 24) == [
        " 9. nine and more words",
        "    than fit",
        "10. ten",
        "    • a",
        "    • b",
        "11. eleven",
    ]
    assert rows("- a\n\n- b\n\n  c") == ["• a", "", "• b", "", "  c"]
    assert rows("-") == ["•"]


def test_quotes_are_marked_on_every_row() -> None:
    assert rows("> one two three\n>\n> - four", 10) == ["▌ one two", "▌ three", "▌", "▌ • four"]


def test_tables_are_aligned_and_as_wide_as_they_need() -> None:
    source = "| a | bee | c |\n|---|:-:|--:|\n| 1 | 日 | 3 |\n| four | `x` | 55 |"
    assert rows(source) == ["a    │ bee │  c", "─────┼─────┼───", "1    │ 日  │  3", "four │  x  │ 55"]


def test_a_table_that_is_too_wide_wraps_its_widest_cells_and_keeps_narrow_ones() -> None:
    found = rows(f"| id | text |\n|---|---|\n| 1 | {'word ' * 12} |", 24)
    assert max(map(cells, found)) <= 24
    assert found[2:] == ["1  │ word word word word"] + ["   │ word word word word"] * 2


@pytest.mark.parametrize("html", ["<b>this</b>", "<div>\nkept\n</div>", "<!-- note -->"])
def test_html_is_shown_as_it_was_written(html: str) -> None:
    assert " ".join(rows(html)) == html.replace("\n", " ")


def test_rules_code_and_pictures_are_there() -> None:
    assert rows("***\n\n    x = 1\n    \ty\n\n![a cat](cat.png)", 20) == [
        "─" * 20, "", "  x = 1", "          y", "", "🖼 a cat",
    ]  # fmt: skip


def test_a_link_says_where_it_goes_when_it_is_clicked() -> None:
    (block,) = parsed("see [it's](https://a.b/'c')")
    spans = [span.style for row in laid_out(block.lines, 40) for span in row.content.spans]
    assert any(getattr(style, "meta", {}).get("@click") == "link(\"https://a.b/'c'\")" for style in spans)


def test_blocks_know_where_they_start() -> None:
    assert [block.source_line for block in parsed("# a\n\nb\nc\n\n- d\n  - e\n\nf")] == [0, 2, 5, 8]


WORDS = st.lists(st.sampled_from(["a", "bb", "long-word", "日本語", "🙂", " ", "  ", "\t", "x" * 30]), max_size=30)


@settings(deadline=None, derandomize=True)
@given(WORDS, st.integers(2, 20))
def test_wrapping_loses_nothing_and_no_row_is_too_wide(words: list[str], width: int) -> None:
    text = " ".join(words)
    ends = breaks(text, width)
    parts = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert "".join(parts) == text
    assert all(cells(part.rstrip(" ")) <= max(width, 8) for part in parts)


@settings(deadline=None, derandomize=True)
@given(WORDS, st.integers(2, 20), st.data())
def test_a_text_that_grows_wraps_as_it_would_have_at_once(words: list[str], width: int, data: st.DataObject) -> None:
    text = " ".join(words)
    cut = data.draw(st.integers(0, len(text)))
    first = breaks(text[:cut], width)
    start = first[-2] if len(first) > 1 else 0
    assert first[:-1] + breaks(text, width, start) == breaks(text, width)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.text("ab *_`[]()#>-|\n\t1.<~", max_size=80), st.integers(8, 60))
def test_any_text_can_be_laid_out(source: str, width: int) -> None:
    for block in parsed(source):
        for row in laid_out(block.lines, width):
            assert "\n" not in row.content.plain
