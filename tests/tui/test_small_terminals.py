"""Windows of 80×24 and of 60×16: nothing of what is told is cut there."""

import re
from functools import partial
from pathlib import Path

import pytest

from chatting import Talk, talking
from fake_engine import FakeEngine, Script
from specchat.tui.screens.compare import Compare, Side
from specchat.tui.widgets.key_line import KeyLine
from specengine.protocol import NearTie

SIZES = [(80, 24), (60, 16)]


def told(talk: Talk, text: str) -> bool:
    return f"{text} " in talk.flowing


def in_rows(talk: Talk, texts: list[str]) -> bool:
    return all(any(text in row for row in talk.rows) for text in texts)


async def read_through(talk: Talk) -> str:
    """All that the compare screen shows, from its first row to its last."""
    body = talk.app.screen.query_one(".body")
    await talk.pilot.press(*["pageup"] * 20)
    shown = [talk.flowing]
    while body.scroll_y < body.max_scroll_y:
        await talk.pilot.press("down")
        shown.append(talk.flowing)
    return "\n".join(shown)


@pytest.mark.parametrize("size", SIZES)
async def test_a_comparison_tells_all_of_both_rates_and_of_the_fork(size: tuple[int, int]) -> None:
    engine = FakeEngine(near_tie=NearTie(0.123456, 0.0123456, False)).script("first")
    for ids in ((1,) * 1199 + (2,), (1,) * 1199 + (3,)):
        last = "漢字" * 20 if ids[-1] == 2 else "same" * 20
        words = [*(f"word{number} " for number in range(1199)), last]
        engine.scripts.append(Script(words, ids=ids))
    async with talking(engine, size=size) as talk:
        await talk.say("hi")
        await talk.idle()
        await talk.pilot.press("f8")
        await talk.until(lambda: isinstance(talk.app.screen, Compare) and "doctor --model" in talk.flowing)
        await talk.pilot.pause()
        shown = talk.flowing.replace(" ", "")
        verdict = str(talk.app.screen.query_one(".verdict").render())
        for word in verdict.split():
            assert word in shown, word
        for sentence in ("20.0 against 20.0 tok/s: as fast", "The texts part at token 1,200", "what earlier passes"):
            assert sentence.replace(" ", "") in shown
        whole = await read_through(talk)
        for side in talk.app.screen.query(Side):
            assert side.heading in whole
        assert whole.count("20.0 tok/s · 1,200 tokens") >= 2
        assert "2.00 a pass · 50% of drafts accepted" in whole
        if size[1] == 16:
            assert "word0 " in whole and "word1198 " in whole, "the texts scroll with all the rest"


@pytest.mark.parametrize("size", SIZES)
async def test_the_course_of_an_answer_is_drawn_in_one_row_whatever_the_width(size: tuple[int, int]) -> None:
    engine = FakeEngine().script(*["word "] * 240)
    line = re.compile(r"^ *(tok/s|γ) +[▁-█]{15,40} [\d.]+ to [\d.]+[ ▁-█]*$")
    async with talking(engine, size=size) as talk:
        await talk.say("hi")
        await talk.idle()
        await talk.say("/stats")
        await talk.until(lambda: "Why γ" in talk.flowing)
        for width, height in (size, (100, 40), (64, 40), size):
            await talk.pilot.resize_terminal(width, height)
            await talk.until(lambda: sum(bool(line.match(row)) for row in talk.rows) == 2)


@pytest.mark.parametrize("size", SIZES)
async def test_the_palette_shows_what_commands_take(size: tuple[int, int]) -> None:
    async with talking(FakeEngine(), size=size) as talk:
        await talk.pilot.press("ctrl+p")
        await talk.until(lambda: talk.app.screen is not talk.screen)
        await talk.pilot.press(*"/edit")
        await talk.until(lambda: "/edit [N]" in talk.flowing)


@pytest.mark.parametrize("size", SIZES)
async def test_suggestions_say_all_of_what_a_command_does(size: tuple[int, int]) -> None:
    async with talking(FakeEngine(), size=size) as talk:
        await talk.pilot.press(*"/draf")
        await talk.until(lambda: "self drafts with some of the model's own layers" in talk.flowing)
        await talk.pilot.resize_terminal(100, 30)
        await talk.until(lambda: in_rows(talk, ["or none; self drafts with some of the"]))


@pytest.mark.parametrize("size", SIZES)
async def test_a_key_and_what_it_does_stand_in_one_row(size: tuple[int, int], tmp_path: Path) -> None:
    async with talking(FakeEngine(), size=size, chats_file=tmp_path / "chats.db") as talk:
        assert in_rows(talk, ["enter send", "ctrl+t speculation", "ctrl+q quit"])
        for opens in ("f2", "ctrl+r", "ctrl+o"):
            await talk.pilot.press(opens)
            await talk.until(lambda: talk.app.screen is not talk.screen and talk.app.screen.query(KeyLine))
            pairs = talk.app.screen.query_one(KeyLine).laid(1000).plain.split("  ")
            assert len(pairs) > 3
            await talk.until(partial(in_rows, talk, pairs))
            await talk.pilot.press("escape")


@pytest.mark.parametrize("size", SIZES)
async def test_all_that_can_be_done_with_a_chosen_message_is_told(size: tuple[int, int]) -> None:
    engine = FakeEngine().script("one").script("```python\nx = 1\n```\n")
    async with talking(engine, size=size) as talk:
        await talk.say("hi")
        await talk.idle()
        await talk.say("/retry")
        await talk.idle()
        code, question = "c copy · s save · e edit · r retry", "c copy · e edit · r retry · ←→ branch"
        for acts in ("c copy · e edit · r retry", code, question):
            await talk.pilot.press("alt+up")
            await talk.until(partial(told, talk, acts))
