"""One completion: the model is loaded, the gap is filled, the text streams to stdout."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from specchat import figures, foreground
from specchat.complete import document as documents
from specchat.complete.document import Document
from specchat.complete.ending import Ending, Until
from specchat.complete.place import Gap, Place, line_start, newlines
from specchat.folding import say
from specchat.foreground import INTERRUPTED
from specchat.host import Host
from specengine.errors import EngineError
from specengine.protocol import Chunk, Done, Generate, Infill, Load, Loaded
from specengine.settings import Limits, Sampling, Speculation

CODER = "qwen2.5-coder-0.5b"
"""A small model of the catalogue that can fill in gaps."""
MAX_TOKENS = 256
"""Most tokens of a completion where the user says nothing: some forty lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completing:
    """What is to be completed and how."""

    document: Document
    place: Place
    gap: Gap
    load: Load
    sampling: Sampling
    limits: Limits
    until: Until
    speculation: Speculation
    gamma: int | None
    lookup: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What happens to the completion besides being printed."""

    apply: bool
    """Write it into the file."""
    json: bool
    stats: bool


def complete(asked: Completing, output: Output) -> int:
    """Prints the completion; returns the exit code.

    Raises:
        EngineError: one sentence; no file was changed.
    """

    async def work(host: Host, interrupted: asyncio.Event) -> int:
        loaded = await foreground.load(host, asked.load)
        if not loaded.infill:
            raise EngineError(no_infill(loaded.name))
        text, done = await _filled(asked, host, interrupted, printing=not output.json)
        applied = output.apply and bool(text) and not interrupted.is_set()
        if applied:
            documents.write(asked.document, asked.document.filled(asked.gap, text))
        if output.json:
            foreground.write(json.dumps(_as_json(asked, text, applied, done, loaded), ensure_ascii=False) + "\n")
        if said := news(asked.place, text, output.apply, interrupted.is_set()):
            say(said)
        if output.stats:
            say(figures.in_words(done, loaded, asked.sampling.seed), figures.HANGING)
        return INTERRUPTED if interrupted.is_set() else 0

    return foreground.run(work)


def news(place: Place, text: str, apply: bool, interrupted: bool) -> str:
    """What a person should know besides the completion; empty where that is nothing."""
    if interrupted:
        return f"Interrupted: {place.file} was left as it was." if apply else ""
    if not text:
        return "The model has nothing to add there."
    lines = text.count("\n") + 1
    return f"{place}: {lines:,} {'line' if lines == 1 else 'lines'} written." if apply else ""


def no_infill(model: str) -> str:
    """Why a model doesn't complete, and what does."""
    return f"{model} can't fill in a gap: it has no fill-in-the-middle tokens; choose a code model, such as {CODER}."


def request(id: int, infill: Infill, asked: Completing) -> Generate:
    return Generate(
        id=id,
        prompt=infill,
        sampling=asked.sampling,
        limits=asked.limits,
        speculation=asked.speculation,
        gamma=asked.gamma,
        lookup=asked.lookup,
    )


async def _filled(asked: Completing, host: Host, interrupted: asyncio.Event, printing: bool) -> tuple[str, Done]:
    """The completion, printed as it comes."""
    document, gap = asked.document, asked.gap
    infill = Infill(document.readable(0, gap.start), document.readable(gap.end))
    ending = Ending(asked.until, document.text[line_start(document.text, gap.start) : gap.start])
    parts: list[str] = []
    done: Done | None = None
    async for message in foreground.answer(host, request(foreground.FIRST, infill, asked), interrupted):
        if isinstance(message, Chunk):
            if part := newlines(ending.push(message.text)):
                parts.append(part)
                if printing:
                    foreground.write(part)
            if ending.reached:
                host.stop(foreground.FIRST)
        else:
            done = message
    assert done is not None
    if printing and parts:
        foreground.end_line_on_terminal(parts[-1])
    return "".join(parts), done


def _as_json(asked: Completing, text: str, applied: bool, done: Done, loaded: Loaded) -> dict[str, Any]:
    place = asked.place
    return {
        "text": text,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "applied": applied,
        "stats": figures.as_json(done, loaded, asked.sampling.seed),
    }
