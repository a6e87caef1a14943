"""A rival's process that is talked to in `lines`, as the bench sees it."""

from pathlib import Path
from typing import Final

import msgspec

from specchat.bench.rivals.child import Child
from specchat.bench.rivals.contract import Question, RivalRun, ShouldStop
from specchat.bench.rivals.lines import Ask, Told
from specchat.bench.rivals.measuring import decoding_s, patience_s
from specchat.bench.rivals.patience import patiently
from specengine.errors import EngineError

_LOAD_S: Final = 600.0


class Worker:
    """A module of ours that serves `lines`."""

    def __init__(self, name: str, module: str, log_file: Path, n_ctx: int) -> None:
        """Args:
        name: what the rival is called.
        n_ctx: tokens that it has room for.
        """
        self.n_ctx = n_ctx
        self._name = name
        self._asked: set[tuple[int, ...]] = set()
        self._child = Child(module, (), log_file, pipe=True)

    @property
    def alive(self) -> bool:
        return self._child.alive

    def close(self) -> None:
        self._child.close()

    def start(self, message: msgspec.Struct, should_stop: ShouldStop) -> None:
        """Has it load what the message says.

        Raises:
            EngineError: it failed or died, or was not done in time.
            Stopped: `should_stop` returned true.
        """
        self._told(message, should_stop, _LOAD_S)

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun:
        """Its answer, from empty caches the first time that it is asked this.

        Raises:
            EngineError, Stopped: as `start`.
        """
        sampling = question.sampling
        ask = Ask(
            question.prompt,
            question.max_tokens,
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
            sampling.min_p,
            sampling.seed % 2**32,
            cold=not question.continues and question.prompt not in self._asked,
            mode=mode,
        )
        told = self._told(ask, should_stop, patience_s(question))
        self._asked.add(question.prompt)
        return RivalRun(
            tokens=told.tokens,
            n_tokens=len(told.tokens),
            seconds=decoding_s(told.seconds, told.reading_s, len(told.tokens)),
            first_token_s=told.first_token_s,
            target_passes=told.target_passes,
            drafted=told.drafted,
            accepted=told.accepted,
        )

    def _told(self, message: msgspec.Struct, should_stop: ShouldStop, limit_s: float) -> Told:
        def talk() -> bytes:
            self._child.stdin.write(msgspec.json.encode(message) + b"\n")
            self._child.stdin.flush()
            return self._child.stdout.readline()

        try:
            line = patiently(talk, should_stop, limit_s, self._child.abandon)
        except TimeoutError as error:
            raise EngineError(f"{self._name} was given up: {error}.") from None
        except OSError:
            line = b""
        if not line:
            words = self._child.last_words()
            raise EngineError(f"{self._name}'s process ended by itself{words}; its log is {self._child.log.path}.")
        told = msgspec.json.decode(line, type=Told)
        if told.error:
            raise EngineError(f"{self._name} failed ({told.error}); the details are in {self._child.log.path}.")
        return told
