"""The transcript while text streams: what it costs, and where it scrolls."""

from dataclasses import dataclass

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.events import MouseScrollDown, MouseScrollUp
from textual.widgets import Static

from chatting import Gate, talking
from fake_engine import FakeEngine, Script
from specchat.tui.segments import PROSE_CHARACTERS
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.code import RUN_LINES, SETTLED_LINES, CodeBlock


class Host(App[None]):
    """Just an answer, to be driven step by step."""

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Answer()


@dataclass
class Streamed:
    """What an answer came to, and what it took."""

    flushes: int
    appends: int
    parsed: int
    most_parsed: int
    """In one flush."""
    shown: str
    code: list[str]
    runs: list[str]
    highlighted: int
    blocks: list[str]


async def streamed(text: str, chunk: int, chunks_per_flush: int = 10) -> Streamed:
    async with Host().run_test(size=(80, 24)) as pilot:
        answer = pilot.app.query_one(Answer)
        flushes = most = 0
        for number, start in enumerate(range(0, len(text), chunk)):
            answer.write(text[start : start + chunk])
            if number % chunks_per_flush == 0:
                before = answer.parsed_characters
                await answer.flush()
                flushes += 1
                most = max(most, answer.parsed_characters - before)
        await answer.finish("done")
        await pilot.pause()
        code = list(answer.query(CodeBlock))
        return Streamed(
            flushes,
            answer.appends,
            answer.parsed_characters,
            most,
            "\n".join(str(part.render()) for part in answer.query(Static) if part.display),
            [block.code for block in code],
            [str(run.render()) for run in answer.query(".run").results(Static) if run.display],
            sum(block.highlighted_characters for block in code),
            [block.__class__.__name__ for block in answer.query("Markdown > *")],
        )


PARAGRAPHS = "".join(f"Paragraph **{number}** {'word ' * 30}\n\n" for number in range(40))
ITEMS = "".join(f"- item {number} {'word ' * 12}\n" for number in range(40))
LINE = "word " * 3000
TABLE = "| a | b |\n|---|---|\n" + f"| {'word ' * 30} | {'word ' * 30} |\n" * 40
CODE = "```python\n" + "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(200)) + "```\n"


async def test_appends_are_no_more_than_flushes_however_many_chunks_arrive() -> None:
    found = await streamed(PARAGRAPHS, 4)
    assert len(PARAGRAPHS) / 4 > 1000
    assert found.appends <= found.flushes + 1


@pytest.mark.parametrize("text", [PARAGRAPHS, ITEMS], ids=["paragraphs", "list"])
async def test_a_flush_parses_a_bounded_stretch_however_long_the_answer_is(text: str) -> None:
    for times in (1, 3):
        found = await streamed(text * times, 20)
        assert found.most_parsed <= 3 * (PROSE_CHARACTERS + 300)


@pytest.mark.parametrize("text", [LINE, TABLE], ids=["line", "table"])
async def test_prose_that_can_not_be_cut_costs_a_bounded_number_of_parsed_characters_per_character(text: str) -> None:
    whole, half = await streamed(text, 20, 2), await streamed(text[: len(text) // 2], 20, 2)
    assert whole.parsed / len(text) <= 1.3 * half.parsed / (len(text) // 2)
    assert whole.parsed / len(text) <= 40


async def test_code_is_highlighted_twice_and_never_parsed() -> None:
    found = await streamed(CODE, 4)
    code = CODE.removeprefix("```python\n").removesuffix("```\n")
    assert found.code == [code]
    assert found.highlighted <= 2 * len(code)
    assert found.parsed == 0
    assert len(found.runs) == -(-400 // SETTLED_LINES)


async def test_an_open_block_of_code_lays_out_its_last_lines_only() -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        answer = pilot.app.query_one(Answer)
        answer.write(CODE.removesuffix("```\n"))
        await answer.flush()
        runs = list(answer.query(".run").results(Static))
        settled = [run.content for run in runs[:-1]]
        answer.write("more = 1\n")
        await answer.flush()
        assert [run.content for run in runs[:-1]] == settled
        assert max(str(run.render()).count("\n") + 1 for run in runs) <= RUN_LINES


async def test_all_code_is_on_the_screen_after_the_answer_and_after_a_change_of_theme() -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        answer = pilot.app.query_one(Answer)
        for start in range(0, len(CODE), 50):
            answer.write(CODE[start : start + 50])
            await answer.flush()
        await answer.finish("")
        pilot.app.theme = "textual-light"
        await pilot.pause()
        lines = "\n".join(str(run.render()) for run in answer.query(".run").results(Static) if run.display)
        assert lines == answer.query_one(CodeBlock).code.rstrip("\n")


