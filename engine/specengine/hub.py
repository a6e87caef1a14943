"""A model file from Hugging Face, over plain HTTP with ranges: resumable, and given up when nothing arrives.

Addresses and headers (HF_ENDPOINT, HF_TOKEN, stored logins) are huggingface_hub's. Its own downloader is not used: it
can neither be cancelled while it waits nor does it check the digest. Proxies and certificates are the system's.
"""

import contextlib
import os
import re
import urllib.request
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import msgspec

from specengine.catalog import Gguf, Safetensors
from specengine.patient_http import Answer, Broken, Reader
from specengine.transfer import Part, Patience, Unavailable, Watch, need_space


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
        except Broken as error:
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
        except Broken as error:
            if error.hope != "any" or attempt == patience.tries:
                raise Unavailable(str(error)) from None
            watch.wait(min(patience.pause * 2 ** (attempt - 1), 30.0))
    raise AssertionError("tries is 1 or more")


def _listing(weights: Safetensors, watch: Watch, patience: Patience) -> tuple[RepoFile, ...]:
    watch.stir()
    url = f"{_endpoint()}/api/models/{weights.repo}/revision/{quote(weights.revision, safe='')}?blobs=true"
    with contextlib.closing(Reader(urllib.request.Request(url, headers=_headers()), patience)) as reader:
        reader.answer(watch)
        text = b"".join(reader.chunks(watch))
    try:
        found = msgspec.json.decode(text, type=_Repository)
    except msgspec.MsgspecError:
        raise Broken("what it says of the repository makes no sense", "none") from None
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


def _attempt(gguf: Gguf | RepoFile, part: Part, watch: Watch, patience: Patience) -> Remote:
    held = part.held()
    watch.stir()
    with contextlib.closing(Reader(_request(gguf, held), patience)) as reader:
        answer = reader.answer(watch)
        remote = _describe(gguf, answer)
        if answer.status == 416 and remote.identity == part.identity and remote.size == held:
            return remote
        resumed = answer.status == 206 and remote.identity == part.identity and answer.starts_at == held
        if answer.status != 200 and not resumed:
            part.drop()
            raise Broken("it answered with another part of the file than asked for")
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
                raise Broken(f"the connection ended after {at:,} of {size:,} bytes")
            file.truncate()
        return remote


def _describe(gguf: Gguf | RepoFile, answer: Answer) -> Remote:
    """Checks that the server has the file that the catalogue means."""
    etag = (answer.first.get("X-Linked-Etag") or answer.headers.get("ETag") or "").removeprefix("W/").strip('"')
    sha256 = etag.lower() if re.fullmatch(r"[0-9a-fA-F]{64}", etag) else None
    linked = answer.first.get("X-Linked-Size", "")
    size = int(linked) if linked.isdigit() else answer.size
    if gguf.sha256 and sha256 and sha256 != gguf.sha256:
        raise Broken("it has another version of the file than the catalogue", "none")
    if gguf.size and size is not None and size != gguf.size:
        raise Broken(f"its file has {size:,} bytes, the catalogue's {gguf.size:,}", "none")
    return Remote(sha256 or (f"etag {etag}" if etag else ""), size, sha256)


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
