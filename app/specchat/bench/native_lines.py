"""Keeps off the terminal what native code prints on its own, past llama.cpp's log callback."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, TextIO


@contextlib.contextmanager
def native_lines_in(log: IO[bytes] | None) -> Iterator[TextIO]:
    """File descriptor 2 leads to the log (to nowhere without one) while the block runs; yields the real stderr."""
    sys.stderr.flush()
    real = os.dup(2)
    try:
        away = os.dup(log.fileno()) if log is not None else os.open(os.devnull, os.O_WRONLY)
        os.dup2(away, 2)
        os.close(away)
        with os.fdopen(os.dup(real), "w", encoding=sys.stderr.encoding, errors="replace") as stderr:
            yield stderr
    finally:
        os.dup2(real, 2)
        os.close(real)
