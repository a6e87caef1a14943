"""Files that a prompt may attach: those of the current folder, or of a folder that was spelled out.

Nothing outside of the current folder is offered unless its path was typed: symbolic links that lead out are left out.
"""

import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from specchat.tui import fuzzy

MOST_FILES = 20_000
"""Files of the current folder that are looked at; the nearest ones where there are more."""
MOST_OFFERED = 50
LONGEST_S = 2.0
"""A listing that takes longer than this ends with what it has."""
FRESH_S = 5.0
"""A listing is used again for this long."""

_UNINTERESTING = frozenset(
    ("node_modules", "__pycache__", "venv", "env", "site-packages", "target", "build", "dist", "vendor", "htmlcov")
)
_OUTSIDE = ("/", "~", "./", "../", ".\\", "..\\")


class Files:
    """Suggests paths below `folder`; its listing is made when it is first asked for. Blocks: for a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listed: list[str] = []
        self._listed_s = float("-inf")
        self._lock = threading.Lock()

    def matching(self, typed: str) -> list[str]:
        """Paths that may be meant by `typed`, best first, folders with a slash at their end."""
        if spelled_out(typed):
            return self._in_folder(typed)
        found = fuzzy.best(typed, self._all(), 4 * MOST_OFFERED)
        return [path for path in found if self._inside(self.folder / path)][:MOST_OFFERED]

    def path(self, shown: str) -> Path:
        """The file that a suggestion names."""
        return self.folder / Path(shown).expanduser()

    def _all(self) -> Sequence[str]:
        with self._lock:
            if time.monotonic() - self._listed_s > FRESH_S:
                self._listed = list(listed(self.folder))
                self._listed_s = time.monotonic()
            return self._listed

    def _in_folder(self, typed: str) -> list[str]:
        cut = max(typed.rfind("/"), typed.rfind(os.sep)) + 1
        head, tail = (typed[:cut], typed[cut:]) if cut else (typed + "/", "")
        names: list[str] = []
        try:
            with os.scandir(self.path(head)) as entries:
                for entry in entries:
                    if len(names) < MOST_FILES and (tail.startswith(".") or not entry.name.startswith(".")):
                        names.append(entry.name + ("/" if entry.is_dir() else ""))
        except OSError:
            return []
        return [head + name for name in fuzzy.best(tail, sorted(names), MOST_OFFERED)]

    def _inside(self, path: Path) -> bool:
        """Whether this is a file that lies in the folder indeed."""
        try:
            return path.is_file() and path.resolve().is_relative_to(self.folder.resolve())
        except OSError:
            return False


def spelled_out(typed: str) -> bool:
    """Whether `typed` is a path by itself, not letters of one."""
    return typed.startswith(_OUTSIDE) or typed in ("~", ".", "..") or typed[1:3] in (":\\", ":/")


def listed(folder: Path) -> Iterator[str]:
    """Paths of the files in `folder` and below, relative to it: what git would not ignore; without git, what lies in
    no hidden folder and none of the usual ones for made files."""
    found = _by_git(folder)
    yield from _walked(folder) if found is None else found


def _by_git(folder: Path) -> list[str] | None:
    """None where there is no git, or no repository."""
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except OSError:
        return None
    found: list[bytes] = []
    timer = threading.Timer(LONGEST_S, process.kill)
    timer.start()
    with process:
        assert process.stdout is not None
        rest = b""
        while len(found) < MOST_FILES and (data := os.read(process.stdout.fileno(), 2**16)):
            *whole, rest = (rest + data).split(b"\0")
            found += whole
        process.kill()
    timer.cancel()
    refused = process.returncode > 0 and not found
    return None if refused else [os.fsdecode(path) for path in found[:MOST_FILES]]


def _walked(folder: Path) -> Iterator[str]:
    """Breadth first, so that the nearest files are among those that count; never along a symbolic link."""
    end_s = time.monotonic() + LONGEST_S
    folders, found = deque([""]), 0
    while folders and found < MOST_FILES and time.monotonic() < end_s:
        below = folders.popleft()
        try:
            with os.scandir(folder / below) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _UNINTERESTING:
                    folders.append(path + "/")
            elif found < MOST_FILES:
                found += 1
                yield path
