"""The real terminal UI on a scripted engine, as a program; what it was asked is appended to the file REQUESTS."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from chatting import options
from fake_engine import FakeEngine, Script
from specchat.resumed import LAST, opened
from specchat.tui.app import run
from specengine.protocol import Adjust, Chat, Chunk, Done, Generate, Notice, Prefilling


class RecordingEngine(FakeEngine):
    """Counts slowly to 120, or without end after "… on"; "crash" ends it in the middle, "boom" breaks the UI itself."""

    async def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]:
        assert isinstance(request.prompt, Chat)
        prompt = request.prompt.messages[-1].content
        record({"prompt": prompt, "speculation": request.speculation})
        if prompt == "boom":
            raise ZeroDivisionError("a fault in the UI")
        words = [f"word{number}\n\n" for number in range(100_000 if prompt.endswith(" on") else 120)]
        self.scripts.append(
            Script(words, crash_after=5 if prompt == "crash" else None, pace=lambda: asyncio.sleep(0.02))
        )
        async for event in super().generate(request):
            yield event

    def adjust(self, adjust: Adjust) -> None:
        record({"adjust": adjust.speculation})
        super().adjust(adjust)


def record(entry: dict[str, str]) -> None:
    with Path(os.environ["REQUESTS"]).open("a") as file:
        file.write(json.dumps(entry) + "\n")


def kept() -> dict[str, object]:
    """With CHATS, chats are kept in this file, and the last one there is goes on."""
    if not os.environ.get("CHATS"):
        return {}
    file = Path(os.environ["CHATS"])
    return {"chats_file": file, "resume": opened(file, LAST) if file.exists() else None}


if __name__ == "__main__":
    try:
        history = os.environ.get("HISTORY")
        sys.exit(run(options(RecordingEngine(), history_file=Path(history) if history else None, **kept())))
    except ZeroDivisionError as error:
        sys.exit(f"It failed: {error}.")
