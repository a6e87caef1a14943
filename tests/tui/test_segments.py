"""Streamed Markdown in pieces."""

import pytest

from specchat.tui.segments import (
    ITEM_CHARACTERS,
    PROSE_CHARACTERS,
    Code,
    CodeEnd,
    CodeStart,
    Cut,
    Prose,
    Segmenter,
    Step,
)

NESTED = """Hi *you*.

1. Do:
   ```python
   def f():
       return 1
   ```
   Then more.
2. Next

~~~
x ``` y
~~~
bye `x`
"""


def pieces(text: str, size: int) -> list[Step]:
    segmenter = Segmenter()
    steps = [step for start in range(0, len(text), size) for step in segmenter.feed(text[start : start + size])]
    joined: list[Step] = []
    for step in [*steps, *segmenter.end()]:
        last = joined[-1] if joined else None
        if isinstance(step, Prose | Code) and type(last) is type(step):
            joined[-1] = type(step)(last.text + step.text)
        else:
            joined.append(step)
    return joined


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_fences_are_found_however_the_text_arrives(size: int) -> None:
    assert pieces(NESTED, size) == [
        Prose("Hi *you*.\n\n1. Do:\n"),
        Cut(tight=False),
        CodeStart("python"),
        Code("def f():\n    return 1\n"),
        CodeEnd(),
        Prose("Then more.\n2. Next\n\n"),
        Cut(tight=False),
        CodeStart(""),
        Code("x ``` y\n"),
        CodeEnd(),
        Prose("bye `x`\n"),
    ]


def test_a_forming_fence_is_held_back_until_its_line_ends() -> None:
    segmenter = Segmenter()
    assert list(segmenter.feed("``")) == []
    assert list(segmenter.feed("`py")) == []
    assert list(segmenter.feed("thon\n")) == [Cut(tight=False), CodeStart("python")]


def test_inline_code_at_the_start_of_a_line_is_prose() -> None:
    assert pieces("```x``` is code\n", 1) == [Prose("```x``` is code\n")]


def test_a_line_that_starts_with_inline_code_is_not_held_back() -> None:
    assert list(Segmenter().feed("`x` is")) == [Prose("`x` is")]


def test_a_shorter_fence_inside_a_longer_one_is_code() -> None:
    text = "````md\n```py\nx\n```\n````\n"
    assert Code("```py\nx\n```\n") in pieces(text, 1)


def test_an_unclosed_fence_ends_with_the_answer_and_loses_nothing() -> None:
    assert pieces("```py\nx = 1", 2)[-2:] == [Code("x = 1"), CodeEnd()]


@pytest.mark.parametrize("size", [1, 5, 4096])
def test_long_prose_is_cut_where_a_paragraph_or_an_item_starts(size: int) -> None:
    paragraphs = "".join(f"Paragraph {n} {'word ' * 30}\n\n" for n in range(40))
    items = "".join(f"- item {n} {'word ' * 20}\n" for n in range(60))
    found = pieces(paragraphs + items, size)
    prose = [step.text for step in found if isinstance(step, Prose)]
    assert "".join(prose) == paragraphs + items
    assert max(len(text) for text in prose) < PROSE_CHARACTERS + 300
    assert max(len(text) for text in prose if text.startswith("- ")) < ITEM_CHARACTERS + 150
    assert all(text.startswith(("Paragraph", "- item")) for text in prose)
    assert {step.tight for step in found if isinstance(step, Cut)} == {True, False}


def test_one_endless_line_is_never_cut() -> None:
    assert pieces("word " * 2000, 11) == [Prose("word " * 2000)]
