"""Pulls the folder of a model's safetensors: all files of one commit, each checked, offered only when all are there."""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from specengine import hub
from specengine.catalog import Entry, Safetensors
from specengine.download import alone, installed_weights
from specengine.errors import EngineError
from specengine.hub import RepoFile
from specengine.model_folder import CONFIG, TOKENIZER, read_folder
from specengine.transfer import (
    Part,
    Patience,
    PullProgress,
    Unavailable,
    Watch,
    disk_errors,
    megabytes,
    need_space,
)

_SMALL: Final = frozenset(
    {CONFIG, TOKENIZER, "generation_config.json", "tokenizer_config.json", "chat_template.jinja"}
    | {"model.safetensors.index.json"}
)
_WEIGHTS: Final = re.compile(r"model(-\d+-of-\d+)?\.safetensors")
_RECORD: Final = "specchat.json"
_PATIENCE: Final = Patience()


class Pulled(msgspec.Struct, frozen=True):
    """Where the files of a folder came from; kept in it."""

    repo: str
    revision: str
    """The commit."""
    sha256: dict[str, str]
    """Of the weight files, as checked."""


def pull_weights(
    entry: Entry,
    models_dir: Path,
    *,
    progress: Callable[[PullProgress], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    offline: bool = False,
    patience: Patience = _PATIENCE,
) -> Path:
    """The model's folder, fetched from Hugging Face if it isn't there.

    What arrives is kept in `.<folder>.part` beside it and gone on from next time, whatever ended this pull. Progress
    is that of the whole folder.

    Raises:
        EngineError: it can't be had, with the reason; or the disk is full; or the network is off.
        PullCancelled: `cancelled` said so.
    """
    if found := installed_weights(entry, models_dir):
        return found
    weights = entry.safetensors
    if weights is None:
        raise EngineError(f"The catalogue names no safetensors for {entry.name}; the torch engine can't run it.")
    if offline or hub.offline():
        raise EngineError(
            f"The safetensors of {entry.name} are not here and the network is switched off; "
            f"run `specchat models pull {entry.name} --engine torch` with it on."
        )
    final = models_dir / weights.folder
    with disk_errors(models_dir, weights.folder, lambda: 0):
        models_dir.mkdir(parents=True, exist_ok=True)
        with alone(final, Watch(progress, cancelled)):
            if found := installed_weights(entry, models_dir):
                return found
            try:
                _fetch(weights, _unfinished(final), progress, cancelled, patience)
            except Unavailable as error:
                held = _size(_unfinished(final))
                kept = f" {megabytes(held)} that arrived are kept; pull again to go on." if held else ""
                raise EngineError(
                    f"The safetensors of {entry.name} can't be fetched. {hub.host()}: {error}.{kept}"
                ) from None
            _unfinished(final).replace(final)
    return final


def remove_weights(entry: Entry, models_dir: Path) -> int:
    """Deletes the folder and what there is of an unfinished pull; returns the bytes that became free.

    Raises:
        EngineError: the entry is a folder of the user's own, or it can't be deleted.
    """
    if entry.path or entry.safetensors is None:
        raise EngineError(f"{entry.name} is a model of your own; delete it yourself.")
    final = models_dir / entry.safetensors.folder
    freed = 0
    try:
        for folder in (final, _unfinished(final)):
            if folder.is_dir():
                freed += _size(folder)
                shutil.rmtree(folder)
    except OSError as error:
        raise EngineError(f"{final} can't be deleted: {error.strerror or error}.") from None
    return freed


def _fetch(
    weights: Safetensors,
    folder: Path,
    progress: Callable[[PullProgress], None],
    cancelled: Callable[[], bool],
    patience: Patience,
) -> None:
    files = _needed(hub.files_of(weights, Watch(progress, cancelled), patience))
    known = _known(folder)
    whole = sum(file.size or 0 for file in files)
    folder.mkdir(exist_ok=True)
    need_space(folder, whole - _size(folder), weights.folder)
    before = 0
    with disk_errors(folder.parent, weights.folder, lambda: max(0, whole - _size(folder))):
        for file in files:
            path, watch = folder / file.file, Watch(_of_whole(progress, before, whole), cancelled)
            if not (path.is_file() and file.sha256 and known.get(file.file) == file.sha256):
                known[file.file] = _fetch_one(file, path, watch, patience)
                _write_record(folder, weights, file.revision, known)
            before += file.size or path.stat().st_size
    try:
        read_folder(folder)
    except EngineError as error:
        raise Unavailable(f"what it has is no whole model ({error})") from None


def _needed(files: tuple[RepoFile, ...]) -> list[RepoFile]:
    """The small files first: a repository that lacks one is noticed before gigabytes have arrived.

    Raises:
        Unavailable: the repository doesn't have what a model needs.
    """
    small = [file for file in files if file.file in _SMALL]
    large = [file for file in files if _WEIGHTS.fullmatch(file.file)]
    names = {file.file for file in small}
    for name in (CONFIG, TOKENIZER):
        if name not in names:
            raise Unavailable(f"the repository has no {name}")
    if not large:
        raise Unavailable("the repository has no safetensors")
    return small + large


def _fetch_one(file: RepoFile, path: Path, watch: Watch, patience: Patience) -> str:
    """Completes one file and gives it its name; returns its digest.

    Raises:
        Unavailable: it can't be had, or is not what the server says it is; that is dropped.
    """
    part = Part(path)
    claimed = hub.fetch(file, part, watch, patience).sha256
    size = part.path.stat().st_size
    watch.begin("checking", hub.host(), 0, size)
    digest = hashlib.sha256()
    with part.path.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
            watch.at(opened.tell())
    expected = file.sha256 or claimed
    if (expected and digest.hexdigest() != expected) or (file.size is not None and size != file.size):
        part.drop()
        raise Unavailable(f"what it sent as {file.file} is not that file; it was deleted")
    part.finish(path)
    return digest.hexdigest()


def _of_whole(progress: Callable[[PullProgress], None], before: int, whole: int) -> Callable[[PullProgress], None]:
    """Progress within one file as progress of the whole folder."""

    def report(within: PullProgress) -> None:
        progress(within if within.phase == "checking" else replace(within, done=before + within.done, total=whole))

    return report


def _known(folder: Path) -> dict[str, str]:
    """Digests of the files that an earlier pull has finished."""
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=Pulled).sha256
    except (OSError, msgspec.MsgspecError):
        return {}


def _write_record(folder: Path, weights: Safetensors, revision: str, known: dict[str, str]) -> None:
    (folder / _RECORD).write_bytes(msgspec.json.encode(Pulled(weights.repo, revision, known)))


def _unfinished(final: Path) -> Path:
    return final.with_name(f".{final.name}.part")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) if folder.is_dir() else 0
