"""What an answer costs while it streams, and that all of it is shown."""

from dataclasses import dataclass

import pytest
from textual.pilot import Pilot

from columns import Host, hosting, stream, tokens
from specchat.tui.segments import PROSE_CHARACTERS
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.code import RUN_LINES, CodeBlock, CodeRows
from specchat.tui.widgets.stretch import Stretch
from specchat.tui.widgets.thought import Thought, ThoughtView

PARAGRAPHS = "".join(f"Paragraph **{number}** {'word ' * 30}\n\n" for number in range(40))
ITEMS = "".join(f"- item {number} {'word ' * 12}\n" for number in range(40))
LINE = "word " * 2000
TABLE = "| a | b |\n|---|---|\n" + f"| {'word ' * 30} | {'word ' * 30} |\n" * 24
CODE = "```python\n" + "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(200)) + "```\n"
SOURCE = CODE.removeprefix("```python\n").removesuffix("```\n")


@dataclass
class Cost:
    flushes: int
    parsed: int
    most_parsed: int
    """In one flush."""


def parsed(app: Host) -> int:
    return sum(stretch.parsed_characters for stretch in app.items(Stretch))


async def settled(app: Host, pilot: Pilot[None]) -> None:
    """Waits until all is laid out and coloured."""
    await app.workers.wait_for_complete()
    await pilot.pause()


async def cost_of(text: str, length: int, tokens_per_flush: int = 10) -> Cost:
    async with hosting() as (app, _):
        answer = Answer(app.column)
        flushes = most = 0
        for number, token in enumerate(tokens(text, length)):
            answer.write([token])
            if number % tokens_per_flush == 0:
                before = parsed(app)
                await answer.flush()
                flushes += 1
                most = max(most, parsed(app) - before)
        await answer.finish("done")
        return Cost(flushes, parsed(app), most)


@pytest.mark.parametrize("text", [PARAGRAPHS, ITEMS], ids=["paragraphs", "list"])
async def test_a_flush_parses_a_bounded_stretch_however_long_the_answer_is(text: str) -> None:
    for times in (1, 3):
        found = await cost_of(text * times, 20)
        assert found.most_parsed <= 3 * (PROSE_CHARACTERS + 300)


@pytest.mark.parametrize("text", [PARAGRAPHS, ITEMS, LINE, TABLE], ids=["paragraphs", "list", "line", "table"])
async def test_parsed_characters_for_each_character_do_not_grow_with_the_answer(text: str) -> None:
    whole, half = await cost_of(text, 20, 2), await cost_of(text[: len(text) // 2], 20, 2)
    assert whole.parsed / len(text) <= 1.3 * half.parsed / (len(text) // 2)
    assert whole.parsed / len(text) <= 40


async def test_code_is_highlighted_twice_and_never_parsed() -> None:
    async with hosting() as (app, pilot):
        await stream(app, CODE)
        await settled(app, pilot)
        (code,) = app.items(CodeBlock)
        assert code.code == SOURCE
        assert code.highlighted_characters <= 2 * len(SOURCE)
        assert app.items(Stretch) == []


async def test_an_open_block_of_code_colours_each_line_once_and_renders_what_is_on_the_screen() -> None:
    async with hosting() as (app, pilot):
        answer = Answer(app.column)
        answer.write(tokens(CODE.removesuffix("```\n"), 50))
        await answer.flush()
        (code,) = app.items(CodeBlock)
        coloured = [line for line in code.lines if line.spans]
        assert len(coloured) > 350
        assert len(SOURCE) - code.highlighted_characters < 30 * RUN_LINES
        await pilot.pause()
        rows = app.query_one(CodeRows)
        assert rows.count == 401 and len(rows._strips) <= 24  # the head is one
        answer.write(tokens("more = 1\n"))
        await answer.flush()
        assert all(line is before for line, before in zip(code.lines, coloured, strict=False))


async def test_all_code_is_there_after_the_answer_and_after_a_change_of_theme() -> None:
    async with hosting() as (app, pilot):
        await stream(app, CODE)
        app.theme = "textual-light"
        await settled(app, pilot)
        rows = app.query_one(CodeRows)
        assert "\n".join(rows.row(y)[0].plain for y in range(1, rows.count)) == SOURCE.removesuffix("\n")
        assert "    return x + 199" in "\n".join(app.screen_text)


async def test_tabs_and_blank_lines_in_code_stay() -> None:
    async with hosting() as (app, pilot):
        await stream(app, "```make\nall:\n\tcc x.c\n\n\n\techo 'done'\n```\n", 3)
        await settled(app, pilot)
        (code,) = app.items(CodeBlock)
        assert code.code == "all:\n\tcc x.c\n\n\n\techo 'done'\n"
        shown = [line.strip() for line in app.screen_text]
        assert shown[shown.index("all:") :][:5] == ["all:", "cc x.c", "", "", "echo 'done'"]
        assert any(line.startswith(" " * 11 + "cc x.c") for line in app.screen_text)


async def test_html_is_shown_as_it_was_written() -> None:
    async with hosting() as (app, pilot):
        await stream(app, "Use <b>this</b>.\n\n<div>\nkept\n</div>\n", 3)
        await settled(app, pilot)
        assert "Use <b>this</b>." in app.shown and "<div> kept </div>" in app.shown


async def test_line_breaks_that_only_python_knows_lose_nothing() -> None:
    async with hosting() as (app, pilot):
        await stream(app, "ten\u2028two\n\nthree\x85four\n\nfive\n", 1)
        await settled(app, pilot)
        assert [line.strip() for line in app.screen_text][:5] == ["ten two", "", "three four", "", "five"]


async def test_thoughts_are_one_line_that_counts_and_opens() -> None:
    async with hosting() as (app, pilot):
        answer = Answer(app.column)
        answer.write(tokens("<think>\nIs it **two**?\n", 6))
        await answer.flush()
        await pilot.pause()
        assert "▸ thinking… 4 tokens" in app.shown and "**two**" not in app.shown
        answer.write(tokens("Yes, I think.\n</think>\n\nIt is *two*.", 6))
        await answer.finish("done")
        await pilot.pause()
        (thought,) = app.items(Thought)
        assert f"▸ thought for {thought.tokens} tokens" in app.shown
        assert "It is two." in app.shown
        await pilot.click(ThoughtView)
        await pilot.pause()
        assert "Is it **two**?\nYes, I think." in app.shown and "▾" in app.shown
        await pilot.click(ThoughtView)
        await pilot.pause()
        assert "**two**" not in app.shown
        assert answer.text == "<think>\nIs it **two**?\nYes, I think.\n</think>\n\nIt is *two*."


@pytest.mark.parametrize("text", ["<think>\n\n</think>\n\nYes.", "Yes."])
async def test_an_answer_without_thoughts_shows_none(text: str) -> None:
    async with hosting() as (app, pilot):
        await stream(app, text, 2)
        await settled(app, pilot)
        assert app.items(Thought) == [] and "Yes." in app.shown


async def test_a_stop_inside_thoughts_leaves_them_there() -> None:
    async with hosting() as (app, _):
        answer = await stream(app, "<think>\nhm </thi", 2)
        (thought,) = app.items(Thought)
        assert thought.closed and thought.text == "hm </thi" and answer.text == "<think>\nhm </thi"
