"""Measured pass costs, kept between starts in one small JSON file; a lost or damaged file only costs a measurement."""

import contextlib
from pathlib import Path

import msgspec

from specengine import whole_file
from specengine.costs import GRID, CostTable
from specengine.protocol import Load


def key(request: Load, runtime: str) -> str:
    """What costs depend on: the files, the runtime (its versions, device and threads) and how it is used."""
    return f"{_files(request)}{runtime} {'exact' if request.exact else 'default'}"


def read(file: Path, key: str) -> CostTable | None:
    """The table kept under `key`; None if there is none that can be used."""
    table = _read_all(file).get(key)
    return table if table is not None and _usable(table) else None


def kept_for(file: Path, request: Load) -> CostTable | None:
    """A table of the request's model files, on whatever they ran; the newest entry if there are several."""
    files, drafts = _files(request), request.draft is not None or request.self_draft
    found = [
        table
        for key, table in _read_all(file).items()
        if key.startswith(files) and (table.draft_step_s is not None) == drafts and _usable(table)
    ]
    return found[-1] if found else None


def write(file: Path, key: str, table: CostTable) -> None:
    """Adds or replaces one table; the file is replaced whole. A full disk is no reason to stop chatting."""
    tables = _read_all(file)
    tables[key] = table
    with contextlib.suppress(OSError):
        whole_file.replace(file, msgspec.json.format(msgspec.json.encode(tables)))


def _read_all(file: Path) -> dict[str, CostTable]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, CostTable])
    except (OSError, msgspec.DecodeError):
        return {}


def _usable(table: CostTable) -> bool:
    return len(table.target_s) == len(table.seen) == len(GRID) and min(table.target_s) > 0


def _files(request: Load) -> str:
    files = [_fingerprint(Path(path)) for path in (request.model, request.draft) if path]
    return "".join(f"{file} " for file in (*files, *(["self"] if request.self_draft else [])))


def _fingerprint(path: Path) -> str:
    stat = path.stat()
    return f"{path.name}:{stat.st_size}:{int(stat.st_mtime)}"
