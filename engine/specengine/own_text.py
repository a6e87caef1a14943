"""Which tokens of a prompt the model wrote itself: prompt lookup takes them for less than what it was given."""

from collections.abc import Iterator, Sequence

from specengine.protocol import Message


def own_text(prompt: Sequence[int], messages: Sequence[Message], begun: int = 0) -> Iterator[range]:
    """Positions of the emitted tokens of earlier answers, in order, as far as the prompt holds them whole; the last
    `begun` tokens are of an answer that is to go on. What was tokenised anew, as other models' answers are, is not
    found."""
    reached, end = 0, len(prompt) - begun
    for message in messages:
        if message.role == "assistant" and message.tokens:
            # Templates write the end of an answer themselves.
            ids = message.tokens[:-1]
            if (start := _find(prompt, ids, reached, end)) is not None:
                reached = start + len(ids)
                yield range(start, reached)
    if begun:
        yield range(end, len(prompt))


def _find(prompt: Sequence[int], ids: Sequence[int], start: int, end: int) -> int | None:
    if not ids:
        return None
    places = range(start, end - len(ids) + 1)
    return next((at for at in places if prompt[at] == ids[0] and tuple(prompt[at : at + len(ids)]) == tuple(ids)), None)
