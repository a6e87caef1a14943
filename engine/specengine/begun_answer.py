"""An unfinished answer as the end of a prompt: the model goes on with it as if it had never stopped."""

import codecs
from collections.abc import Sequence
from typing import Final

from specengine.clean_text import clean
from specengine.language_model import Vocabulary, spelled
from specengine.protocol import Message
from specengine.special_strings import SpecialStrings, plain_tokens

_LONGEST_CHARACTER: Final = 4


def begun_tokens(vocabulary: Vocabulary, answer: Message) -> list[int]:
    """Ids of the answer's content, to stand behind where the model's answer begins.

    They are the emitted ids as far as those spell the content in whole characters, so that the KV cache is found again
    and nothing separates the two parts; what they don't spell of it is tokenised anew.
    """
    ids = _spelling(vocabulary, answer)
    rest = answer.content[len(clean(spelled(vocabulary, ids))) :]
    return [*ids, *plain_tokens(vocabulary, SpecialStrings(vocabulary.special), rest, inside=True)]


def _spelling(vocabulary: Vocabulary, answer: Message) -> list[int]:
    """The longest beginning of the emitted ids that may stay: an end-of-generation token goes, and so do the last
    bytes of a character that was cut apart."""
    ids = list(answer.tokens or ())
    if ids and ids[-1] in vocabulary.end_of_generation:
        del ids[-1]
    if not all(0 <= token < vocabulary.size for token in ids):
        return []
    for kept in range(len(ids), max(0, len(ids) - _LONGEST_CHARACTER), -1):
        data = spelled(vocabulary, ids[:kept])
        if _whole(data) and answer.content.startswith(clean(data)):
            return ids[:kept]
    return []


def _whole(data: bytes) -> bool:
    """Whether the bytes end with the end of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    return not decoder.getstate()[0]


def begun(messages: Sequence[Message]) -> Message | None:
    """The unfinished answer at the end of a conversation, if there is one."""
    return messages[-1] if messages and messages[-1].role == "assistant" else None
