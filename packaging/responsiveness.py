"""How long a key takes to be painted while an answer streams, and what the streaming costs the processor.

The real chat runs in a pty on a scripted engine that writes 100 tokens a second: 2,000 lines of prose and code in a
minute. Meanwhile keys are pressed at a typist's pace, and each is timed from the press to its glyph in the output. Run
it alone on the machine, with the test dependencies installed: `.venv/bin/python packaging/responsiveness.py`.
"""

import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pexpect

TESTS = Path(__file__).resolve().parent.parent / "tests"
LINES = 2000
TOKENS_A_LINE = 3
RATE = 100
"""Tokens per second."""
QUARTERS = 4
SIZE = (40, 120)
PAUSE_S = (0.08, 0.2)
"""Between one key that was painted and the next one."""
GLYPHS = "".join(map(chr, range(0x100, 0x17F)))
"""Characters that no answer holds."""
ERASED_AFTER = 60
GOAL_MS = 50


@dataclass(frozen=True, slots=True)
class Press:
    """One key."""

    at_s: float
    painted_ms: float


@dataclass(frozen=True, slots=True)
class Mark:
    """The program's own clock and processor time, after so many tokens."""

    tokens: int
    at_s: float
    cpu_s: float


def answer() -> Iterator[str]:
    """The tokens: stretches of prose with a list, and blocks of code."""
    for line in range(LINES):
        match line % 50:
            case 0:
                words = ("\n", "## Part ", f"{line}\n\n")
            case place if place < 20:
                words = (f"Line {line} has ", "some *plain* words and ", "`code`, as answers do.\n")
            case 20:
                words = ("\n", "```", "python\n")
            case place if place < 49:
                words = (f"    value_{line} = ", f"compute({line}, 'text')", "  # a remark\n")
            case _:
                words = ("```", "\n", "\n")
        yield from words


def main() -> None:
    """Measures, and prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        marks_file = Path(folder) / "marks.json"
        presses = _type(marks_file)
        marks = [Mark(*mark) for mark in json.loads(marks_file.read_text())]
    print(f"{LINES:,} lines at {RATE} tokens/s, a key about every {1000 * sum(PAUSE_S) / 2:.0f} ms\n")
    print("lines             keys   p50 ms   p95 ms   max ms   CPU s per 1,000 tokens")
    for number, (start, end) in enumerate(itertools.pairwise(marks)):
        label = f"{number * LINES // QUARTERS + 1:,}–{(number + 1) * LINES // QUARTERS:,}"
        print(_row(label, [press for press in presses if start.at_s <= press.at_s < end.at_s], start, end))
    print(_row("all", presses, marks[0], marks[-1]))
    p95 = _quantile([press.painted_ms for press in presses], 0.95)
    print(f"\nThe goal, p95 below {GOAL_MS} ms, is {'met' if p95 < GOAL_MS else 'missed'}.")


def _type(marks_file: Path) -> list[Press]:
    program = pexpect.spawn(sys.executable, [__file__, "--chat", str(marks_file)], dimensions=SIZE, timeout=60)
    program.delaybeforesend = None
    pause = random.Random(0)
    presses: list[Press] = []
    try:
        program.expect_exact("SPEC")
        program.send("go")
        program.expect_exact("go")
        time.sleep(1)
        program.send("\r")
        program.expect_exact("Line")
        while not marks_file.exists():
            glyph = GLYPHS[len(presses) % len(GLYPHS)]
            started = time.monotonic()
            program.send(glyph)
            program.expect_exact(glyph.encode())
            presses.append(Press(started, 1000 * (time.monotonic() - started)))
            if len(presses) % ERASED_AFTER == 0:
                program.send("\x15")
            _read_for(program, pause.uniform(*PAUSE_S))
        program.send("\x11")
        program.expect(pexpect.EOF)
    finally:
        program.close(force=True)
    return presses


def _read_for(program: "pexpect.spawn[bytes]", seconds: float) -> None:
    """Goes on reading as a terminal does: a full pty would hold the program up."""
    program.expect([pexpect.TIMEOUT, pexpect.EOF], timeout=seconds)


def _row(label: str, presses: list[Press], start: Mark, end: Mark) -> str:
    times = [press.painted_ms for press in presses]
    cost = 1000 * (end.cpu_s - start.cpu_s) / (end.tokens - start.tokens)
    p50, p95 = _quantile(times, 0.5), _quantile(times, 0.95)
    return f"{label:<14}{len(times):>8}{p50:>9.1f}{p95:>9.1f}{max(times):>9.1f}{cost:>25.2f}"


def _quantile(values: list[float], share: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(100 * share) - 1]


def chat(marks_file: Path) -> int:
    """The program that is measured; writes the marks when the answer is over."""
    sys.path.insert(0, str(TESTS))
    from chatting import options
    from fake_engine import FakeEngine, stats_after
    from specchat.tui.app import run
    from specengine.protocol import Chunk, Done, Generate, Notice, Prefilling, Token

    class Writer(FakeEngine):
        """Writes each token when it is due; what came too late comes at once, as from a pipe."""

        async def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]:
            start, total = time.monotonic(), LINES * TOKENS_A_LINE
            marks = [Mark(0, start, time.process_time())]
            for number, text in enumerate(answer(), 1):
                await asyncio.sleep(max(0, start + number / RATE - time.monotonic()))
                yield Chunk(request.id, (Token(text, "target"),), stats_after(number))
                if number % (total // QUARTERS) == 0:
                    marks.append(Mark(number, time.monotonic(), time.process_time()))
            yield Done(request.id, "end", tuple(range(total)), stats_after(total))
            part = marks_file.with_suffix(".part")
            part.write_text(json.dumps([[mark.tokens, mark.at_s, mark.cpu_s] for mark in marks]))
            part.replace(marks_file)

    return run(options(Writer()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--chat"]:
        sys.exit(chat(Path(sys.argv[2])))
    main()
