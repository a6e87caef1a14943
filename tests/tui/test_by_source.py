"""Answers coloured by who wrote what: every character, live and afterwards, with or without colours."""

import os
from collections import Counter
from collections.abc import Sequence

import pytest

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat.chat import Answer, Conversation, Turn
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.written import Written, WrittenRows
from specchat.tui.wrapping import breaks
from specengine.protocol import Token

TOKENS = [
    *(Token(text, "target") for text in ("Here", " is", " **it**:", "\n\n```", "python", "\n")),
    *(
        Token(text, "lookup")
        for text in ("def ", "area", "(", "width", "):", "\n    ", "return", " 日本", "語🙂\t", "x\n")
    ),
    *(Token(text, "draft") for text in ("```\n", "\n", "[/b]", " <i>", "")),
    Token("\ufffd", "target", 0),
    Token(" " + "long " * 60, "lookup"),
    Token(".", "target"),
]
TEXT = "".join(token.text for token in TOKENS)


def coloured(talk: Talk) -> tuple[str, Counter[str]]:
    """The text on the screen, and how many characters of it look like each source's."""
    rows = talk.screen.query_one(WrittenRows)
    lines: list[str] = []
    characters: Counter[str] = Counter()
    for y in range(rows.count):
        content, line, start = rows.row(y)
        if start == 0:
            lines.append("")
        lines[line] += content.plain
        for span in content.spans:
            characters[str(span.style)] += span.end - span.start
    return "\n".join(lines), characters


def characters(tokens: Sequence[Token], source: str) -> int:
    return sum(len(token.text.replace("\n", "")) for token in tokens if token.source == source)


def foot(talk: Talk) -> str:
    return str(talk.screen.query("FootView").last().render())


@pytest.mark.parametrize("width", [100, 60])
@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_every_character_and_every_token_is_the_engines_whenever_it_is_turned_on(when: str, width: int) -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.script(TOKENS[:9], TOKENS[9:], pace=gate)
    async with talking(engine, size=(width, 40)) as talk:
        if when == "before":
            await talk.pilot.press("ctrl+l")
        await talk.say("go")
        gate.open()
        await talk.until(lambda: talk.answers == ["".join(token.text for token in TOKENS[:9])])
        if when == "during":
            await talk.pilot.press("ctrl+l")
            await talk.until(lambda: coloured(talk)[0] == talk.answers[0])
        gate.open(2)
        await talk.idle()
        if when == "after":
            await talk.pilot.press("ctrl+l")
        await talk.until(lambda: talk.screen.query(WrittenRows))
        await talk.until(lambda: coloured(talk)[0] == TEXT == talk.answers[0])
        found = coloured(talk)[1]
        assert found["$text-success"] == characters(TOKENS, "lookup")
        assert found["$text-accent"] == characters(TOKENS, "draft")
        answer = talk.screen.session.conversation.turns[-1].answer
        assert answer and answer.stats
        accepted = {name: source.accepted for name, source in answer.stats.sources.items()}
        assert accepted == {"lookup": 11, "draft": 5} and answer.stats.emitted == 23
        assert foot(talk).splitlines()[0] == "target 7 (30%)   prompt lookup 11 (48%)   draft model 5 (22%)"


async def test_turned_off_it_is_markdown_again_also_in_the_middle() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.script(TOKENS[:9], TOKENS[9:], pace=gate)
    async with talking(engine) as talk:
        await talk.say("/sources")
        await talk.say("go")
        gate.open()
        await talk.until(lambda: talk.answers[0])
        await talk.say("/sources")
        await talk.until(lambda: not talk.screen.query(WrittenRows))
        gate.open(2)
        await talk.idle()
        await talk.until(lambda: talk.footers)
        (code,) = (item for item in talk.transcript.items if isinstance(item, CodeBlock))
        assert code.code == "def area(width):\n    return 日本語🙂\tx\n"
        assert "lookup" not in foot(talk)


async def test_without_colours_sources_are_told_apart_by_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    engine = FakeEngine()
    engine.script(TOKENS)
    async with talking(engine) as talk:
        await talk.say("go")
        await talk.idle()
        await talk.pilot.press("ctrl+l")
        await talk.until(lambda: talk.screen.query(WrittenRows))
        assert set(coloured(talk)[1]) == {"underline", "bold underline"}


async def test_an_answer_whose_runs_nobody_kept_is_plain_and_has_no_legend() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.transcript.show(Conversation(turns=(Turn("q", "q", Answer("Some *text*.", "end")),)))
        await talk.pilot.press("ctrl+l")
        await talk.until(lambda: talk.screen.query(WrittenRows) and coloured(talk) == ("Some *text*.", Counter()))
        assert foot(talk) == ""


async def test_an_answer_of_earlier_is_coloured_by_the_runs_that_were_kept() -> None:
    engine = FakeEngine()
    engine.script(TOKENS)
    async with talking(engine) as talk:
        await talk.say("go")
        await talk.idle()
        await talk.transcript.show(talk.screen.session.conversation)
        await talk.pilot.press("ctrl+l")
        await talk.until(lambda: talk.screen.query(WrittenRows))
        assert coloured(talk)[0] == TEXT
        assert coloured(talk)[1]["$text-success"] == characters(TOKENS, "lookup")


async def test_the_view_by_source_wraps_each_character_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapped = 0

    def count(text: str, width: int, start: int = 0) -> list[int]:
        nonlocal wrapped
        wrapped += len(text) - start
        return breaks(text, width, start)

    monkeypatch.setattr("specchat.tui.widgets.wrapped_rows.breaks", count)
    engine = FakeEngine()
    text = "word " * 2000 + "\n" + "short\n" * 500
    engine.script(*([Token(text[at : at + 5], "lookup")] for at in range(0, len(text), 5)))
    async with talking(engine) as talk:
        await talk.pilot.press("ctrl+l")
        await talk.say("go")
        await talk.until(lambda: talk.footers, 60)
        assert coloured(talk)[0] == text
        assert wrapped <= 8 * len(text)


def test_parts_of_a_line_are_told_from_its_runs() -> None:
    written = Written()
    for text, source in (("ab", "target"), ("c\nd", "lookup"), ("ef", "lookup"), ("g\n", "draft"), ("h", "target")):
        written.add(text, source)
    assert written.lines == ["abc", "defg", "h"]
    assert written.parts(0, 0, 3) == [(0, 2, "target"), (2, 3, "lookup")]
    assert written.parts(1, 1, 4) == [(1, 3, "lookup"), (3, 4, "draft")]
    assert written.parts(2, 0, 1) == [(0, 1, "target")]