async def test_tabs_and_blank_lines_in_code_stay() -> None:
    found = await streamed("```make\nall:\n\tcc x.c\n\n\n\techo 'done'\n```\n", 3)
    assert found.code == ["all:\n\tcc x.c\n\n\n\techo 'done'\n"]
    assert [run.expandtabs(8) for run in found.runs] == [found.code[0].rstrip("\n").expandtabs(8)]


async def test_markdown_streams_into_its_parts() -> None:
    found = await streamed("# Title\n\nSome **bold**.\n\n1. one\n2. two\n\n> quote\n", 1, 3)
    assert found.blocks == ["MarkdownH1", "MarkdownParagraph", "MarkdownOrderedList", "MarkdownBlockQuote"]


async def test_html_is_shown_as_it_was_written() -> None:
    found = await streamed("Use <b>this</b>.\n\n<div>\nkept\n</div>\n", 1, 3)
    assert "<b>this</b>" in found.shown and "<div> kept </div>" in found.shown


async def test_line_breaks_that_only_python_knows_lose_nothing() -> None:
    found = await streamed("ten\u2028two\n\nthree\x85four\n\nfive\n", 1, 1)
    assert [found.shown.count(word) for word in ("ten", "two", "three", "four", "five")] == [1] * 5


async def test_the_answer_is_complete_after_thousands_of_chunks_as_fast_as_they_come() -> None:
    text = PARAGRAPHS + CODE
    chunks = [text[start : start + 3] for start in range(0, len(text), 3)]
    engine = FakeEngine()
    engine.scripts.append(Script(chunks))
    async with talking(engine) as talk:
        await talk.say("go")
        await talk.until(lambda: talk.footers, 60)
        answer = talk.screen.query_one(Answer)
        assert answer.text == text
        assert answer.appends < len(chunks) / 10
        assert sum(len(block.code) for block in answer.query(CodeBlock)) == len(CODE) - 14


async def test_leaving_while_an_answer_is_finished_is_no_fault() -> None:
    engine = FakeEngine()
    engine.scripts.append(Script([CODE + PARAGRAPHS]))
    async with talking(engine) as talk:
        await talk.say("go")
        await talk.until(lambda: talk.answers)
        await talk.pilot.press("ctrl+q")
    assert talk.app.fault is None


async def test_the_view_follows_the_end_and_stays_where_the_user_scrolled_to() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script([f"Paragraph {number}.\n\n" for number in range(100)], pace=gate))
    async with talking(engine, size=(60, 16)) as talk:
        transcript = talk.transcript
        await talk.say("go")
        gate.open(40)
        await talk.until(lambda: transcript.max_scroll_y > 20 and transcript.scroll_y == transcript.max_scroll_y)
        await talk.pilot.press("pageup")
        await talk.pilot.pause()
        stayed = transcript.scroll_y
        gate.open(20)
        await talk.until(lambda: "Paragraph 59." in talk.answers[0] and transcript.max_scroll_y > stayed + 30)
        assert transcript.scroll_y == stayed
        await talk.pilot.press("ctrl+end")
        gate.open(20)
        await talk.until(lambda: "Paragraph 79." in talk.answers[0])
        await talk.until(lambda: transcript.scroll_y == transcript.max_scroll_y > stayed + 50)


async def test_wheel_up_then_down_to_the_end_follows_again_while_text_streams() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script([f"Paragraph {number}.\n\n" for number in range(100)], pace=gate))
    async with talking(engine, size=(60, 16)) as talk:
        transcript = talk.transcript
        await talk.say("go")
        gate.open(40)
        await talk.until(lambda: transcript.max_scroll_y > 20 and transcript.scroll_y == transcript.max_scroll_y)

        def wheel(event: type[MouseScrollUp | MouseScrollDown]) -> None:
            transcript.post_message(event(transcript, 5, 5, 0, 1, 0, False, False, False, 5, 5))

        wheel(MouseScrollUp)
        await talk.until(lambda: not transcript.following)
        gate.open(1)
        await talk.until(lambda: "Paragraph 40." in talk.answers[0])
        for _ in range(10):
            wheel(MouseScrollDown)
            await talk.pilot.pause()
        assert transcript.following
        gate.open(20)
        await talk.until(lambda: "Paragraph 59." in talk.answers[0])
        await talk.until(lambda: transcript.scroll_y == transcript.max_scroll_y)


async def test_scrolling_a_short_chat_does_not_stop_it_from_following() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script([f"Paragraph {number}.\n\n" for number in range(40)], pace=gate))
    async with talking(engine, size=(60, 16)) as talk:
        await talk.say("go")
        await talk.pilot.press("pageup")
        gate.open(60)
        await talk.idle()
        assert talk.transcript.following and talk.transcript.scroll_y == talk.transcript.max_scroll_y
