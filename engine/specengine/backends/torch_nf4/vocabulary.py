"""A Hugging Face tokenizer as a Vocabulary: tokenizer.json and the files beside it, no code of the model's own."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tokenizers import Tokenizer

from specengine.errors import EngineError
from specengine.language_model import FillInMiddle
from specengine.model_folder import TOKENIZER, ModelFolder, read_json

_ENDS: Final = frozenset(
    [
        "<|endoftext|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|end_of_text|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<eos>",
        "<EOT>",
        "<end_of_utterance>",
        "</s>",
        "<｜end▁of▁sentence｜>",
        "<|fim_pad|>",
        "<|repo_name|>",
        "<|file_sep|>",
    ]
)
"""Tokens that end a turn, a text or a file wherever a model has them: folders often name only one of theirs."""
_FILL_IN_MIDDLE: Final = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
)
_MARKS: Final = (("<|", "|>"), ("<｜", "｜>"))
"""What control tokens begin and end with, also where the tokenizer calls them ordinary."""
_CANONICAL: Final = frozenset({"NFC", "NFD", "NFKC", "NFKD"})


class HfVocabulary:
    """Implements `language_model.Vocabulary`."""

    def __init__(self, folder: ModelFolder, size: int) -> None:
        """Reads the tokenizer.

        Args:
            size: width of a row of logits; ids behind the tokenizer's own are padding.

        Raises:
            EngineError: there is none, or it is of a kind that can't be used.
        """
        described = _described(folder.path)
        settings = _settings(folder.path)
        self.size = size
        added = {int(token["id"]): token for token in described.get("added_tokens") or []}
        for token in added.values():
            token["special"] = token["special"] or _looks_like_control(token["content"])
        # Text must come back out of its tokens as it went in, so it is not rewritten; llama.cpp doesn't either.
        described["normalizer"] = _without_rewriting(described.get("normalizer"))
        try:
            self._tokenizer = Tokenizer.from_str(json.dumps(described))
        except Exception as error:  # the library raises nothing narrower
            raise EngineError(
                f"{folder.path / TOKENIZER} can't be used: {error}; update `tokenizers`, or download it again."
            ) from None
        # A control token's text stays text; `special` on an added token says which those are.
        self._tokenizer.encode_special_tokens = True
        self._byte_level = _is_byte_level(described, folder.path)
        self._pieces: dict[int, bytes] = {}
        self._added = {id: str(token["content"]) for id, token in added.items()}
        self.special: Mapping[str, int] = {str(token["content"]): id for id, token in added.items() if id < size}
        self.control = frozenset(id for id, token in added.items() if token["special"] and id < size)
        self.bos_text, self.eos_text = _text_of(settings.get("bos_token")), _text_of(settings.get("eos_token"))
        self.bos = self._begins_with(settings)
        self.end_of_generation = self._ends(folder)
        self.fill_in_middle = self._marks()

    def tokenize(self, text: str) -> list[int]:
        # Lone surrogates (a broken paste) have no UTF-8 form.
        plain = text.encode("utf-8", errors="replace").decode()
        ids: list[int] = self._tokenizer.encode(plain, add_special_tokens=False).ids
        return ids

    def piece(self, token: int) -> bytes:
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token)
        return known

    def name(self, token: int) -> str:
        known: str | None = self._tokenizer.id_to_token(token)
        return f"[PAD{token}]" if known is None else known

    def _read_piece(self, token: int) -> bytes:
        if token in self.control:
            return b""
        if token in self._added:
            return self._added[token].encode()
        spelled: str | None = self._tokenizer.id_to_token(token)
        if spelled is None:
            return b""
        if self._byte_level:
            return bytes(_BYTES[letter] for letter in spelled) if _BYTES.keys() >= set(spelled) else spelled.encode()
        if len(spelled) == 6 and spelled.startswith("<0x") and spelled.endswith(">"):
            return bytes([int(spelled[3:5], 16)])
        return spelled.replace("▁", " ").encode()

    def _begins_with(self, settings: Mapping[str, Any]) -> int | None:
        """The begin-of-sequence id, if prompts begin with it."""
        bos = self._tokenizer.token_to_id(self.bos_text) if self.bos_text else None
        wanted = settings.get("add_bos_token")
        if wanted is None:
            wanted = bos is not None and self._tokenizer.encode("", add_special_tokens=True).ids[:1] == [bos]
        return bos if wanted else None

    def _ends(self, folder: ModelFolder) -> frozenset[int]:
        generation = folder.path / "generation_config.json"
        said = [folder.config.get("eos_token_id")]
        if generation.is_file():
            said.append(read_json(generation).get("eos_token_id"))
        ids = [id for value in said for id in (value if isinstance(value, list) else [value])]
        if self.eos_text:
            ids.append(self._tokenizer.token_to_id(self.eos_text))
        ids += [id for text, id in self.special.items() if text in _ENDS and id in self.control]
        return frozenset(id for id in ids if isinstance(id, int) and 0 <= id < self.size)

    def _marks(self) -> FillInMiddle | None:
        for prefix, suffix, middle in _FILL_IN_MIDDLE:
            if {prefix, suffix, middle} <= self.special.keys():
                return FillInMiddle(self.special[prefix], self.special[suffix], self.special[middle])
        return None


def chat_template(folder: Path) -> str | None:
    """The Jinja source of the folder's chat template, if there is one.

    Raises:
        EngineError: a file that should hold it can't be read.
    """
    file = folder / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EngineError(f"{file} can't be read: {error}.") from None
    template = _settings(folder).get("chat_template")
    if isinstance(template, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default") or next(iter(named.values()), None)
    return template if isinstance(template, str) else None


def _described(folder: Path) -> dict[str, Any]:
    file = folder / TOKENIZER
    if not file.is_file():
        raise EngineError(f"{folder} has no {TOKENIZER}; find a version of the model that has one.")
    return read_json(file)


def _settings(folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    return read_json(file) if file.is_file() else {}


def _text_of(token: object) -> str:
    """A special token as tokenizer_config.json names it: its text, or a table with it, or nothing."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _looks_like_control(text: str) -> bool:
    return any(text.startswith(start) and text.endswith(end) for start, end in _MARKS)


def _steps(part: object) -> Iterable[Mapping[str, Any]]:
    """The steps of a normalizer, pre-tokenizer or decoder, which may be one or a sequence of them."""
    if not isinstance(part, dict):
        return
    nested = next((part[key] for key in ("normalizers", "pretokenizers", "decoders") if key in part), None)
    if nested is None:
        yield part
    for step in nested or ():
        yield from _steps(step)


def _without_rewriting(normalizer: object) -> object:
    kept = [step for step in _steps(normalizer) if step.get("type") not in _CANONICAL]
    return {"type": "Sequence", "normalizers": kept} if kept else None


def _is_byte_level(described: Mapping[str, Any], folder: Path) -> bool:
    """Whether tokens are spelled in GPT-2's letters for bytes; else they are text with ▁ for spaces."""
    kinds = {step.get("type") for step in _steps(described.get("decoder"))}
    if "ByteLevel" in kinds:
        return True
    if kinds & {"Metaspace", "Replace", "ByteFallback"}:
        return False
    raise EngineError(
        f"{folder / TOKENIZER} is of a kind that specchat doesn't know (decoder "
        f"{', '.join(map(str, kinds)) or 'none'}); run the model with llama.cpp."
    )


def _byte_letters() -> dict[str, int]:
    """GPT-2's printable letter for each byte: printable bytes stand for themselves, others follow from U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in plain)
    return {chr(byte): byte for byte in plain} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


_BYTES: Final = _byte_letters()
