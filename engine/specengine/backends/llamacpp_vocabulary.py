"""A GGUF file's vocabulary, read through llama.cpp."""

import ctypes
from collections.abc import Mapping
from typing import Final

import llama_cpp as c

from specengine.errors import EngineError
from specengine.language_model import FillInMiddle

_SPECIAL_ATTRIBUTES: Final = c.LLAMA_TOKEN_ATTR_CONTROL | c.LLAMA_TOKEN_ATTR_USER_DEFINED
_ABSENT: Final = -1


class LlamaVocabulary:
    """Implements `language_model.Vocabulary`. Valid as long as the model that it was taken from."""

    def __init__(self, handle: c.llama_vocab_p) -> None:
        self._handle = handle
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(256)
        self.size: int = c.llama_vocab_n_tokens(handle)
        self.bos: int | None = c.llama_vocab_bos(handle) if c.llama_vocab_get_add_bos(handle) else None
        self.bos_text = self._text(c.llama_vocab_bos(handle))
        self.eos_text = self._text(c.llama_vocab_eos(handle))
        special: dict[str, int] = {}
        control, ends = set(), set()
        for token in range(self.size):
            attributes = c.llama_vocab_get_attr(handle, token)
            if attributes & _SPECIAL_ATTRIBUTES:
                special[self.name(token)] = token
                if attributes & c.LLAMA_TOKEN_ATTR_CONTROL:
                    control.add(token)
            if c.llama_vocab_is_eog(handle, token):
                ends.add(token)
        special.pop("", None)
        self.special: Mapping[str, int] = special
        self.control = frozenset(control)
        self.end_of_generation = frozenset(ends)
        self.fill_in_middle = _fill_in_middle(handle)

    def tokenize(self, text: str) -> list[int]:
        data = text.encode("utf-8", errors="replace")
        room = len(data) + 8
        while True:
            ids = (c.llama_token * room)()
            count = c.llama_tokenize(self._handle, data, len(data), ids, room, False, False)
            if count >= 0:
                return list(ids[:count])
            if -count <= room:
                raise EngineError("The text is too long to be split into tokens; send it in smaller parts.")
            room = -count

    def piece(self, token: int) -> bytes:
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token)
        return known

    def name(self, token: int) -> str:
        text: bytes | None = c.llama_vocab_get_text(self._handle, token)
        return (text or b"").decode("utf-8", errors="replace")

    def _text(self, token: int) -> str:
        return "" if token == _ABSENT else self.name(token)

    def _read_piece(self, token: int) -> bytes:
        size = c.llama_token_to_piece(self._handle, token, self._buffer, len(self._buffer), 0, False)
        if size < 0:
            self._buffer = ctypes.create_string_buffer(-size)
            size = c.llama_token_to_piece(self._handle, token, self._buffer, len(self._buffer), 0, False)
        return self._buffer.raw[: max(size, 0)]


def _fill_in_middle(handle: c.llama_vocab_p) -> FillInMiddle | None:
    ids = c.llama_vocab_fim_pre(handle), c.llama_vocab_fim_suf(handle), c.llama_vocab_fim_mid(handle)
    return None if _ABSENT in ids else FillInMiddle(*ids)
