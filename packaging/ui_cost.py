"""What the terminal UI costs an answer: decoding rates in the chat and headless (`-p`), and the UI's processor time.

Both write the same answers, in turns: prose, plainly, and an edit of pasted code, with speculation. The chat runs in a
pty; rates are the engine's own. Linux only. Run it alone on the machine, with the test dependencies installed and the
model at hand: `.venv/bin/python packaging/ui_cost.py qwen2.5-coder-1.5b`.
"""

import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pexpect

from specchat import paths

ROUNDS = 3
TOKENS = 300
SIZE = (40, 120)
START = [sys.executable, "-m", "specchat"]
PROSE = ("prose, plain", "off", "Explain in detail what a KV cache is, how it is used, and what it costs.")
EDIT = (
    "edit, speculative",
    "auto",
    "Rename `lines` to `rows` in this code and write out all of it:\n\n"
    + textwrap.dedent(inspect.getsource(textwrap.TextWrapper)),
)
GOAL = 0.93
ANSWERED = "tok/s ·"
"""Stands below a finished answer."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer's rate in tokens per second, and what the UI's process took for a token once the prompt was read."""

    rate: float
    ui_cpu_s: float = 0.0


def main(model: str) -> None:
    """Measures, and prints the table."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"SPECCHAT_MODELS": str(paths.models_dir()), "SPECCHAT_HOME": home}
        _headless(["-m", model, "--max-tokens", "8"], "Hello")
        _compare(model)


def _compare(model: str) -> None:
    print(f"{'':20}{'headless':>10}{'chat':>10}{'ratio':>8}  range         UI's CPU s per 1,000 tokens", flush=True)
    for label, spec, prompt in (PROSE, EDIT):
        flags = ["-m", model, "--draft", "none", "--spec", spec, "--temperature", "0", "--max-tokens", str(TOKENS)]
        pairs = [_pair(number, flags, prompt) for number in range(ROUNDS)]
        ratios = [chat.rate / headless.rate for headless, chat in pairs]
        bare = statistics.median(headless.rate for headless, _ in pairs)
        shown = statistics.median(chat.rate for _, chat in pairs)
        cpu = statistics.median(1000 * chat.ui_cpu_s for _, chat in pairs)
        ratio = statistics.median(ratios)
        print(f"{label:20}{bare:>10.2f}{shown:>10.2f}{ratio:>8.3f}  {min(ratios):.3f}–{max(ratios):.3f}{cpu:>15.2f}")
        print(f"{'':20}at least {GOAL}: {'yes' if ratio >= GOAL else 'no'}", flush=True)


def _pair(number: int, flags: list[str], prompt: str) -> tuple[Answered, Answered]:
    """Headless and in the chat, in an order that changes."""
    if number % 2:
        chat = _in_chat(flags, prompt)
        return _headless(flags, prompt), chat
    return _headless(flags, prompt), _in_chat(flags, prompt)


def _headless(flags: list[str], prompt: str) -> Answered:
    run = subprocess.run([*START, *flags, "--json", "-p", prompt], check=True, stdout=subprocess.PIPE, text=True)
    return Answered(_rate(json.loads(run.stdout)["stats"]))


def _in_chat(flags: list[str], prompt: str) -> Answered:
    program = pexpect.spawn(START[0], [*START[1:], *flags], dimensions=SIZE, timeout=600)
    program.delaybeforesend = None
    try:
        program.expect(rb"/[\d,]+ ctx")
        program.send(f"\x1b[200~{prompt}\x1b[201~")
        _read_for(program, 1)
        program.send("\r")
        program.expect(rb"\d tok/s")
        before = _cpu_s(program.pid)
        program.expect_exact(ANSWERED.encode())
        spent = _cpu_s(program.pid) - before
        program.send("\x11")
        program.expect(pexpect.EOF)
    finally:
        program.close(force=True)
    stats = _last_answer()
    return Answered(_rate(stats), spent / stats["emitted"])


def _read_for(program: "pexpect.spawn[bytes]", seconds: float) -> None:
    program.expect([pexpect.TIMEOUT, pexpect.EOF], timeout=seconds)


def _cpu_s(pid: int) -> float:
    """Processor time of one process, without its children's."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _last_answer() -> dict[str, Any]:
    """Stats of the newest chat's answer, as the chat kept them."""
    listed = json.loads(_said("chats", "list", "--json"))["chats"]
    chat = json.loads(_said("chats", "export", str(listed[0]["id"]), "--json"))
    stats: dict[str, Any] = chat["turns"][-1]["answer"]["stats"]
    return stats


def _said(*arguments: str) -> str:
    return subprocess.run([*START, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def _rate(stats: dict[str, Any]) -> float:
    return float(stats["emitted"] / (stats["draft_s"] + stats["verify_s"] + stats["host_s"]))


if __name__ == "__main__":
    main(sys.argv[1])
