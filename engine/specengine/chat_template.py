"""Renders a model's own chat template: a Jinja program from the model file, which is not trusted."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specengine.errors import EngineError


class TemplateRefused(EngineError):
    """The template itself rejects the conversation (`raise_exception`): no system role, say."""


def render(
    template: str,
    messages: Sequence[Mapping[str, str]],
    *,
    add_generation_prompt: bool = True,
    bos: str = "",
    eos: str = "",
) -> str:
    """The conversation as one text, marks of the model's format included.

    The template sees what Hugging Face's `apply_chat_template` gives it and nothing else: it runs in Jinja's immutable
    sandbox (no attributes that begin with an underscore, no imports, no change of what it is given). Its output may
    have 8 characters for each one of the messages and 4 million more; repeated strings and powers are bounded likewise.

    Args:
        messages: each with a "role" and a "content".
        bos, eos: what the template knows as `bos_token` and `eos_token`.

    Raises:
        TemplateRefused: the template raised an exception of its own.
        EngineError: the template is broken or not allowed to do what it does.
    """
    room = _OUTPUT_LIMIT + 8 * sum(len(message["content"]) for message in messages)
    pieces: list[str] = []
    try:
        for piece in _compiled(template).generate(
            messages=[dict(message) for message in messages],
            add_generation_prompt=add_generation_prompt,
            bos_token=bos,
            eos_token=eos,
        ):
            room -= len(piece)
            if room < 0:
                raise SecurityError("it writes far more than it was given")
            pieces.append(piece)
    except _Raised as error:
        raise TemplateRefused(f"This model's chat template refuses the conversation: {_reason(error)}.") from None
    except Exception as error:  # a template can fail in every way that Python can
        raise EngineError(
            f"This model's chat template can't be used ({_reason(error)}); choose another model, "
            "or give it raw text to continue."
        ) from None
    return "".join(pieces)


_OUTPUT_LIMIT: Final = 4_000_000
_LARGEST_POWER: Final = 64


class _Raised(jinja2.TemplateError):
    """What `raise_exception` raises."""


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        if operator == "**" and not abs(right) <= _LARGEST_POWER:
            raise SecurityError("it computes a power that is too large")
        if operator == "*":
            for repeated, times in ((left, right), (right, left)):
                if hasattr(repeated, "__len__") and len(repeated) * times > _OUTPUT_LIMIT:
                    raise SecurityError("it repeats a text too often")
        return super().call_binop(context, operator, left, right)


class _Generation(Extension):
    """`{% generation %}` marks answers for training; here its body is all that counts."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: object = "") -> NoReturn:
    raise _Raised(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As Hugging Face defines it; Jinja's own escapes characters for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _environment() -> _Sandbox:
    environment = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation])
    environment.filters["tojson"] = _tojson
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


@lru_cache(maxsize=8)
def _compiled(template: str) -> jinja2.Template:
    return _environment().from_string(template)


def _reason(error: Exception) -> str:
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in str(error)).split())
    text = text.rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else text[:199] + "…"
