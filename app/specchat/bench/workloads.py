"""What the bench asks: prompts of our own, and code of the running Python's standard library, read when needed."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from specengine.errors import EngineError

OLD_NAME: Final = "cur_line"
NEW_NAME: Final = "current_line"


@dataclass(frozen=True, slots=True)
class Workload:
    """One prompt."""

    name: str
    prompt: str
    system: str = "You are a helpful assistant."
    copies: bool = False
    """The answer repeats the prompt almost word for word, so nearly every drafted token can be right."""


def workload(name: str) -> Workload:
    """The workload of a name in `NAMES`.

    Raises:
        EngineError: this Python comes without the source that the prompt is made of.
    """
    return _MAKERS[name]()


def _edit() -> Workload:
    """Two whole methods, about 6,000 characters, with one variable to be renamed 22 times."""
    try:
        methods = [
            inspect.getsource(method)
            for method in (textwrap.TextWrapper._handle_long_word, textwrap.TextWrapper._wrap_chunks)
        ]
    except OSError:
        raise EngineError(
            "This Python comes without the source of its standard library, which the workload edit is made of; "
            "leave it out with --workloads explain,story."
        ) from None
    code = textwrap.dedent("\n".join(methods))
    prompt = (
        f"Rename the variable `{OLD_NAME}` to `{NEW_NAME}` everywhere in this code and change nothing else. "
        "Answer with the complete code, all comments and docstrings included, in one code block and nothing before "
        f"it.\n\n```python\n{code}```"
    )
    return Workload("edit", prompt, "You edit code exactly as asked and always give it back whole.", copies=True)


def _explain() -> Workload:
    return Workload(
        "explain",
        "Explain to a programmer how a hash table works: hashing, buckets, collisions and how they are resolved, "
        "the load factor, resizing, and what each operation costs on average and at worst. Write several paragraphs.",
    )


def _story() -> Workload:
    return Workload(
        "story",
        "Write a long story about a lighthouse keeper who finds a door at the bottom of the sea. Use vivid scenes and "
        "unusual words, let people speak, and take your time before the end.",
    )


_MAKERS: Final[dict[str, Callable[[], Workload]]] = {"edit": _edit, "explain": _explain, "story": _story}
NAMES: Final = tuple(_MAKERS)
