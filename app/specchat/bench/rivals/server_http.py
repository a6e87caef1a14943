"""Talking to a llama.cpp server: its health, what it serves, and one completion with its timings."""

import contextlib
import http.client
import socket
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from specchat.bench.rivals.contract import Question, RivalRun, ShouldStop
from specchat.bench.rivals.measuring import decoding_s, patience_s
from specchat.bench.rivals.patience import patiently
from specengine.errors import EngineError

T = TypeVar("T")

_SHORT_S: Final = 20.0
_SAMPLERS: Final = ("top_k", "top_p", "min_p", "temperature")


class Timings(msgspec.Struct, frozen=True):
    """Milliseconds and tokens. The first token comes from the prompt's last pass, so `predicted_ms` is without it."""

    predicted_n: int
    predicted_ms: float
    prompt_n: int
    prompt_ms: float
    draft_n: int | None = None
    """Missing where nothing was drafted, and in older servers."""
    draft_n_accepted: int | None = None


class Completion(msgspec.Struct, frozen=True):
    """What /completion answers, as far as it matters here."""

    timings: Timings
    tokens: tuple[int, ...] = ()
    """Missing in older servers."""
    truncated: bool = False
    generation_settings: dict[str, Any] = {}


class Generation(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class Props(msgspec.Struct, frozen=True):
    """What /props answers, as far as it matters here."""

    model_path: str | None = None
    build_info: str = ""
    default_generation_settings: Generation = Generation()


class Unreachable(Exception):
    """No answer: nothing listens there, or it hung up; str() says what happened."""


class Server:
    """A llama.cpp server's address."""

    def __init__(self, url: str, what: str) -> None:
        """`what` is how messages call it.

        Raises:
            EngineError: this is no address of a server.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise EngineError(f"{url} is no address of a server; write it like http://127.0.0.1:8080.")
        self.url, self.what = url, what
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._path = parts.hostname, port, parts.path.rstrip("/")
        self._asked: set[tuple[int, ...]] = set()

    def healthy(self, should_stop: ShouldStop) -> bool:
        """It has loaded its model and takes questions.

        Raises:
            Unreachable: there is no answer.
        """
        return self._ask("GET", "/health", None, should_stop, _SHORT_S)[0] == 200

    def props(self, should_stop: ShouldStop) -> Props:
        """What it serves.

        Raises:
            EngineError: it isn't a llama.cpp server.
            Unreachable: there is no answer.
        """
        return self._decoded(self._ask("GET", "/props", None, should_stop, _SHORT_S), Props)

    def asked(self, prompt: tuple[int, ...]) -> bool:
        """It has answered this prompt before."""
        return prompt in self._asked

    def answer(self, question: Question, should_stop: ShouldStop) -> RivalRun:
        """One answer from a cache that holds the prompt. The first time, the prompt is read from an empty cache.

        Raises:
            EngineError, Unreachable: as for `complete`.
        """
        cold = not question.continues and not self.asked(question.prompt)
        reading = self.complete(replace(question, max_tokens=1), should_stop, reuse=not cold)
        self._asked.add(question.prompt)
        return _measured(self.complete(question, should_stop, reuse=True), reading if cold else None)

    def complete(self, question: Question, should_stop: ShouldStop, *, reuse: bool) -> Completion:
        """One answer; with `reuse` the part of the prompt that is in the KV cache isn't read again.

        Raises:
            EngineError: the server refused or cut the question, or was not done in time.
            Unreachable: it hung up.
        """
        sampling = question.sampling
        body = {
            "prompt": question.prompt,
            "n_predict": question.max_tokens,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "samplers": _SAMPLERS,
            "seed": sampling.seed % (2**32 - 1),
            "cache_prompt": reuse,
            "id_slot": 0,
            "return_tokens": True,
            "stream": False,
        }
        answer = self._ask("POST", "/completion", msgspec.json.encode(body), should_stop, patience_s(question))
        completion = self._decoded(answer, Completion)
        if completion.truncated or not completion.timings.predicted_n:
            raise EngineError(
                f"{self.what} cut the prompt or the answer short: its context must hold "
                f"{len(question.prompt) + question.max_tokens:,} tokens for each slot."
            )
        return completion

    def _ask(
        self, method: str, path: str, body: bytes | None, should_stop: ShouldStop, limit_s: float
    ) -> tuple[int, bytes]:
        connection = self._kind(self._host, self._port, timeout=limit_s)

        def talk() -> tuple[int, bytes]:
            with contextlib.closing(connection):
                connection.request(method, self._path + path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                return response.status, response.read()

        try:
            return patiently(talk, should_stop, limit_s, lambda: _cut(connection))
        except TimeoutError:
            raise EngineError(f"{self.what} did not answer within {limit_s:,.0f} s; is it busy with others?") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(str(error) or type(error).__name__) from None

    def _decoded(self, answer: tuple[int, bytes], kind: type[T]) -> T:
        status, body = answer
        if status != 200:
            raise EngineError(f"{self.what} refused ({_reason(status, body)}).")
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise EngineError(f"{self.what} does not answer as a llama.cpp server does ({error}).") from None


def _measured(completion: Completion, cold: Completion | None) -> RivalRun:
    """The run that a completion's timings amount to; `cold` is the one before it that read the whole prompt."""
    timings = completion.timings
    reread = timings.prompt_n > 1
    return RivalRun(
        tokens=completion.tokens or None,
        n_tokens=timings.predicted_n,
        seconds=decoding_s(
            (timings.prompt_ms + timings.predicted_ms) / 1000,
            timings.prompt_ms / 1000 if reread else None,
            timings.predicted_n,
        ),
        first_token_s=cold.timings.prompt_ms / 1000 if cold else None,
        drafted=timings.draft_n,
        accepted=timings.draft_n_accepted,
    )


def _reason(status: int, body: bytes) -> str:
    with contextlib.suppress(msgspec.MsgspecError, KeyError, TypeError):
        return str(msgspec.json.decode(body)["error"]["message"])
    return f"HTTP status {status}"


def _cut(connection: http.client.HTTPConnection) -> None:
    """Makes a blocked read or write break off; the server sees that nobody listens any more."""
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
