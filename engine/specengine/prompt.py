"""Turns what was said into tokens: conversations by the model's chat template, raw text, and gaps to fill.

Text never becomes a special token, whatever it spells: only the template's own marks do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from specengine.begun_answer import begun, begun_tokens
from specengine.chat_prompt import conversation_tokens
from specengine.chat_template import TemplateRefused
from specengine.context_size import shorter_or_larger
from specengine.errors import EngineError
from specengine.language_model import Vocabulary
from specengine.protocol import Message
from specengine.special_strings import SpecialStrings, plain_tokens


def chat_tokens(
    vocabulary: Vocabulary, template: str, messages: Sequence[Message], add_generation_prompt: bool = True
) -> list[int]:
    """Ids of a conversation, up to where the model's answer begins.

    An answer's emitted ids are used again where the template keeps its content whole, so that the prompt begins as the
    last one did, with that answer behind it; where the template rewrites it, or the ids don't spell it (it was edited,
    or another model wrote it), its text is tokenised anew. A template that refuses the conversation is tried again
    with neighbouring messages of one role joined, then with the system prompt put before the first message.

    Raises:
        EngineError: the template is broken or refuses the conversation in every form.
    """
    refusal: TemplateRefused | None = None
    for form in _forms(messages):
        try:
            return conversation_tokens(vocabulary, template, form, add_generation_prompt)
        except TemplateRefused as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def raw_tokens(vocabulary: Vocabulary, text: str) -> list[int]:
    """Ids of text to be continued as it is, after a begin-of-sequence token where the model wants one."""
    return [*_beginning(vocabulary), *plain_tokens(vocabulary, SpecialStrings(vocabulary.special), text)]


def infill_tokens(vocabulary: Vocabulary, prefix: str, suffix: str) -> list[int]:
    """Ids that ask for what belongs between `prefix` and `suffix`, in the order prefix, suffix, middle.

    Raises:
        EngineError: the model has no tokens for it.
    """
    marks = vocabulary.fill_in_middle
    if marks is None:
        raise EngineError("This model can't fill in a gap: it has no fill-in-the-middle tokens; choose a code model.")
    strings = SpecialStrings(vocabulary.special)
    before, after = (plain_tokens(vocabulary, strings, text) for text in (prefix, suffix))
    return [*_beginning(vocabulary), marks.prefix, *before, marks.suffix, *after, marks.middle]


_LONGEST_TOKEN = 64
"""Characters that a token of common text never exceeds by much."""


@dataclass(frozen=True, slots=True)
class FittedGap:
    """A gap with as much text around it as the context holds."""

    tokens: list[int]
    before: int
    """Tokens kept of the text before the gap, the nearest ones."""
    after: int
    cut: bool
    """Whether text was left out, farthest from the gap."""


def fit_gap(vocabulary: Vocabulary, prefix: str, suffix: str, n_ctx: int, room: int) -> FittedGap:
    """Ids that ask for what belongs between `prefix` and `suffix`, leaving `room` tokens of the context for it.

    What doesn't fit is left out farthest from the gap. The text before it weighs more: the text after it gets a
    quarter of the context, and more only where the text before it is shorter than the rest.

    Raises:
        EngineError: as `infill_tokens`.
    """
    most = n_ctx * _LONGEST_TOKEN  # so that a file of any size is tokenised in bounded time
    near = prefix[-most:], suffix[:most]
    tokens = infill_tokens(vocabulary, *near)
    marks = vocabulary.fill_in_middle
    assert marks is not None
    first, middle = tokens.index(marks.prefix) + 1, tokens.index(marks.suffix)
    before, after = tokens[first:middle], tokens[middle + 1 : -1]
    budget = max(0, n_ctx - room - (len(tokens) - len(before) - len(after)))
    kept_after = min(len(after), max(budget // 4, budget - len(before)))
    kept_before = min(len(before), budget - kept_after)
    cut = near != (prefix, suffix) or kept_before < len(before) or kept_after < len(after)
    kept = [*tokens[:first], *before[len(before) - kept_before :], marks.suffix, *after[:kept_after], marks.middle]
    return FittedGap(kept, kept_before, kept_after, cut)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A conversation that fits the context."""

    messages: tuple[Message, ...]
    tokens: list[int]
    dropped: int
    """Turns left out: messages of the user, with their answers."""
    begun: int = 0
    """How many of the tokens, at their end, are those of an answer that is to go on."""


def drop_oldest(
    vocabulary: Vocabulary,
    template: str,
    messages: Sequence[Message],
    n_ctx: int,
    room: int = 1,
    trained: int | None = None,
) -> Fitted:
    """Drops the oldest turns whole until the conversation leaves `room` tokens of the context for the answer.

    Where the last message is the assistant's, it is an answer that is to go on: its tokens come last. The system
    prompt and the last turn always stay. More is dropped than just needed, in steps of a quarter of the
    context: so the next turns keep the same beginning, and with it the KV cache. `trained` is the longest context that
    the model was trained for, where that is known.

    Raises:
        EngineError: even the last message alone doesn't fit; or as `chat_tokens`.
    """
    unfinished = begun(messages)
    last = begun_tokens(vocabulary, unfinished) if unfinished else []
    head, turns = _turns(messages[:-1] if unfinished else messages)

    def without(dropped: int) -> Fitted:
        kept = (*head, *(message for turn in turns[dropped:] for message in turn))
        tokens = chat_tokens(vocabulary, template, kept) + last
        return Fitted((*kept, unfinished) if unfinished else kept, tokens, dropped, len(last))

    whole = without(0)
    excess = len(whole.tokens) - (n_ctx - room)
    if excess <= 0:
        return whole
    step = max(n_ctx // 4, 1)
    enough = len(whole.tokens) - -(-excess // step) * step
    low, high = 0, max(len(turns) - 1, 0)
    best = without(high)
    while high - low > 1:
        middle = (low + high) // 2
        tried = without(middle)
        if len(tried.tokens) <= enough:
            high, best = middle, tried
        else:
            low = middle
    if len(best.tokens) >= n_ctx:
        raise EngineError(
            f"The last message takes {len(best.tokens):,} tokens with the system prompt, and the context holds "
            f"{n_ctx:,}: {shorter_or_larger(len(best.tokens), trained)}"
        )
    return best


def _turns(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system prompt, and the turns: each begins with a message of the user."""
    head = [message for message in messages[:1] if message.role == "system"]
    turns: list[list[Message]] = []
    for message in messages[len(head) :]:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    return head, turns


def _beginning(vocabulary: Vocabulary) -> list[int]:
    return [] if vocabulary.bos is None else [vocabulary.bos]


def _forms(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """The conversation as it is, and as templates take it that know less: each form only where it differs."""
    yield messages
    alternating = [_joined(list(group)) for _, group in groupby(messages, key=lambda message: message.role)]
    if len(alternating) < len(messages):
        yield alternating
    if len(alternating) > 1 and alternating[0].role == "system":
        yield [_joined([alternating[0], alternating[1]]), *alternating[2:]]


def _joined(messages: list[Message]) -> Message:
    if len(messages) == 1:
        return messages[0]
    return Message(messages[-1].role, "\n\n".join(message.content for message in messages))
