"""Drives the terminal UI in tests: the app around a scripted engine, and waiting for what should happen."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from fake_engine import FakeEngine
from specchat.tui.app import SpecchatApp, TuiOptions
from specchat.tui.screens.chat import ChatScreen
from specchat.tui.widgets.note import Note
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.status import StatusBar
from specchat.tui.widgets.transcript import Transcript
from specengine.errors import EngineError
from specengine.protocol import Load

LOAD = Load(model="/models/tiny-1b.gguf", name="tiny-1b", draft="/models/tiny-100m.gguf", draft_name="tiny-100m")


def make_load(model: str, draft: str | None) -> Load:
    if model == "nonsense":
        raise EngineError("There is no model called 'nonsense'; `specchat models list` shows them all.")
    chosen = "tiny-100m" if draft is None else draft
    return Load(model=f"/models/{model}.gguf", name=model, draft_name="" if chosen == "none" else chosen)


def options(engine: FakeEngine, **changes: object) -> TuiOptions:
    base = TuiOptions(
        make_host=lambda: engine,
        make_load=make_load,
        missing=lambda model, draft: (),
        models_dir=Path("/nowhere"),
        noise_file=Path("/nowhere/width_noise.json"),
        speed_file=Path("/nowhere/memory_speed.json"),
        config_file=Path("/nowhere/config.toml"),
        load=LOAD,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


class Talk:
    """A running app and its parts."""

    def __init__(self, app: SpecchatApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> ChatScreen:
        return self.app.chat

    @property
    def prompt(self) -> Prompt:
        return self.screen.query_one(Prompt)

    @property
    def transcript(self) -> Transcript:
        return self.screen.query_one(Transcript)

    @property
    def status(self) -> str:
        return self.screen.query_one(StatusBar).render().plain

    @property
    def questions(self) -> list[str]:
        return [item.text for item in self.transcript.items if isinstance(item, Question)]

    @property
    def answers(self) -> list[str]:
        return [answer.text for answer in self.transcript.answers]

    @property
    def footers(self) -> list[str]:
        return [answer.footer for answer in self.transcript.answers if answer.footer]

    @property
    def notes(self) -> list[str]:
        return [item.text for item in self.transcript.items if isinstance(item, Note)]

    @property
    def column(self) -> list[str]:
        """What stands in the transcript, from above: prompts behind a mark, answers and notes."""
        answers = {answer.items[-1]: answer.text for answer in self.transcript.answers}
        shown = []
        for item in self.transcript.items:
            if isinstance(item, Question | Note):
                shown.append(f"> {item.text}" if isinstance(item, Question) else item.text)
            elif item in answers:
                shown.append(answers[item])
        return shown

    @property
    def rows(self) -> list[str]:
        """What the screen shows."""
        return ["".join(part.text for part in strip) for strip in self.app.screen._compositor.render_strips()]

    @property
    def flowing(self) -> str:
        """What the screen shows as one text, without frames and scrollbars."""
        return " ".join(re.sub("[─-╿▀-▟]", " ", "\n".join(self.rows)).split())

    @property
    def app_notes(self) -> str:
        """Everything that was said beside the chat, notes in it included."""
        return "\n".join([*self.notes, *(note.message for note in self.app._notifications)])

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Waits until `condition` holds; the limit only ends a test that fails."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self.pilot.pause(0.01)

    async def say(self, text: str) -> None:
        """Puts `text` into the prompt and sends it."""
        self.prompt.recall(text, {})
        await self.pilot.pause()
        await self.prompt.action_send()
        await self.pilot.pause()

    async def idle(self) -> None:
        await self.until(lambda: not self.screen.session.busy)
        await self.pilot.pause()


@asynccontextmanager
async def talking(engine: FakeEngine, size: tuple[int, int] = (100, 30), **changes: object) -> AsyncGenerator[Talk]:
    app = SpecchatApp(options(engine, **changes))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Talk(app, pilot)
        app.exit()


class Gate:
    """Lets a scripted answer go on step by step: each `open` lets that many chunks through."""

    def __init__(self) -> None:
        self._steps = asyncio.Semaphore(0)

    async def __call__(self) -> None:
        await self._steps.acquire()

    def open(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._steps.release()
