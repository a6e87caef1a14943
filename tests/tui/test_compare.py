"""The compare screen: two answers in turn on one engine, side by side, and nothing of them in the conversation."""

import msgspec
import pytest
from textual.widgets import Static

from chatting import LOAD, Gate, Talk, talking
from fake_engine import FakeEngine, Script
from specchat.tui.screens.compare import Compare, Side
from specchat.tui.widgets.key_line import KeyLine
from specengine.protocol import Chat, Generate


def screen(talk: Talk) -> Compare:
    found = talk.app.screen
    assert isinstance(found, Compare)
    return found


def verdict(talk: Talk) -> str:
    return str(screen(talk).query_one(".verdict", Static).render())


def texts(talk: Talk) -> dict[str, str]:
    return {side.mode: side.words.text for side in screen(talk).query(Side)}


def keys(talk: Talk) -> str:
    return screen(talk).query_one(KeyLine).laid(80).plain


async def asked(talk: Talk, prompt: str = "hi") -> None:
    await talk.idle()
    await talk.say(prompt)
    await talk.idle()


async def compared(talk: Talk) -> None:
    await talk.until(lambda: isinstance(talk.app.screen, Compare))
    await talk.until(lambda: "texts" in verdict(talk) and "measuring" not in verdict(talk))
    await talk.pilot.pause()


def shapes(requests: list[Generate]) -> list[tuple[str, bool, bool]]:
    return [(request.speculation, request.lookup, request.aside) for request in requests]


@pytest.mark.parametrize("how", ["f8", "/compare"])
async def test_the_last_prompt_is_answered_with_and_without_speculation(how: str) -> None:
    engine = FakeEngine().script("first").script("a ", "b").script("a ", "b")
    async with talking(engine) as talk:
        await asked(talk)
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        await compared(talk)
        assert texts(talk) == {"plain": "a b", "drafted": "a b"}
        assert "The texts are identical: 2 tokens." in verdict(talk)
        for side in screen(talk).query(Side):
            assert side.words.pieces[0].region.y == side.words.region.y, "short texts stand at the top"
        assert shapes(engine.requests[1:]) == [("off", False, True), ("auto", True, True)]
        assert len({request.id for request in engine.requests}) == 3
        assert len({request.sampling.seed for request in engine.requests}) == 1
        await talk.pilot.press("escape")
        assert talk.app.screen is talk.screen
        assert (talk.questions, talk.answers) == (["hi"], ["first"])
        await talk.say("next")
        await talk.idle()
        prompt = engine.requests[3].prompt
        assert isinstance(prompt, Chat)
        assert [message.content for message in prompt.messages] == ["hi", "first", "next"]


async def test_a_prompt_behind_the_command_is_compared_in_its_place() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await asked(talk)
        await talk.say("/compare tell me\nmore")
        await compared(talk)
        for request in engine.requests[1:]:
            assert isinstance(request.prompt, Chat)
            assert [message.content for message in request.prompt.messages] == ["hi", "Hello", "tell me\nmore"]


async def test_the_modes_take_turns_at_going_first_and_the_screen_says_which() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await asked(talk)
        for first in ("speculation off", "speculation auto", "speculation off"):
            await talk.pilot.press("f8")
            await compared(talk)
            head = str(screen(talk).query_one(".head", Static).render())
            assert f"{first} goes first" in head and "seed 0" in head
            assert screen(talk).query(Side).first().heading == first
            await talk.pilot.press("escape")
        assert [request.speculation for request in engine.requests[1:]] == ["off", "auto", "auto", "off", "off", "auto"]


async def test_texts_that_part_are_measured_at_the_fork_and_marked() -> None:
    engine = FakeEngine().script("first")
    for words, ids in ((("one ", "two"), (5, 6)), (("one ", "too"), (5, 7))):
        engine.scripts.append(Script(words, ids=ids))
    async with talking(engine) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        await compared(talk)
        assert "The texts part at token 2, behind “one t”: “wo” without speculation, “oo” with." in verdict(talk)
        assert "A near-tie" in verdict(talk)
        (measured,) = engine.forks
        assert (measured.shared, measured.tokens) == ((5,), (6, 7))
        for side in screen(talk).query(Side):
            content = side.words.pieces[0].content
            assert [(span.start, span.style) for span in content.spans] == [(5, "$text-warning")]  # type: ignore[union-attr]


