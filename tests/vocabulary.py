"""Vocabularies for tests: one made of given pieces, and those of model files, read without their weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp

from specengine.backends.llamacpp_vocabulary import LlamaVocabulary
from specengine.language_model import FillInMiddle


class Pieces:
    """Token i stands for the i-th piece; the last token ends a generation."""

    bos: int | None = None
    bos_text = ""
    eos_text = "<end>"
    fill_in_middle: FillInMiddle | None = None

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [*pieces, b""]
        self.size = len(self._pieces)
        self.special: Mapping[str, int] = {"<end>": self.size - 1}
        self.control = self.end_of_generation = frozenset({self.size - 1})

    def tokenize(self, text: str) -> list[int]:
        """One token a byte, where there is a piece for it."""
        return [self._pieces.index(bytes([byte])) for byte in text.encode()]

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def name(self, token: int) -> str:
        return "<end>" if token == self.size - 1 else self._pieces[token].decode("latin-1")


@dataclass(frozen=True)
class ModelFile:
    """What a model file says about words."""

    vocabulary: LlamaVocabulary
    template: str
    handle: Any

    def tokenize_marks(self, text: str) -> list[int]:
        """llama.cpp's own tokens of text that it trusts: what spells a special token is one."""
        data = text.encode()
        ids = (llama_cpp.llama_token * (len(data) + 8))()
        count = llama_cpp.llama_tokenize(self.handle, data, len(data), ids, len(ids), False, True)
        return list(ids[:count])


@contextmanager
def opened(path: Path) -> Iterator[ModelFile]:
    """A model file's words; its weights stay on the disk."""
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
    assert model is not None
    try:
        template = llama_cpp.llama_model_chat_template(model, None)
        handle = llama_cpp.llama_model_get_vocab(model)
        yield ModelFile(LlamaVocabulary(handle), (template or b"").decode(), handle)
    finally:
        llama_cpp.llama_model_free(model)
