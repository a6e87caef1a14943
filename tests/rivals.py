"""What the tests of the bench's rivals share."""

import os
import time
from pathlib import Path

from specchat.bench.rivals.contract import Question, Setup
from specengine.settings import Sampling

GREEDY = Sampling(temperature=0)


def setup_of(model: Path, *, draft: Path | None = None, n_ctx: int = 1024, n_vocab: int = 500) -> Setup:
    return Setup(model, draft, n_ctx=n_ctx, n_vocab=n_vocab, threads=1, gpu_layers=0)


def question(*prompt: int, max_tokens: int = 8, sampling: Sampling = GREEDY) -> Question:
    return Question(prompt or tuple(range(10, 30)), max_tokens, sampling)


def never() -> bool:
    return False


def ended(pid: int) -> bool:
    """The process ends; waits for that for a minute."""
    for _ in range(1200):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True  # nobody waits for it in a container without an init
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False