async def test_both_stream_with_their_rates_while_they_are_made() -> None:
    gate = Gate()
    engine = FakeEngine().script("first")
    engine.scripts += [Script(("a ", "b"), pace=gate), Script(("a ", "b"), prefill=(7, 70), pace=gate)]
    async with talking(engine) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        gate.open()
        await talk.until(lambda: isinstance(talk.app.screen, Compare) and texts(talk)["plain"] == "a ")
        titles = [side.query_one(".figures", Static) for side in screen(talk).query(Side)]
        await talk.until(lambda: "21.5 tok/s · 1 tokens" in str(titles[0].render()))
        assert "waits" in str(titles[1].render())
        gate.open()
        await talk.until(lambda: "reading 7/70 tokens" in str(titles[1].render()))
        gate.open(2)
        await compared(talk)
        assert "20.0 tok/s · 2 tokens" in str(titles[0].render())


async def test_escape_stops_then_closes() -> None:
    gate = Gate()
    engine = FakeEngine().script("first")
    engine.scripts.append(Script(("a ", "b ", "c"), pace=gate))
    async with talking(engine) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        gate.open()
        await talk.until(lambda: isinstance(talk.app.screen, Compare) and texts(talk)["plain"] == "a ")
        assert keys(talk) == "esc stop"
        await talk.pilot.press("escape")
        gate.open()
        await talk.until(lambda: "Stopped." in verdict(talk))
        assert keys(talk) == "esc close"
        assert len(engine.requests) == 2
        await talk.pilot.press("escape")
        assert talk.app.screen is talk.screen
        assert (talk.questions, talk.answers) == (["hi"], ["first"])


async def test_an_engine_that_dies_is_one_sentence_there_and_the_chat_goes_on() -> None:
    engine = FakeEngine().script("first").script("a ", "b", crash_after=1)
    async with talking(engine) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        await talk.until(lambda: isinstance(talk.app.screen, Compare) and "The engine ended" in verdict(talk))
        await talk.pilot.press("escape")
        await asked(talk, "next")
        assert talk.answers == ["first", "Hello"]


async def test_nothing_to_compare_and_no_time_for_it_are_sentences() -> None:
    gate = Gate()
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.idle()
        await talk.pilot.press("f8")
        assert talk.notes[-1].startswith("There is nothing to compare yet; ask something first")
        engine.script("one", pace=gate)
        await talk.say("hi")
        await talk.pilot.press("f8")
        assert talk.notes[-1] == "An answer is being written; press esc to stop it before /compare."
        gate.open()
        await talk.idle()
    async with talking(FakeEngine(), load=None) as talk:
        await talk.pilot.press("f8")
        assert talk.notes[-1].startswith("Nothing can be compared before a model is loaded")


async def test_where_nothing_can_be_drafted_there_is_a_reason_in_place_of_a_comparison() -> None:
    refusal = "its memory can't be rolled back."
    engine = FakeEngine()
    async with talking(engine) as talk:
        await asked(talk)
        assert engine.loaded is not None
        engine.loaded = msgspec.structs.replace(engine.loaded, speculation_refused=refusal)
        await talk.pilot.press("f8")
        assert talk.notes[-1] == f"There is nothing to compare: {refusal}"
    alone = msgspec.structs.replace(LOAD, draft=None, draft_name="")
    async with talking(FakeEngine(), load=alone, lookup=False) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        assert "lookup is off and there is no draft model" in talk.notes[-1]
        assert talk.app.screen is talk.screen


@pytest.mark.parametrize(
    ("size", "beside"), [((120, 30), True), ((100, 24), True), ((99, 24), False), ((60, 16), False)]
)
async def test_answers_stand_side_by_side_where_there_is_room_and_below_each_other_else(
    size: tuple[int, int], beside: bool
) -> None:
    text = "word " * 900
    async with talking(FakeEngine().script("first").script(text).script(text), size=size) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        await compared(talk)
        one, other = (side.region for side in screen(talk).query(Side))
        assert (one.y == other.y) is beside and (one.right <= other.x) is beside
        assert (one.x == other.x) is not beside and one.height >= 4
        below = screen(talk).query_one(".verdict", Static).region
        assert other.bottom <= below.y and below.bottom <= size[1]
        low = size[1] < 22
        words = [side.words for side in screen(talk).query(Side)]
        scrolling = [screen(talk).query_one(".body")] if low else words
        assert all(part.scroll_y == part.max_scroll_y > 0 for part in scrolling)
        await talk.pilot.press("pageup")
        assert all(part.scroll_y < part.max_scroll_y for part in scrolling)


async def test_a_long_answer_is_laid_out_piece_by_piece() -> None:
    lines = [f"line {number}\n" for number in range(200)]
    async with talking(FakeEngine().script("first").script(*lines).script(*lines)) as talk:
        await asked(talk)
        await talk.pilot.press("f8")
        await compared(talk)
        for side in screen(talk).query(Side):
            assert side.words.text == "".join(lines)
            assert [piece.lines for piece in side.words.pieces] == [40] * 5
