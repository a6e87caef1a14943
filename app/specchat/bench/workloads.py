"""What the bench asks: prompts and documents of our own, and text of the running Python's standard library."""

import colorsys
import heapq
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from specengine.errors import EngineError

OLD_NAME: Final = "cur_line"
NEW_NAME: Final = "current_line"
MISSING: Final = "    ...  # missing"


@dataclass(frozen=True, slots=True)
class Workload:
    """A prompt or, for a chat, several in turn."""

    name: str
    prompt: str
    system: str = "You are a helpful assistant."
    copies: bool = False
    """The answer repeats the prompt almost word for word, so nearly every drafted token can be right."""
    then: tuple[str, ...] = ()
    """What is asked in further turns, each after the answer to the one before."""
    temperature: float | None = None
    """Its own, where the user gave none; None is greedy then."""

    @property
    def turns(self) -> tuple[str, ...]:
        return (self.prompt, *self.then)


def workload(name: str) -> Workload:
    """The workload of a name in `NAMES`.

    Raises:
        EngineError: this Python comes without the source that the prompt is made of.
    """
    return _MAKERS[name]()


def _edit() -> Workload:
    """Two whole methods, about 6,000 characters, with one variable to be renamed 22 times."""
    code = textwrap.dedent(_sources("edit", textwrap.TextWrapper._handle_long_word, textwrap.TextWrapper._wrap_chunks))
    prompt = (
        f"Rename the variable `{OLD_NAME}` to `{NEW_NAME}` everywhere in this code and change nothing else. "
        "Answer with the complete code, all comments and docstrings included, in one code block and nothing before "
        f"it.\n\n```python\n{code}```"
    )
    return Workload("edit", prompt, "You edit code exactly as asked and always give it back whole.", copies=True)


def _complete() -> Workload:
    """Four functions that have no docstrings; the first and the last have lost their bodies."""
    first, given, last = (
        f"def hsv_to_rgb(h, s, v):\n{MISSING}\n",
        _sources("complete", colorsys.rgb_to_hsv, colorsys.rgb_to_yiq),
        f"def yiq_to_rgb(y, i, q):\n{MISSING}\n",
    )
    prompt = (
        "Complete this module on colour systems, whose values all lie between 0 and 1: write the two bodies that are "
        "missing, and give every function a docstring that says what it takes, what it returns and how it computes it. "
        "Change nothing else. Answer with the complete module, in one code block and nothing before it.\n\n"
        f"```python\n{first}\n{given}\n{last}```"
    )
    return Workload("complete", prompt, "You complete code exactly as asked and always give it back whole.")


def _extract() -> Workload:
    """The essay on heaps that comes with Python, without its drawing."""
    _, found, essay = heapq.__about__.partition("In the tree above")
    document = (found + essay).partition("--------------------")[0].strip()
    prompt = (
        "Quote from this text, word for word and each in quotation marks, every passage of several sentences that says "
        "what heaps are useful for, and the whole passage on sorting on disks. Write nothing of your own but one line "
        f"above each quotation that says what it is about.\n\n{document}"
    )
    return Workload("extract", prompt, "You quote exactly and never change a word.")


def _summarise() -> Workload:
    return Workload(
        "summarise",
        "Summarise this report for people who will not read it, in three paragraphs: what was found, what is proposed "
        f"and why, and what it costs. Use your own words.\n\n{_document('harbour.md')}",
    )


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
        temperature=1.0,
    )


def _chat() -> Workload:
    """One document, and questions that ask for prose and for copies of it in turn."""
    return Workload(
        "chat",
        f"{_document('harbour.md')}\nThis report came today. What is it about, and what does it want us to decide? "
        "Answer in two short paragraphs.",
        then=(
            "Quote the sections 'What we propose' and 'Timetable' word for word.",
            "What would you ask its authors before you vote, and why? Three questions.",
            "Give me the section 'What it costs' again, with 'crowns' replaced by 'euros' and nothing else changed.",
        ),
    )


def _json() -> Workload:
    prompt = (
        "Turn these orders into JSON: an array with one object for each message, with the keys customer, email, "
        "ordered (the time of the message), items (an array of objects with quantity, unit and product), deliver_on, "
        "deliver_to, payment and remarks; null where the message says nothing. Copy names, addresses and remarks as "
        f"they are written. Answer with the JSON alone, indented by two spaces.\n\n{_document('orders.txt')}"
    )
    return Workload("json", prompt, "You answer with valid JSON and nothing else.")


def _sources(name: str, *functions: Callable[..., object]) -> str:
    try:
        return "\n".join(inspect.getsource(function) for function in functions)
    except OSError:
        others = ",".join(other for other in NAMES if other not in _FROM_SOURCE)
        raise EngineError(
            f"This Python comes without the source of its standard library, which the workload {name} is made of; "
            f"leave it out with --workloads {others}."
        ) from None


def _document(name: str) -> str:
    return (files("specchat.bench") / "documents" / name).read_text(encoding="utf-8")


_MAKERS: Final[dict[str, Callable[[], Workload]]] = {
    "edit": _edit,
    "complete": _complete,
    "extract": _extract,
    "summarise": _summarise,
    "explain": _explain,
    "story": _story,
    "chat": _chat,
    "json": _json,
}
_FROM_SOURCE: Final = ("edit", "complete")
NAMES: Final = tuple(_MAKERS)
