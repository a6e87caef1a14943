"""Replaces a file as a whole: whoever reads it, and whatever breaks off, finds the old text or the new one."""

import os
import tempfile
from pathlib import Path


def replace(file: Path, data: bytes) -> None:
    """Writes `data` in place of what the file holds, or makes it, and the folders above it. Who may read it stays.

    Raises:
        OSError: it can't be written; the file is as it was.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
        if file.exists():
            Path(name).chmod(file.stat().st_mode & 0o777)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
