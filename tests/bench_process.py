"""`specchat bench` in a process of its own."""

import signal
import subprocess
import sys

SPECCHAT = (sys.executable, "-c", "from specchat.cli import main; main()", "bench")


def bench(*arguments: str, interrupt_at: str | None = None) -> tuple[int, str, str]:
    """Runs to the end, or to Ctrl+C after a line of stderr; returns exit code, stdout and stderr."""
    process = subprocess.Popen((*SPECCHAT, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    early = []
    if interrupt_at is not None:
        for line in process.stderr:
            early.append(line)
            if line.strip() == interrupt_at:
                process.send_signal(signal.SIGINT)
                break
    out, err = process.communicate(timeout=120)
    return process.returncode, out, "".join(early) + err
