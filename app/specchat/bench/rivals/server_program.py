"""A llama.cpp server that we start ourselves, once for each mode, and end with the bench."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from specchat.bench.rivals import leash, server_modes
from specchat.bench.rivals.child import Child, Kept
from specchat.bench.rivals.contract import Question, RivalRun, Setup, ShouldStop
from specchat.bench.rivals.measuring import weights_and_cache
from specchat.bench.rivals.server_http import Server, Unreachable
from specengine.errors import EngineError, Stopped

NAME: Final = "llama.cpp server"
_LOAD_S: Final = 600.0
_SPARE: Final = 16
"""A server ends an answer two tokens before its context is full."""
_EVERY_S: Final = 0.1


def program_path(program: str) -> str:
    """Where a program is that was named by its path, or by a name that the shell would find.

    Raises:
        EngineError: there is none.
    """
    found = shutil.which(str(Path(program).expanduser()))
    if found is None:
        raise EngineError(f"There is no program {program} to measure against; give the path of a llama-server.")
    return str(Path(found).absolute())


class ServerProgram:
    """Implements `contract.Rival`."""

    notices: tuple[str, ...] = ()

    def __init__(
        self, program: str, setup: Setup, kept: Kept, log_file: Path, modes: Sequence[str] | None = None
    ) -> None:
        """Asks the program what it can do.

        Raises:
            EngineError: there is no such program, it isn't a llama.cpp server, or has no such mode.
        """
        self._program = program_path(program)
        self._help = server_modes.Help(_said(self._program, "--help"))
        if not (self._help.knows("--port") and self._help.knows("--model")):
            raise EngineError(f"{program} is no llama.cpp server; give the path of a llama-server.")
        self.name = NAME
        self.version = _version(_said(self._program, "--version"))
        self._setup, self._kept, self._log_file = setup, kept, log_file
        self._flags = {
            mode: server_modes.flags(mode, self._help, setup.draft)
            for mode in (server_modes.possible(self._help, setup.draft) if modes is None else modes)
        }
        self.modes = {mode: server_modes.described(mode) for mode in self._flags}

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun:
        """As `contract.Rival.answer`; a mode that remembers answers gets a new process for each chat."""
        if server_modes.remembers(mode) and not question.continues:
            self._kept.drop(self.name, mode)
        server = self._kept.find(self.name, mode, _Process) or self._started(mode, should_stop)
        return server.answer(question, should_stop)

    def _started(self, mode: str, should_stop: ShouldStop) -> "_Process":
        self._kept.drop(self.name, mode)
        setup = self._setup
        files = [setup.model]
        if mode.startswith("draft-") and setup.draft is not None:
            files.append(setup.draft)
        self._kept.make_room(sum(weights_and_cache(file, setup.n_ctx) for file in files), f"{self.name} ({mode})")
        port = _free_port()
        process = _Process((self._program, *self._arguments(port), *self._flags[mode]), port, self._log_file)
        self._kept.keep(self.name, mode, process)
        process.wait_until_ready(should_stop)
        return process

    def _arguments(self, port: int) -> list[str]:
        setup = self._setup
        given = ["-m", str(setup.model), "-c", str(setup.n_ctx + _SPARE), "-t", str(setup.threads), "-np", "1"]
        given += ["--host", "127.0.0.1", "--port", str(port), "-ngl", str(setup.gpu_layers)]
        if self._help.knows("-ngld"):
            given += ["-ngld", str(setup.gpu_layers)]
        if setup.bf16:
            given += ["-ctk", "bf16", "-ctv", "bf16"]
        if self._help.knows("--cache-ram"):
            given += ["--cache-ram", "0"]  # else it keeps prompts aside, which takes time
        return given


class _Process:
    """A running server of our own."""

    def __init__(self, command: Sequence[str], port: int, log_file: Path) -> None:
        self._child = Child(leash.__name__, command, log_file)
        self._server = Server(f"http://127.0.0.1:{port}", f"The {NAME}")

    @property
    def alive(self) -> bool:
        return self._child.alive

    def close(self) -> None:
        self._child.close()

    def wait_until_ready(self, should_stop: ShouldStop) -> None:
        """Returns when the model is loaded.

        Raises:
            EngineError: the server ended, or took too long.
            Stopped: `should_stop` returned true.
        """
        deadline = time.monotonic() + _LOAD_S
        while self.alive:
            with contextlib.suppress(Unreachable):
                if self._server.healthy(should_stop) and self.alive:
                    return
            if should_stop():
                raise Stopped
            if time.monotonic() > deadline:
                raise EngineError(f"The {NAME} did not load its model within {_LOAD_S:,.0f} s; {self._log}")
            time.sleep(_EVERY_S)
        raise EngineError(f"The {NAME} refused to start{self._child.last_words()}; {self._log}")

    def answer(self, question: Question, should_stop: ShouldStop) -> RivalRun:
        """One answer, from a cache that holds the prompt."""
        try:
            return self._server.answer(question, should_stop)
        except Unreachable as error:
            self._child.abandon()
            words = self._child.last_words() or f" ({error})"
            raise EngineError(f"The {NAME} died{words}; {self._log}") from None

    @property
    def _log(self) -> str:
        return f"its log is {self._child.log.path}."


def _said(program: str, flag: str) -> str:
    try:
        ended = subprocess.run(
            (program, flag), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"{program} can't be run ({error}); give the path of a llama-server.") from None
    return ended.stdout + ended.stderr


def _version(said: str) -> str:
    for line in said.splitlines():
        if line.startswith("version:"):
            return line.removeprefix("version:").strip()
    return "unknown"


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
