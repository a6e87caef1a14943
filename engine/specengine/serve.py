"""The engine process: `python -m specengine.serve LOG` takes frames on stdin and answers on stdout.

One thread reads frames, so that Stop and Adjust reach a running answer and the end of the pipe ends the process at
once; the main thread does the work, one request at a time.
"""

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn, Protocol

from specengine import frames
from specengine.controls import Controls
from specengine.errors import EngineError, Stopped
from specengine.protocol import (
    Adjust,
    Chunk,
    Done,
    Failed,
    FromEngine,
    Generate,
    Load,
    Loaded,
    MeasureNearTie,
    MeasureWidthNoise,
    NearTie,
    Notice,
    Prefilling,
    Progress,
    Stop,
    ToEngine,
    WidthNoise,
)


class Engine(Protocol):
    """What is served: `specengine.engine.Engine`."""

    @property
    def loaded(self) -> Loaded: ...

    def generate(self, request: Generate, controls: Controls) -> Iterator[Prefilling | Chunk | Notice | Done]: ...

    def measure_width_noise(self) -> WidthNoise: ...

    def measure_near_tie(self, asked: MeasureNearTie) -> NearTie: ...

    def measure_costs(self, should_stop: Callable[[], bool]) -> None: ...

    def close(self) -> None: ...


Loader = Callable[[Load, Callable[[str, float], None], Callable[[], bool]], Engine]
"""`specengine.loading.load`: what to load, where progress goes, whether to stop."""


def main() -> NoReturn:
    """Takes over stdin and stdout for frames and serves the real engine."""
    frames_in, frames_out = claim_standard_streams()
    from specengine.loading import load

    serve(frames_in, frames_out, load, sys.argv[1] if len(sys.argv) > 1 else "its log")


def claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes that frames travel on, moved out of reach: whatever prints to fd 1 prints to the log (fd 2)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    frames_in, frames_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return frames_in, frames_out


def serve(frames_in: BinaryIO, frames_out: BinaryIO, load: Loader, log: str) -> NoReturn:
    """Answers requests until the pipe ends; `log` is how messages name the log."""
    output = _Output(frames_out)
    desk = _Desk(output)
    threading.Thread(target=_read_all, args=(frames_in, desk), name="frames", daemon=True).start()
    engine: Engine | None = None
    while True:
        if engine is not None:
            engine.measure_costs(desk.has_job)  # while there is nothing else to do
        job = desk.next_job()
        try:
            if isinstance(job.request, Load):
                if engine is not None:
                    engine.close()
                    engine = None
                engine = load(job.request, _progress(output), lambda job=job: job.controls.stop)  # type: ignore[misc]
                answer: FromEngine = engine.loaded
            elif engine is None:
                raise EngineError("No model is loaded; load one first.")
            elif isinstance(job.request, Generate):
                answer = _generate(engine, job.request, job.controls, output)
            elif isinstance(job.request, MeasureNearTie):
                answer = engine.measure_near_tie(job.request)
            else:
                answer = engine.measure_width_noise()
        except EngineError as error:
            answer = Failed(str(error), job.id)
        except Stopped:
            answer = Failed("Stopped.", job.id)
        except Exception as error:
            traceback.print_exc()
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            answer = Failed(f"The engine met an unexpected error ({what}); the details are in {log}.", job.id)
        # The desk is free before the answer leaves: the next request may follow it at once.
        desk.clear()
        output.send(answer)


def _generate(engine: Engine, request: Generate, controls: Controls, output: "_Output") -> Done:
    done: Done | None = None
    for message in engine.generate(request, controls):
        if isinstance(message, Done):
            done = message
        else:
            output.send(message)
    if done is None:
        raise RuntimeError("the answer ended without a Done")
    return done


def _progress(output: "_Output") -> Callable[[str, float], None]:
    """Sends progress at most once a percent: the runtime reports every tensor."""
    last = ("", -1.0)

    def report(what: str, fraction: float) -> None:
        nonlocal last
        if what != last[0] or fraction >= last[1] + 0.01 or fraction >= 1 > last[1]:
            last = (what, fraction)
            output.send(Progress(what, fraction))

    return report


@dataclass(slots=True)
class _Job:
    """A request being done, with the controls that the reading thread may change."""

    request: Load | Generate | MeasureWidthNoise | MeasureNearTie
    controls: Controls = field(default_factory=Controls)

    @property
    def id(self) -> int | None:
        return self.request.id if isinstance(self.request, Generate) else None


class _Output:
    """Whole frames from two threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: FromEngine) -> None:
        data = memoryview(frames.frame(message))
        with self._lock:
            try:
                while data:
                    data = data[self._stream.write(data) :]
            except OSError:
                os._exit(0)  # nobody reads any more


class _Desk:
    """The one request at work."""

    def __init__(self, output: _Output) -> None:
        self._output = output
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._job: _Job | None = None

    def next_job(self) -> _Job:
        return self._jobs.get()

    def has_job(self) -> bool:
        return not self._jobs.empty()

    def clear(self) -> None:
        with self._lock:
            self._job = None

    def take(self, message: ToEngine) -> None:
        """A message from the app: live controls act on the running request, others wait their turn or are refused."""
        with self._lock:
            job = self._job
            if isinstance(message, Stop):
                if job is not None and job.id in (message.id, None):
                    job.controls.stop = True
            elif isinstance(message, Adjust):
                if job is not None:
                    job.controls.speculation = message.speculation
                    job.controls.gamma = message.gamma
            elif job is None:
                self._job = _job(message)
                self._jobs.put(self._job)
            else:
                id = message.id if isinstance(message, Generate) else None
                self._output.send(Failed("The engine is busy; stop the running answer first.", id))


def _job(message: Load | Generate | MeasureWidthNoise | MeasureNearTie) -> _Job:
    if isinstance(message, Generate):
        return _Job(message, Controls(speculation=message.speculation, gamma=message.gamma))
    return _Job(message)


def _read_all(stream: BinaryIO, desk: _Desk) -> None:
    """Ends the process with the pipe, whatever the main thread is doing."""
    try:
        while (message := frames.read(stream)) is not None:
            desk.take(message)
    except Exception:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
