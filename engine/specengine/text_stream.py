"""Turns an answer's tokens into text to show: whole characters, clean, cut at a stop string."""

import codecs
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from specengine.clean_text import Cleaner
from specengine.language_model import Vocabulary
from specengine.protocol import Token
from specengine.stop_strings import StopStrings


class TextStream:
    """The text of one answer, fed token by token. Each token pushed is counted once in what comes out, in order.

    A character whose bytes are spread over tokens belongs to the token that completes it; bytes that are no UTF-8
    become U+FFFD as soon as that is certain. What could still become an escape sequence or a stop string is held
    back: less than the longest stop string, plus `clean_text.LONGEST_SEQUENCE` characters. See `Cleaner` for what is
    left out and `StopStrings` for which stop string wins. Work per token doesn't grow with the answer.
    """

    def __init__(self, vocabulary: Vocabulary, stop: Sequence[str] = ()) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._cleaner = Cleaner()
        self._stops = StopStrings(stop)
        self._held: deque[_Piece] = deque()
        self._held_length = 0
        self._pushed = 0
        self._unsettled: int | None = None
        """The first token of those, up to now, that ended inside a character or an escape sequence."""
        self._source = ""
        self.stopped = False
        """A stop string completed; nothing more comes."""
        self.tokens_before_stop: int | None = None
        """How many of the pushed tokens lie wholly before the stop string and end with a whole character: their text
        is what was returned, or the beginning of it where the stop string begins inside a token."""

    def follow(self, tokens: Sequence[int]) -> None:
        """The text goes on behind these tokens, which end with a whole character; theirs is not returned."""
        for token in tokens:
            self._cleaner.push(self._decoder.decode(self._vocabulary.piece(token)))

    def push(self, token: int, source: str) -> list[Token]:
        """The text that `token` settles, its own and of tokens before it; empty once stopped."""
        if self.stopped:
            return []
        number, self._pushed = self._pushed, self._pushed + 1
        self._source = source
        start = number if self._unsettled is None else self._unsettled
        text = ""
        if data := self._vocabulary.piece(token):
            text = self._cleaner.push(self._decoder.decode(data))
            self._unsettled = start if self._pending() else None
        return self._settle(_Piece(text, source, start, 1))

    def finish(self, cut: bool = False) -> list[Token]:
        """What was still held back, once no more tokens come. It may complete a stop string. Where the answer was cut,
        half a character at its end is none that the model wrote wrongly: it is left out."""
        if self.stopped:
            return []
        rest = "" if cut else self._decoder.decode(b"", final=True)
        text = self._cleaner.push(rest) + self._cleaner.finish()
        start = self._pushed if self._unsettled is None else self._unsettled
        settled = self._settle(_Piece(text, self._source, start, 0)) if text else []
        return settled if self.stopped else settled + self._take(self._held_length)

    def _pending(self) -> bool:
        return self._cleaner.pending or bool(self._decoder.getstate()[0])

    def _settle(self, piece: "_Piece") -> list[Token]:
        self._held.append(piece)
        self._held_length += len(piece.text)
        match = self._stops.push(piece.text) if piece.text else None
        if match is None:
            return self._take(self._held_length - self._stops.held)
        settled = self._take(self._held_length - (len(piece.text) - match.end) - match.length)
        self.stopped = True
        self.tokens_before_stop = self._held[0].start
        return settled + [Token("", piece.source, piece.count) for piece in self._held]

    def _take(self, length: int) -> list[Token]:
        """Removes the first `length` characters of what is held, and tokens without text up to the next character."""
        self._held_length -= length
        taken = []
        while self._held and (length or not self._held[0].text):
            piece = self._held.popleft()
            if len(piece.text) > length:
                self._held.appendleft(_Piece(piece.text[length:], piece.source, piece.start, piece.count))
                taken.append(Token(piece.text[:length], piece.source, 0))
                break
            taken.append(Token(piece.text, piece.source, piece.count))
            length -= len(piece.text)
        return taken


@dataclass(frozen=True, slots=True)
class _Piece:
    """Clean text that one token settled."""

    text: str
    source: str
    start: int
    """No earlier than here may the tokens be cut, if the text is cut in this piece."""
    count: int
    """1 if the token is counted with this piece."""
