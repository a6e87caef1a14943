"""A model file from Hugging Face, over plain HTTP with ranges: resumable, and given up when nothing arrives.

Addresses and headers (HF_ENDPOINT, HF_TOKEN, stored logins) are huggingface_hub's. Its own downloader is not used: it
can neither be cancelled while it waits nor does it check the digest. Proxies and certificates are the system's.
"""

import contextlib
import http.client
import os
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
from urllib.parse import quote, urlsplit

import msgspec

from specengine.catalog import Gguf, Safetensors
from specengine.transfer import Part, Patience, Unavailable, Watch, need_space

_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Remote:
    """What the server says of the file."""

    identity: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class RepoFile:
    """A file of a repository; size and digest where the server knows them."""

    repo: str
    file: str
    revision: str
    size: int | None = None
    sha256: str | None = None


def host() -> str:
    """The server's name."""
    return urlsplit(_endpoint()).netloc


def fetch(gguf: Gguf | RepoFile, part: Part, watch: Watch, patience: Patience) -> Remote:
    """Completes `part` from the repository.

    Raises:
        Unavailable: the server can't be reached, doesn't have the file, or keeps failing; what arrived is kept.
        EngineError: the disk is too small.
        PullCancelled: what arrived is kept.
    """
    attempts, last, reached = 0, part.held(), False
    watch.begin("connecting", host(), part.held(), gguf.size)
    while True:
        try:
            return _attempt(gguf, part, watch, patience)
        except _Broken as error:
            gained, last = part.held() - last, part.held()
            attempts = 1 if gained > 1 << 20 else attempts + 1
            reached = reached or gained > 0
            hopeless = error.hope == "none" or (error.hope == "once reached" and not reached)
            if hopeless or attempts >= patience.tries:
                raise Unavailable(str(error)) from None
            watch.wait(min(patience.pause * 2 ** (attempts - 1), 30.0))


def files_of(weights: Safetensors, watch: Watch, patience: Patience) -> tuple[RepoFile, ...]:
    """What the repository holds, all of one commit.

    Raises:
        Unavailable: the server can't be reached, or doesn't have the repository.
        PullCancelled: the user cancelled.
    """
    watch.begin("connecting", host())
    for attempt in range(1, patience.tries + 1):
        try:
            return _listing(weights, watch, patience)
        except _Broken as error:
            if error.hope != "any" or attempt == patience.tries:
                raise Unavailable(str(error)) from None
            watch.wait(min(patience.pause * 2 ** (attempt - 1), 30.0))
    raise AssertionError("tries is 1 or more")


def _listing(weights: Safetensors, watch: Watch, patience: Patience) -> tuple[RepoFile, ...]:
    watch.stir()
    url = f"{_endpoint()}/api/models/{weights.repo}/revision/{quote(weights.revision, safe='')}?blobs=true"
    with contextlib.closing(_Reader(urllib.request.Request(url, headers=_headers()), patience)) as reader:
        reader.answer(watch)
        text = b"".join(reader.chunks(watch))
    try:
        found = msgspec.json.decode(text, type=_Repository)
    except msgspec.MsgspecError:
        raise _Broken("what it says of the repository makes no sense", "none") from None
    return tuple(
        RepoFile(weights.repo, one.rfilename, found.sha, one.size, one.lfs.sha256 if one.lfs else None)
        for one in found.siblings
    )


class _Lfs(msgspec.Struct, frozen=True):
    sha256: str


class _Sibling(msgspec.Struct, frozen=True):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _Repository(msgspec.Struct, frozen=True):
    """The server's answer, as far as it matters here."""

    sha: str
    siblings: tuple[_Sibling, ...]


Hope = Literal["any", "once reached", "none"]
"""Whether another attempt may do better: always, only where the server gave something before, never."""


class _Broken(Exception):
    """An attempt failed; the next one, if there is hope, goes on from what is there."""

    def __init__(self, reason: str, hope: Hope = "any") -> None:
        super().__init__(reason)
        self.hope = hope


def _attempt(gguf: Gguf | RepoFile, part: Part, watch: Watch, patience: Patience) -> Remote:
    held = part.held()
    watch.stir()
    with contextlib.closing(_Reader(_request(gguf, held), patience)) as reader:
        answer = reader.answer(watch)
        remote = _describe(gguf, answer)
        if answer.status == 416 and remote.identity == part.identity and remote.size == held:
            return remote
        resumed = answer.status == 206 and remote.identity == part.identity and answer.starts_at == held
        if answer.status != 200 and not resumed:
            part.drop()
            raise _Broken("it answered with another part of the file than asked for")
        at, size = held if resumed else 0, remote.size
        need_space(part.path.parent, (size or 0) - held, gguf.file)
        part.keep_only(remote.identity)
        watch.begin("downloading", host(), at, size)
        with part.path.open("r+b") as file:
            file.seek(at)
            for chunk in reader.chunks(watch):
                file.write(chunk)
                at += len(chunk)
                watch.at(at)
            if size is not None and at < size:
                raise _Broken(f"the connection ended after {at:,} of {size:,} bytes")
            file.truncate()
        return remote


