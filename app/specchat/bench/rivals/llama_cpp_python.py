"""llama-cpp-python's own `Llama`, plain and with its prompt-lookup class."""

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from specchat.bench.rivals import llama_worker
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.contract import Question, RivalRun, Setup, ShouldStop
from specchat.bench.rivals.llama_worker import Start
from specchat.bench.rivals.measuring import weights_and_cache
from specchat.bench.rivals.worker import Worker
from specengine.errors import EngineError

NAME: Final = "llama-cpp-python"
KINDS: Final = ("plain", "lookup")
_MODES: Final = ("plain", "lookup:10", "lookup:2")
"""Its class drafts 10 tokens unless told otherwise; its README advises 2 where there is no GPU."""
_LOOKUP: Final = re.compile(r"lookup:([1-9]\d{0,2})(?::([1-9]\d?))?")
_NGRAM: Final = 2
_BATCH: Final = 512


class LlamaCppPython:
    """Implements `contract.Rival`, with a process for each mode."""

    notices: tuple[str, ...] = ()

    def __init__(self, setup: Setup, kept: Kept, log_file: Path, modes: Sequence[str] | None = None) -> None:
        """Starts nothing yet.

        Raises:
            EngineError: there is no such mode.
        """
        self.name = NAME
        self.version = version("llama-cpp-python")
        self.modes = {mode: _described(mode) for mode in (_MODES if modes is None else modes)}
        self._setup, self._kept, self._log_file = setup, kept, log_file

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun:
        """As `contract.Rival.answer`; its lookup keeps nothing between answers, so there always is one."""
        return self._worker(mode, question, should_stop).answer(mode, question, should_stop)

    def _worker(self, mode: str, question: Question, should_stop: ShouldStop) -> Worker:
        """The process of that mode, with a context just large enough: with lookup, `Llama` keeps a row of logits for
        each token of it."""
        n_ctx = -(-(len(question.prompt) + question.max_tokens + 1) // 256) * 256
        worker = self._kept.find(NAME, mode, Worker)
        if worker is not None and worker.n_ctx >= n_ctx:
            return worker
        self._kept.drop(NAME, mode)
        needed = weights_and_cache(self._setup.model, n_ctx)
        lookup = _lookup(mode)
        if lookup:
            needed += 4 * self._setup.n_vocab * (n_ctx + _BATCH)
        self._kept.make_room(needed, f"{NAME} ({mode})")
        worker = Worker(NAME, llama_worker.__name__, self._log_file, n_ctx)
        self._kept.keep(NAME, mode, worker)
        setup = self._setup
        worker.start(Start(str(setup.model), n_ctx, setup.threads, setup.gpu_layers, setup.bf16, lookup), should_stop)
        return worker


def _lookup(mode: str) -> tuple[int, int] | None:
    """Tokens of a draft and of the n-gram it is looked up by.

    Raises:
        EngineError: there is no such mode.
    """
    if mode == "plain":
        return None
    found = _LOOKUP.fullmatch(mode)
    if found is None:
        raise EngineError(f"{NAME} has no mode {mode}; it has plain and lookup:TOKENS[:NGRAM].")
    return int(found[1]), int(found[2] or _NGRAM)


def _described(mode: str) -> str:
    lookup = _lookup(mode)
    if lookup is None:
        return "no speculation"
    return f"its prompt lookup: drafts of {lookup[0]} tokens after n-grams of up to {lookup[1]}"
