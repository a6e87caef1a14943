"""The transcript while text streams: how often it is updated, how much of it is mounted, and where it scrolls."""

from collections.abc import Awaitable, Callable

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.widget import Widget

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine, Script
from specchat.chat import Answer, Conversation, Turn
from specchat.tui.pace import LONGEST_REST_S, REST_S, REST_SHARE, rest_s
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.stretch import Stretch
from specengine.protocol import Token
from specengine.stats import Stats

PARAGRAPHS = "".join(f"Paragraph **{number}** {'word ' * 30}\n\n" for number in range(40))
CODE = "```python\n" + "".join(f"def f{number}(x):\n    return x + {number}\n" for number in range(200)) + "```\n"


async def test_the_answer_is_complete_after_thousands_of_chunks_as_fast_as_they_come() -> None:
    text = PARAGRAPHS + CODE
    chunks = [text[start : start + 3] for start in range(0, len(text), 3)]
    engine = FakeEngine()
    engine.scripts.append(Script(chunks))
    async with talking(engine) as talk:
        await talk.say("go")
        await talk.until(lambda: talk.footers, 60)
        items = talk.transcript.items
        assert talk.answers == [text]
        assert sum(item.parsed_characters for item in items if isinstance(item, Stretch)) < 40 * len(text)
        assert sum(len(item.code) for item in items if isinstance(item, CodeBlock)) == len(CODE) - 14


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


class Clock:
    """Time that passes only when told to: updates happen at the times that the transcript asked for."""

    def __init__(self, talk: Talk, monkeypatch: pytest.MonkeyPatch, update_costs_s: float) -> None:
        self.now_s = 0.0
        self.updates = 0
        self._busy_s = 0.0
        self._costs_s = update_costs_s
        self._due: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        monkeypatch.setattr(talk.transcript, "set_timer", self._set_timer)
        monkeypatch.setattr("specchat.tui.widgets.turns_column.time.process_time", lambda: self._busy_s)

    def _set_timer(self, delay: float, callback: Callable[[], Awaitable[None]]) -> "Clock":
        self._due.append((self.now_s + delay, callback))
        return self

    def stop(self) -> None:
        self._due.clear()

    async def pass_by(self, seconds: float) -> None:
        self.now_s += seconds
        while self._due and self._due[0][0] <= self.now_s:
            _, update = self._due.pop(0)
            self.updates += 1
            self._busy_s += self._costs_s
            await update()


@pytest.mark.parametrize("update_costs_s", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("tokens_per_s", [100, 1000])
async def test_updates_are_bounded_by_time_and_by_what_they_cost_however_fast_tokens_come(
    monkeypatch: pytest.MonkeyPatch, update_costs_s: float, tokens_per_s: int
) -> None:
    async with talking(FakeEngine().script("x", pace=Gate())) as talk:
        clock = Clock(talk, monkeypatch, update_costs_s)
        await talk.say("go")
        await talk.until(lambda: talk.transcript.answer)
        answer = talk.transcript.answer
        assert answer
        refreshed = 0
        refresh = Widget.refresh

        def count(widget: Widget, *regions: Region, **rest: bool) -> Widget:
            nonlocal refreshed
            refreshed += 1
            return refresh(widget, *regions, **rest)

        monkeypatch.setattr(Widget, "refresh", count)
        for number in range(3 * tokens_per_s):
            answer.write([Token(PARAGRAPHS[4 * number % 6000 :][:4], "target")])
            await clock.pass_by(1 / tokens_per_s)
        monkeypatch.setattr(Widget, "refresh", refresh)
        assert 2 <= clock.updates <= 3 / REST_S + 1
        assert clock.updates * update_costs_s <= 3 / REST_SHARE + 2 * update_costs_s
        assert refreshed <= 100 * clock.updates


def test_an_update_rests_sixteen_times_as_long_as_it_took_but_never_seems_to_hang() -> None:
    assert [rest_s(took_s) for took_s in (0, 0.005, 0.05, 5)] == [REST_S, REST_S, pytest.approx(0.8), LONGEST_REST_S]


def turns(count: int) -> Conversation:
    answer = f"Some **words**.\n\n- one\n- two\n\n```python\nx = 1\n```\n\n{'More words. ' * 40}\n"
    return Conversation(
        turns=tuple(
            Turn(f"Question {number}", f"Question {number}", Answer(f"Answer {number}. {answer}", "end", stats=Stats()))
            for number in range(count)
        )
    )


async def test_200_turns_keep_as_few_widgets_as_ten_and_none_is_lost() -> None:
    mounted = {}
    for count in (10, 200):
        async with talking(FakeEngine()) as talk:
            await talk.transcript.show(turns(count))
            await talk.pilot.pause()
            await talk.until(lambda: not talk.transcript.settling)
            mounted[count] = len(talk.transcript.query("*"))
            assert len(talk.questions) == len(talk.answers) == count
            await talk.pilot.press("ctrl+home")
            await talk.until(lambda: "Question 0" in screen(talk))
            await talk.pilot.press("ctrl+end")
            await talk.until(lambda: "Question 0" not in screen(talk))
            assert talk.transcript.following
    assert mounted[200] <= 1.2 * mounted[10]


async def test_turns_one_after_another_keep_few_widgets() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        for number in range(25):
            engine.script(f"Answer {number}.\n\n" + "word " * 200)
            await talk.say(f"Question {number}")
            await talk.idle()
        await talk.pilot.pause()
        assert len(talk.transcript.query("*")) < 120
        assert len(talk.answers) == 25


def screen(talk: Talk) -> str:
    return "\n".join(talk.rows)


async def test_new_text_below_is_marked_while_the_view_is_elsewhere() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script([f"Paragraph {number}.\n\n" for number in range(60)], pace=gate))
    async with talking(engine, size=(60, 16)) as talk:
        await talk.say("go")
        gate.open(40)
        await talk.until(lambda: talk.transcript.max_scroll_y > 20)
        await talk.pilot.press("pageup", "pageup")
        await talk.until(lambda: not talk.transcript.following)
        assert "new text" not in screen(talk)
        gate.open(1)
        await talk.until(lambda: "↓ new text" in screen(talk))
        await talk.pilot.press("ctrl+end")
        await talk.until(lambda: "↓ new text" not in screen(talk))
        await talk.pilot.press("pageup", "pageup")
        gate.open(30)
        await talk.until(lambda: "↓ new text" in screen(talk))
        await talk.pilot.click(Prompt, offset=(5, 0))
        await talk.until(lambda: "↓ new text" not in screen(talk))
        assert talk.transcript.following


async def test_text_that_streams_while_scrolled_up_moves_nothing_on_the_screen() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script([PARAGRAPHS, *(PARAGRAPHS + CODE)], pace=gate))
    async with talking(engine, size=(60, 16)) as talk:
        await talk.say("go")
        gate.open(1)
        await talk.until(lambda: talk.transcript.max_scroll_y > 20)
        await talk.pilot.press("pageup", "pageup")
        await talk.until(lambda: talk.transcript.max_scroll_y - talk.transcript.scroll_y > 15)
        await talk.until(lambda: not talk.transcript.settling)

        def view() -> list[str]:
            return [line[:55] for line in screen(talk).splitlines()[:8]]

        seen = view()
        for _ in range(8):
            gate.open(400)
            await talk.pilot.pause(0.1)
            await talk.until(lambda: not talk.app._batch_count)  # while it counts nothing is painted
            assert view() == seen
        gate.open(10_000)
        await talk.until(lambda: talk.footers, 60)
        assert view() == seen
