"""A real engine process that plays a script instead of running a model: `python scripted_engine.py LOG`.

What it does is asked for by the model's path in Load ("fails", "aborts", "hangs", anything else loads) and by the
prompt's text in Generate: "say A B C" emits these words, and so on as listed in `_answer`.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from specengine.controls import Controls
from specengine.errors import EngineError, Stopped
from specengine.protocol import (
    Chat,
    Chunk,
    Done,
    Generate,
    Infill,
    Load,
    Loaded,
    MeasureNearTie,
    NearTie,
    Notice,
    Prefilling,
    Reason,
    Token,
    WidthNoise,
)
from specengine.serve import claim_standard_streams, serve
from specengine.stats import SourceStats, Stats


class ScriptedEngine:
    """Answers by what the prompt says."""

    def __init__(self, load: Load) -> None:
        self.loaded = Loaded(
            name=load.name or Path(load.model).stem,
            path=load.model,
            backend="scripted",
            device=f"process {os.getpid()}",
            n_ctx=load.n_ctx or 8192,
            n_vocab=1000,
            draft=load.draft_name if load.draft else None,
            template=Path(load.model).stem != "base",
        )

    def generate(self, request: Generate, controls: Controls) -> Iterator[Prefilling | Chunk | Notice | Done]:
        yield from _Answer(request, controls).messages()

    def measure_width_noise(self) -> WidthNoise:
        return WidthNoise(0.0, 0.0, True)

    def measure_near_tie(self, asked: MeasureNearTie) -> NearTie:
        return NearTie(float(len(asked.shared)), float(sum(asked.tokens)), False)

    def measure_costs(self, should_stop: Callable[[], bool]) -> None:
        pass

    def close(self) -> None:
        print("closed", file=sys.stderr)


class _Answer:
    def __init__(self, request: Generate, controls: Controls) -> None:
        self.id = request.id
        self.request = request
        self.text = _text(request)
        self.controls = controls
        self.stats = Stats(prompt_tokens=len(self.text.split()), sources={"lookup": SourceStats(1, 4, 3)})

    def messages(self) -> Iterator[Prefilling | Chunk | Notice | Done]:
        # The last line is the script: piped text and files stand above it.
        order, _, rest = self.text.splitlines()[-1].partition(" ")
        match order:
            case "abort":
                print("GGML_ASSERT(the script says so) failed", file=sys.stderr, flush=True)
                os.abort()
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                yield Prefilling(self.id, 0, 100)
                while not self.controls.stop:
                    time.sleep(0.005)
                yield self.done("stopped")
            case "deaf":
                yield Prefilling(self.id, 0, 100)
                time.sleep(3600)
            case "print":
                print("noise on stdout")
                os.write(1, b"native noise on fd 1\n")
                yield from self.say(rest.split())
            case "refuse":
                raise EngineError("The prompt does not fit. Raise --ctx.")
            case "crash":
                raise ZeroDivisionError("in the script")
            case "notice":
                yield Notice(self.id, rest)
                yield from self.say(["noticed"])
            case "endless":
                yield from self.endless()
            case "length":
                yield from self.say([str(len(self.text))])
            case "request":
                yield from self.say([repr(self.request)])
            case "pid":
                yield from self.say([str(os.getpid())])
            case "burst":
                for number in range(int(rest)):
                    yield self.chunk(f"{number} ")
                yield self.done("end")
            case _:
                yield from self.say(rest.split())

    def say(self, words: list[str]) -> Iterator[Prefilling | Chunk | Notice | Done]:
        yield Prefilling(self.id, 1, 1)
        for index, word in enumerate(words):
            yield self.chunk(word if index == 0 else f" {word}")
        yield self.done("end")

    def endless(self) -> Iterator[Prefilling | Chunk | Notice | Done]:
        """Emits the speculation in force until it is stopped."""
        while not self.controls.stop:
            yield self.chunk(f"{self.controls.speculation} ")
            time.sleep(0.002)
        yield self.done("stopped")

    def chunk(self, text: str) -> Chunk:
        self.stats.emitted += 1
        self.stats.target_passes += 1
        self.stats.verify_s += 0.5
        return Chunk(self.id, (Token(text, "target"),), self.stats)

    def done(self, reason: Reason) -> Done:
        return Done(self.id, reason, tuple(range(self.stats.emitted)), self.stats)


def load(load: Load, progress: Callable[[str, float], None], should_stop: Callable[[], bool]) -> ScriptedEngine:
    for percent in range(1001):
        progress("Loading", percent / 1000)
    match Path(load.model).stem:
        case "fails":
            raise EngineError("This file is no model. Choose another one.")
        case "aborts":
            os.abort()
        case "hangs":
            while not should_stop():
                time.sleep(0.005)
            raise Stopped
        case "deaf":
            time.sleep(3600)
    return ScriptedEngine(load)


def _text(request: Generate) -> str:
    match request.prompt:
        case Chat(messages):
            return messages[-1].content
        case Infill(prefix, suffix):
            return prefix + suffix
        case raw:
            return raw.text


if __name__ == "__main__":
    frames_in, frames_out = claim_standard_streams()
    serve(frames_in, frames_out, load, sys.argv[1])
