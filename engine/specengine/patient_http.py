"""An HTTP request that is given up when nothing arrives, and can be cut short at any moment."""

import contextlib
import http.client
import queue
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from typing import IO, Literal
from urllib.parse import urlsplit

from specengine.transfer import Patience, Watch

_CHUNK = 1 << 18


Hope = Literal["any", "once reached", "none"]
"""Whether another attempt may do better: always, only where the server gave something before, never."""


class Broken(Exception):
    """An attempt failed; the next one, if there is hope, goes on from what is there."""

    def __init__(self, reason: str, hope: Hope = "any") -> None:
        super().__init__(reason)
        self.hope = hope


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes before the body."""

    status: int
    headers: Message
    first: Message
    """Headers of the first answer, before redirects: Hugging Face gives size and digest there."""

    @property
    def starts_at(self) -> int | None:
        found = re.match(r"bytes (\d+)-", self.headers.get("Content-Range", ""))
        return int(found[1]) if found else None

    @property
    def size(self) -> int | None:
        """Of the whole file."""
        if found := re.search(r"/(\d+)$", self.headers.get("Content-Range", "")):
            return int(found[1])
        length = self.headers.get("Content-Length", "")
        return int(length) if self.status == 200 and length.isdigit() else None


class Reader:
    """One request, run in a thread of its own, so that waiting for it can be cut short at any moment.

    Reading raises Broken where the attempt failed, and PullCancelled.
    """

    def __init__(self, request: urllib.request.Request, patience: Patience) -> None:
        self._request, self._patience = request, patience
        self._queue: queue.Queue[Answer | bytes | Exception | None] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="download").start()

    def answer(self, watch: Watch) -> Answer:
        """Status and headers."""
        limit = 2 * self._patience.connect
        first = self._next(watch, limit, Broken(f"no answer within {limit:g} s", "once reached"))
        assert isinstance(first, Answer)
        return first

    def chunks(self, watch: Watch) -> Iterator[bytes]:
        """The body, as it arrives."""
        quiet = Broken(f"nothing arrived for {self._patience.stall:g} s")
        while (chunk := self._next(watch, self._patience.stall, quiet)) is not None:
            assert isinstance(chunk, bytes)
            yield chunk

    def close(self) -> None:
        """Lets the thread end; it closes the connection."""
        self._closed.set()

    def _next(self, watch: Watch, limit: float, complaint: Broken) -> Answer | bytes | None:
        while True:
            try:
                item = self._queue.get(timeout=0.05)
            except queue.Empty:
                watch.tick()
                if watch.quiet > limit:
                    raise complaint from None
                continue
            if isinstance(item, Exception):
                raise item
            return item

    def _run(self) -> None:
        try:
            redirects = _Redirects()
            opener = urllib.request.build_opener(redirects, *_patient_handlers(self._patience))
            # Longer than the patience: giving up, and saying why, is the other thread's part.
            with opener.open(self._request, timeout=2 * self._patience.stall) as response:
                self._put(Answer(response.status, response.headers, redirects.first or response.headers))
                while not self._closed.is_set() and (chunk := response.read1(_CHUNK)):
                    self._put(chunk)
            self._put(None)
        except urllib.error.HTTPError as error:
            self._put(_refusal(error, redirects))
        except urllib.error.URLError as error:
            self._put(Broken(f"can't be reached ({_reason(error.reason)})", "once reached"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._put(Broken(f"the connection broke ({_reason(error)})"))

    def _put(self, item: Answer | bytes | Exception | None) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=0.2)
                return


def _refusal(error: urllib.error.HTTPError, redirects: "_Redirects") -> Answer | Broken:
    match error.code:
        case 416:
            return Answer(416, error.headers, redirects.first or error.headers)
        case 401 | 403:
            return Broken("it asks for permission; accept the model's terms there and set HF_TOKEN", "none")
        case 404:
            return Broken("it doesn't have the file", "none")
        case code:
            passing = code in (408, 429) or code >= 500
            return Broken(f"it answered with error {code}", "any" if passing else "none")


def _reason(error: BaseException | str) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Keeps the first answer's headers; never sends the token to another host, nor anything over broken-up TLS."""

    first: Message | None = None

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        if old.scheme == "https" and new.scheme != "https":
            raise urllib.error.URLError("it redirects to an unencrypted address")
        if self.first is None and "X-Linked-Size" in headers:
            self.first = headers
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and old.netloc != new.netloc:
            request.remove_header("Authorization")
        return request


def _patient_handlers(patience: Patience) -> tuple[urllib.request.BaseHandler, ...]:
    """urllib knows one timeout; these use a short one for the connection and the given one afterwards."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            self.timeout, later = patience.connect, self.timeout
            super().connect()
            self.sock.settimeout(later)

    class Secure(http.client.HTTPSConnection):
        def connect(self) -> None:
            self.timeout, later = patience.connect, self.timeout
            super().connect()
            self.sock.settimeout(later)

    class OpenPlain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

    class OpenSecure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, req, context=_trust())

    return OpenPlain(), OpenSecure()


def _trust() -> ssl.SSLContext:
    """The system's certificates; certifi's where Python doesn't find any (python.org's builds for macOS)."""
    paths = ssl.get_default_verify_paths()
    context = ssl.create_default_context()
    if not paths.cafile and not paths.capath and not context.get_ca_certs():
        with contextlib.suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context
