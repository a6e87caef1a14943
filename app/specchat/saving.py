"""Writes text of an answer into a file, never over one that is there unless told to."""

import tempfile
from pathlib import Path

from specengine.errors import EngineError


def suggested_name(language: str, folder: Path) -> str:
    """A file name for code in a language, such as no file in the folder has."""
    ending = _ending(language)
    names = (f"code{number}{ending}" for number in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(name for name in names if not (folder / name).exists())


def save(path: Path, text: str, replace: bool = False) -> None:
    """Writes the file; with `replace` in one step over one that is there.

    Raises:
        FileExistsError: it is there, and `replace` is False.
        EngineError: it can't be written, in one sentence.
    """
    try:
        if not replace:
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
            return
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8", newline="") as new:
            new.write(text)
        Path(new.name).chmod(path.stat().st_mode)
        Path(new.name).replace(path)
    except FileExistsError:
        raise
    except OSError as error:
        raise EngineError(f"{path} can't be written: {error.strerror}. Choose another name.") from None
    except UnicodeEncodeError:
        raise EngineError(f"{path} can't be written: the text has characters that UTF-8 has not.") from None


def _ending(language: str) -> str:
    from pygments.lexers import get_lexer_by_name  # takes a while to import
    from pygments.util import ClassNotFound

    try:
        patterns = get_lexer_by_name(language).filenames
    except ClassNotFound:
        return ".txt"
    return next((pattern[1:] for pattern in patterns if pattern.startswith("*.")), ".txt")
