"""A llama.cpp server that runs already, as whoever started it wanted it."""

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final
from urllib.parse import urlsplit

from specchat.bench.rivals.contract import Question, RivalRun, Setup, ShouldStop
from specchat.bench.rivals.server_http import Props, Server, Unreachable
from specchat.bench.rivals.server_modes import remembers
from specengine.errors import EngineError
from specengine.settings import Sampling

_AS_IT_RUNS: Final = "as it runs"
_MEANINGS: Final = {"plain": "no speculation", _AS_IT_RUNS: "it doesn't tell whether it speculates"}
_PROBE: Final = Question((1,), 1, Sampling(temperature=0))


class ServerAtUrl:
    """Implements `contract.Rival`, with the one mode that the server was started in."""

    def __init__(self, url: str, setup: Setup, should_stop: ShouldStop) -> None:
        """Asks the server what it serves, and how.

        Raises:
            EngineError: nothing answers there, it isn't a llama.cpp server, or it serves another model.
            Stopped: `should_stop` returned true.
        """
        self.name = f"llama.cpp server at {urlsplit(url).netloc}"
        self._server = Server(url, f"The server at {url}")
        try:
            props = self._server.props(should_stop)
            _check(props, setup, self._server)
            settings = self._server.complete(_PROBE, should_stop, reuse=False).generation_settings
        except Unreachable as error:
            raise EngineError(f"No server answers at {url} ({error}); start it first.") from None
        kinds = settings.get("speculative.types")
        mode = _mode(str(kinds)) if kinds is not None else _AS_IT_RUNS
        self.version = props.build_info or "unknown"
        self.modes = {mode: _MEANINGS.get(mode, f"--spec-type {mode}")}
        self._remembers = mode not in _MEANINGS and any(remembers(kind) for kind in mode.split(","))
        self.notices = (_remembering(self.name),) if self._remembers else ()
        self._n_ctx = props.default_generation_settings.n_ctx

    def answer(self, mode: str, question: Question, should_stop: ShouldStop) -> RivalRun | None:
        """As `contract.Rival.answer`; None for a second answer where the server remembers the first."""
        assert mode in self.modes
        room = len(question.prompt) + question.max_tokens
        if self._n_ctx is not None and room > self._n_ctx:
            raise EngineError(f"{self._server.what} holds {self._n_ctx:,} tokens: start it with -c {room} or more.")
        if self._remembers and not question.continues and self._server.asked(question.prompt):
            return None
        try:
            return self._server.answer(question, should_stop)
        except Unreachable as error:
            raise EngineError(f"{self._server.what} hung up ({error}).") from None


def _mode(kinds: str) -> str:
    """The mode that a server's list of kinds stands for; "none" stays in front of those that were added to it."""
    named = [kind for kind in kinds.split(",") if kind != "none"]
    return ",".join(named) or "plain"


def _check(props: Props, setup: Setup, server: Server) -> None:
    """Refuses a server of another model; names alone are compared, as the server may see the file in another place."""
    if props.model_path is None:
        return
    kind = PureWindowsPath if "\\" in props.model_path else PurePosixPath
    served = kind(props.model_path).name
    # llama.cpp's own downloads carry the repository's name in front.
    if not served.casefold().endswith(_name(setup.model)):
        raise EngineError(
            f"{server.what} serves {served}, not {setup.model.name}: start it with that file, or measure with --model "
            "the one it serves."
        )


def _name(model: Path) -> str:
    return model.name.casefold()


def _remembering(name: str) -> str:
    return (
        f"The {name} drafts from n-grams of earlier answers and can't be made to forget them: only its first round "
        "counts, and only if it was started anew for this bench. Give a path instead of a URL and specchat starts it."
    )