def _describe(gguf: Gguf | RepoFile, answer: "_Answer") -> Remote:
    """Checks that the server has the file that the catalogue means."""
    etag = (answer.first.get("X-Linked-Etag") or answer.headers.get("ETag") or "").removeprefix("W/").strip('"')
    sha256 = etag.lower() if re.fullmatch(r"[0-9a-fA-F]{64}", etag) else None
    linked = answer.first.get("X-Linked-Size", "")
    size = int(linked) if linked.isdigit() else answer.size
    if gguf.sha256 and sha256 and sha256 != gguf.sha256:
        raise _Broken("it has another version of the file than the catalogue", "none")
    if gguf.size and size is not None and size != gguf.size:
        raise _Broken(f"its file has {size:,} bytes, the catalogue's {gguf.size:,}", "none")
    return Remote(sha256 or (f"etag {etag}" if etag else ""), size, sha256)


@dataclass(frozen=True, slots=True)
class _Answer:
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


class _Reader:
    """One request, run in a thread of its own, so that waiting for it can be cut short at any moment."""

    def __init__(self, request: urllib.request.Request, patience: Patience) -> None:
        self._request, self._patience = request, patience
        self._queue: queue.Queue[_Answer | bytes | Exception | None] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="download").start()

    def answer(self, watch: Watch) -> _Answer:
        """Status and headers."""
        limit = 2 * self._patience.connect
        first = self._next(watch, limit, _Broken(f"no answer within {limit:g} s", "once reached"))
        assert isinstance(first, _Answer)
        return first

    def chunks(self, watch: Watch) -> Iterator[bytes]:
        """The body, as it arrives."""
        quiet = _Broken(f"nothing arrived for {self._patience.stall:g} s")
        while (chunk := self._next(watch, self._patience.stall, quiet)) is not None:
            assert isinstance(chunk, bytes)
            yield chunk

    def close(self) -> None:
        """Lets the thread end; it closes the connection."""
        self._closed.set()

    def _next(self, watch: Watch, limit: float, complaint: _Broken) -> _Answer | bytes | None:
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
                self._put(_Answer(response.status, response.headers, redirects.first or response.headers))
                while not self._closed.is_set() and (chunk := response.read1(_CHUNK)):
                    self._put(chunk)
            self._put(None)
        except urllib.error.HTTPError as error:
            self._put(_refusal(error, redirects))
        except urllib.error.URLError as error:
            self._put(_Broken(f"can't be reached ({_reason(error.reason)})", "once reached"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._put(_Broken(f"the connection broke ({_reason(error)})"))

    def _put(self, item: _Answer | bytes | Exception | None) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(item, timeout=0.2)
                return


def _refusal(error: urllib.error.HTTPError, redirects: "_Redirects") -> _Answer | _Broken:
    match error.code:
        case 416:
            return _Answer(416, error.headers, redirects.first or error.headers)
        case 401 | 403:
            return _Broken("it asks for permission; accept the model's terms there and set HF_TOKEN", "none")
        case 404:
            return _Broken("it doesn't have the file", "none")
        case code:
            passing = code in (408, 429) or code >= 500
            return _Broken(f"it answered with error {code}", "any" if passing else "none")


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


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _request(gguf: Gguf | RepoFile, held: int) -> urllib.request.Request:
    headers = _headers()
    # Imported here: it takes a tenth of a second, and most starts fetch nothing.
    from huggingface_hub import hf_hub_url

    assert gguf.repo is not None
    url = hf_hub_url(gguf.repo, gguf.file, revision=gguf.revision, endpoint=_endpoint())
    if held:
        headers["Range"] = f"bytes={held}-"
    return urllib.request.Request(url, headers=headers)


def _headers() -> dict[str, str]:
    # Read at the library's import. Without it, the library asks the hub for a list of programs that may have started
    # this one, and tells which one did and what is installed.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    return {**build_hf_headers(library_name="specchat"), "Accept-Encoding": "identity"}


def offline() -> bool:
    """HF_HUB_OFFLINE forbids the network."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "TRUE", "YES", "ON")
