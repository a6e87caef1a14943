"""A conversation as tokens, by the model's chat template."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specengine.chat_template import render
from specengine.clean_text import clean
from specengine.content_marks import ContentMarks
from specengine.errors import EngineError
from specengine.language_model import Vocabulary, spelled
from specengine.protocol import Message


def conversation_tokens(
    vocabulary: Vocabulary, template: str, messages: Sequence[Message], add_generation_prompt: bool
) -> list[int]:
    """Ids of the conversation in exactly this form; see `prompt.chat_tokens`."""
    marks = ContentMarks(vocabulary, template, (message.content for message in messages))
    answers: list[_Answer] = []
    shown: list[Mapping[str, str]] = []
    for message in messages:
        emitted = _emitted(vocabulary, message)
        text = marks.broken(message.content, in_answer=message.role == "assistant")
        content = _Content(text, trimmed=not emitted)
        opening = closing = marks.edge
        if emitted:
            ids, rest = emitted
            opening, closing = marks.new(), marks.new()
            answers.append(_Answer(content, opening, closing, ids, marks.broken(rest)))
        shown.append({"role": message.role, "content": content.enclosed(opening, closing)})
    rendered = _rendered(vocabulary, template, shown, marks, add_generation_prompt)
    prompt: list[int] = []
    for part in _parts(rendered, answers):
        prompt += marks.tokens(part, inside=bool(prompt)) if isinstance(part, str) else part
    if vocabulary.bos is not None and prompt[:1] != [vocabulary.bos]:
        prompt.insert(0, vocabulary.bos)
    return prompt


class _Content:
    """A content with its marks, split so that marks around it don't keep a template from trimming it."""

    def __init__(self, text: str, *, trimmed: bool) -> None:
        self.core = text.strip() or ("" if trimmed else text)
        start = text.find(self.core)
        self.before, self.after = text[:start], text[start + len(self.core) :]

    def enclosed(self, opening: str, closing: str) -> str:
        return f"{self.before}{opening}{self.core}{closing}{self.after}" if self.core else self.before + self.after


@dataclass(frozen=True, slots=True)
class _Answer:
    """An earlier answer whose emitted ids are known."""

    content: _Content
    opening: str
    closing: str
    ids: list[int]
    rest: str
    """What of the content the ids don't spell: the part of a token before a stop string."""


def _emitted(vocabulary: Vocabulary, message: Message) -> tuple[list[int], str] | None:
    """The ids of an answer without its end-of-generation token, and what of its content they don't spell.

    None if there are no ids, or none that spell the beginning of the content.
    """
    if message.role != "assistant" or not message.tokens:
        return None
    ids = list(message.tokens[:-1] if message.tokens[-1] in vocabulary.end_of_generation else message.tokens)
    if not ids or not all(0 <= token < vocabulary.size for token in ids):
        return None
    text = clean(spelled(vocabulary, ids))
    return (ids, message.content[len(text) :]) if text and message.content.startswith(text) else None


def _rendered(
    vocabulary: Vocabulary,
    template: str,
    messages: list[Mapping[str, str]],
    marks: ContentMarks,
    add_generation_prompt: bool,
) -> str:
    def render_with(messages: Sequence[Mapping[str, str]]) -> str:
        return render(
            template,
            messages,
            add_generation_prompt=add_generation_prompt,
            bos=vocabulary.bos_text,
            eos=vocabulary.eos_text,
        )

    text = render_with(messages)
    if not add_generation_prompt or "add_generation_prompt" in template:
        return text
    # This template doesn't know the option: what it writes before a next answer is what that answer begins after.
    answer = marks.new()
    try:
        longer = render_with([*messages, {"role": "assistant", "content": answer}])
    except EngineError:
        return text
    opening, found, _ = longer.partition(answer)
    begins = found and opening.startswith(text) and opening[len(text) :].strip()
    return opening.rstrip(" ") if begins else text


def _parts(text: str, answers: list[_Answer]) -> Iterator[str | list[int]]:
    """The rendered text, with the emitted ids in place of the answers that the template kept whole."""
    marks = "".join(answer.opening + answer.closing for answer in answers)
    place_of = {mark[0]: mark.start() for mark in re.finditer(f"[{marks}]", text)} if marks else {}
    begun = ""
    reached = 0
    for answer in sorted(answers, key=lambda answer: place_of.get(answer.opening, -1)):
        content = answer.content
        whole = content.enclosed(answer.opening, answer.closing)
        start = place_of.get(answer.opening, -1) - len(content.before)
        if answer.closing in place_of and start >= reached and text.startswith(whole, start):
            yield begun + text[reached:start]
            yield answer.ids
            begun, reached = answer.rest, start + len(whole)
    yield begun + text[reached:]
