"""Filling in the middle, in the chat."""

import pytest
from textual import events

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat.tui.commands import parse
from specchat.tui.fills import gap_in
from specchat.tui.screens.fill import Fill
from specchat.tui.widgets.key_line import KeyLine
from specengine.errors import EngineError
from specengine.protocol import Infill
from specengine.settings import Limits

CODE = "def area(self):\n    return <|cursor|>\n\ndef other(self):\n    pass\n"


def test_the_gap_is_at_the_mark_or_at_the_end() -> None:
    gap = gap_in(CODE)
    assert (gap.before, gap.after) == ("def area(self):\n    return ", "\n\ndef other(self):\n    pass\n")
    assert gap_in("def f():").before == "def f():"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a<|cursor|>b<|cursor|>", "There is more than one <|cursor|>; leave the one at the gap."),
        (" <|cursor|>\n", "/fim takes code, pasted or attached, with <|cursor|> where it is to be filled."),
        ("", "/fim takes code, pasted or attached, with <|cursor|> where it is to be filled."),
    ],
)
def test_a_text_without_one_gap_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(EngineError) as refused:
        gap_in(text)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("code", "language"),
    [
        (CODE, "python"),
        ("function area(a) {\n  return <|cursor|>;\n}\n", "javascript"),
        ("#include <stdio.h>\nint main() { <|cursor|> }\n", "cpp"),
        ("fn area(w: u32) -> u32 {\n    <|cursor|>\n}\n", "rust"),
        ("package main\n\nfunc main() {\n\t<|cursor|>\n}\n", "go"),
        ("Dear <|cursor|>,\n", "text"),
    ],
)
def test_the_language_is_told_by_the_lines_around_the_gap(code: str, language: str) -> None:
    assert gap_in(code).language == language


def test_code_reaches_the_command_with_its_whitespace() -> None:
    found = parse("/fim\n    def area(self):\n        ")
    assert found and found[0].name == "fim" and found[1] == "    def area(self):\n        "


async def fill(talk: Talk, text: str = f"/fim\n{CODE}") -> Fill:
    await talk.idle()
    await talk.say(text)
    await talk.until(lambda: isinstance(talk.app.screen, Fill))
    screen = talk.app.screen
    assert isinstance(screen, Fill)
    return screen


def shown(screen: Fill) -> str:
    return str(screen.query_one(".code").render())


async def test_the_gap_is_filled_between_the_lines_around_it_greedily_and_beside_the_conversation() -> None:
    engine = FakeEngine(infill=True).script("self.width", " * self.height", "\n\nprint(1)")
    async with talking(engine) as talk:
        screen = await fill(talk)
        await talk.until(lambda: not screen._writing)
        await talk.pilot.pause()
        assert screen.text == "self.width * self.height"
        assert shown(screen) == CODE.replace("<|cursor|>", "self.width * self.height")
        (wanted,) = engine.requests
        assert wanted.prompt == Infill(*CODE.split("<|cursor|>"))
        assert wanted.sampling.greedy and wanted.aside and wanted.limits == Limits(256)
        assert talk.screen.session.conversation.turns == ()
        await talk.pilot.press("escape")
        await talk.until(lambda: talk.notes == ["self.width * self.height"])


async def test_what_was_filled_in_is_copied_alone_or_with_all_around_it() -> None:
    async with talking(FakeEngine(infill=True).script("1")) as talk:
        screen = await fill(talk)
        await talk.until(lambda: not screen._writing)
        await talk.pilot.press("c")
        assert talk.app.clipboard == "1"
        await talk.pilot.press("a")
        assert talk.app.clipboard == CODE.replace("<|cursor|>", "1")


async def test_escape_stops_a_fill_and_keeps_what_there_is_of_it() -> None:
    gate = Gate()
    async with talking(FakeEngine(infill=True).script("one ", "two ", "three", pace=gate)) as talk:
        screen = await fill(talk)
        gate.open()
        await talk.until(lambda: screen.text == "one ")
        keys = screen.query_one(KeyLine)
        assert "esc stop" in keys.laid(80).plain
        await talk.pilot.press("escape")
        gate.open()
        await talk.until(lambda: not screen._writing)
        assert "esc close" in keys.laid(80).plain
        assert screen.text == "one " and screen.state.endswith("stopped")
        await talk.pilot.press("escape")
        await talk.until(lambda: talk.notes == ["one "])


async def test_pasted_code_and_a_mark_typed_behind_it_are_a_gap() -> None:
    engine = FakeEngine(infill=True).script("pass")
    async with talking(engine) as talk:
        await talk.idle()
        talk.prompt.insert("/fim ")
        lines = "\n".join(f"x{number} = {number}" for number in range(30))
        talk.prompt.post_message(events.Paste(lines))
        await talk.pilot.pause()
        talk.prompt.insert("<|cursor|>")
        await talk.pilot.press("enter")
        await talk.until(lambda: engine.requests)
        assert engine.requests[0].prompt == Infill(lines, "")


@pytest.mark.parametrize(
    ("infill", "text", "sentence"),
    [
        (False, "/fim x", "tiny-1b can't fill in a gap: it has no fill-in-the-middle tokens; choose a code model, "),
        (True, "/fim ", "/fim takes code, pasted or attached, with <|cursor|> where it is to be filled."),
    ],
)
async def test_what_can_not_be_filled_is_one_sentence(infill: bool, text: str, sentence: str) -> None:
    engine = FakeEngine(infill=infill)
    async with talking(engine) as talk:
        await talk.idle()
        await talk.say(text)
        await talk.until(lambda: talk.notes)
        assert talk.notes[0].startswith(sentence) and engine.requests == []


@pytest.mark.parametrize("script", [{"refuse": "The prompt is empty."}, {"chunks": (), "crash_after": 0}])
async def test_a_fault_of_the_engine_is_shown_where_the_fill_would_be(script: dict[str, object]) -> None:
    chunks = script.pop("chunks", ("x",))
    assert isinstance(chunks, tuple)
    async with talking(FakeEngine(infill=True).script(*chunks, **script)) as talk:
        screen = await fill(talk)
        await talk.until(lambda: not screen._writing)
        assert screen.state.startswith(("The prompt is empty.", "The engine ended"))
        await talk.pilot.press("escape")
        await talk.until(lambda: not isinstance(talk.app.screen, Fill))


async def test_keys_scroll_code_that_is_longer_than_the_screen() -> None:
    async with talking(FakeEngine(infill=True).script("pass")) as talk:
        screen = await fill(talk, "/fim\n" + "x = 1\n" * 100 + "<|cursor|>\n" + "y = 2\n" * 100)
        await talk.until(lambda: not screen._writing)
        await talk.pilot.pause()
        view = screen.query_one("VerticalScroll")
        assert view.max_scroll_y > 0
        await talk.pilot.press("pageup", "up")
        above = view.scroll_y
        await talk.pilot.press("pagedown", "down")
        assert view.scroll_y > above
