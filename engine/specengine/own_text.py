"""Which tokens of a prompt the model wrote itself: prompt lookup takes them for less than what it was given."""

from collections.abc import Sequence

from specengine.protocol import Message


def own_text(prompt: Sequence[int], messages: Sequence[Message], known: int = 0, begun: int = 0) -> list[range]:
    """Positions of the emitted tokens of earlier answers, in order, as far as the prompt holds them whole behind its
    first `known` tokens; the last `begun` ones are of an answer that is to go on. What was tokenised anew, as other
    models' answers are, is not found. Of several places the last one counts: answers quote what stands before them."""
    end = len(prompt) - begun
    found = [range(end, len(prompt))] if begun else []
    for message in reversed(messages):
        if end <= known:
            break
        if message.role == "assistant" and message.tokens:
            # Templates write the end of an answer themselves.
            ids = tuple(message.tokens[:-1])
            if (start := _last(prompt, ids, known, end)) is not None:
                found.append(range(start, start + len(ids)))
                end = start
    return found[::-1]


def _last(prompt: Sequence[int], ids: Sequence[int], start: int, end: int) -> int | None:
    if not ids:
        return None
    places = range(end - len(ids), start - 1, -1)
    return next((at for at in places if prompt[at] == ids[0] and tuple(prompt[at : at + len(ids)]) == ids), None)
