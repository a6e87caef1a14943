"""transformers' own `generate`: plain, with its prompt lookup, and with its assistant model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from specchat.bench.rivals import transformers_worker
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.contract import Question, RivalRun, ShouldStop
from specchat.bench.rivals.transformers_worker import Start
from specchat.bench.rivals.worker import Worker
from specengine.backends.torch_nf4.options import Precision, TorchDevice
from specengine.backends.torch_nf4.plan import plan
from specengine.errors import EngineError
from specengine.model_folder import read_folder

NAME: Final = "transformers"
KINDS: Final = ("plain", "lookup", "draft")
_MODES: Final = ("plain", "lookup:10", "draft")
_MODE: Final = re.compile(r"plain|lookup:([1-9]\d{0,2})|draft(?::([1-9]\d?))?")
_WORKSPACE: Final = 1200 * 10**6
"""Bytes for the libraries, activations, and tensors at full precision while they are quantised."""
_CACHES: Final = 6
"""KV caches at a time, of prompts and of the answer that runs."""


@dataclass(frozen=True, slots=True)
class Folders:
    """What our torch engine runs, and how."""

    target: Path
    draft: Path | None
    n_ctx: int
    threads: int
    device: TorchDevice
    precision: Precision
    end_of_generation: tuple[int, ...]


class Transformers:
    """Implements `contract.Rival`, with one process for all modes: what they load is the same."""

    notices: tuple[str, ...] = ()

    def __init__(self, folders: Folders, kept: Kept, log_file: Path, modes: Sequence[str] | None = None) -> None:
        """Starts nothing yet.

        Raises:
            EngineError: there is no such mode, or no draft model for it.
        """
        self.name = NAME
        self.version = version("transformers")
        chosen = [mode for mode in _MODES if mode != "draft" or folders.draft] if modes is None else modes
        self.modes = {mode: _described(mode, folders.draft) for mode in chosen}
        self._folders, self._kept, self._log_file = folders, kept, log_file

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun:
        """As `contract.Rival.answer`; `generate` keeps nothing between answers, so there always is one. The assistant
        reads the prompt within its seconds, as our draft model does."""
        return self._worker(should_stop).answer(mode, question, should_stop)

    def _worker(self, should_stop: ShouldStop) -> Worker:
        worker = self._kept.find(NAME, "", Worker)
        if worker is not None:
            return worker
        folders, draft = self._folders, self._draft()
        self._kept.drop(NAME, "")
        self._kept.make_room(self._needed(), NAME)
        worker = Worker(NAME, transformers_worker.__name__, self._log_file, folders.n_ctx)
        self._kept.keep(NAME, "", worker)
        worker.start(
            Start(
                str(folders.target),
                str(draft) if draft else None,
                folders.device,
                folders.precision,
                folders.threads,
                folders.end_of_generation,
            ),
            should_stop,
        )
        return worker

    def _draft(self) -> Path | None:
        return self._folders.draft if any(mode.startswith("draft") for mode in self.modes) else None

    def _needed(self) -> int:
        """Bytes of memory; on a card those of the process alone."""
        if self._folders.device == "cuda":
            return _WORKSPACE
        sizes = [
            plan(read_folder(one), self._folders.precision, "cpu")
            for one in (self._folders.target, self._draft())
            if one
        ]
        kv = sum(one.kv_per_token for one in sizes) * self._folders.n_ctx
        return sum(one.weights for one in sizes) + _CACHES * kv + _WORKSPACE


def _described(mode: str, draft: Path | None) -> str:
    """The mode in words.

    Raises:
        EngineError: there is no such mode, or no draft model for it.
    """
    found = _MODE.fullmatch(mode)
    if found is None:
        raise EngineError(f"{NAME} has no mode {mode}; it has plain, lookup:TOKENS and draft[:TOKENS].")
    kind = mode.partition(":")[0]
    if kind == "plain":
        return "no speculation"
    if kind == "lookup":
        return f"prompt_lookup_num_tokens {found[1]}"
    if draft is None:
        raise EngineError(f"{NAME} can't be run as {mode}: no draft model is loaded; name one with --draft.")
    return "assistant_model" + (f", num_assistant_tokens {found[2]}" if found[2] else "")
