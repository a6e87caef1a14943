"""The words of the tiny test models: real tokenizers, small enough to be made on the spot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import gguf

CHATML: Final = (
    "{%- if messages[0]['role'] == 'system' %}\n"
    "    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
    "{%- else %}\n"
    "    {{- '<|im_start|>system\\nYou are a tiny model. You are a helpful assistant.<|im_end|>\\n' }}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if not (loop.first and message.role == 'system') %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
"""A chat template in the manner of Qwen2.5's, with a default system prompt."""

END: Final = "<|im_end|>"
CONTROL: Final = ("<|endoftext|>", "<|im_start|>", END, "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
USER_DEFINED: Final = ("<tool_call>", "</tool_call>")


@dataclass(frozen=True)
class Tokenizer:
    """Texts and kinds of the tokens, in order of their ids."""

    tokens: Sequence[str]
    types: Sequence[gguf.TokenType]
    merges: Sequence[str] | None = None
    """Of a byte-level BPE; None is a SentencePiece tokenizer."""

    def id(self, token: str) -> int:
        return self.tokens.index(token)

    def write(self, writer: gguf.GGUFWriter, template: str | None) -> None:
        writer.add_vocab_size(len(self.tokens))
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        if self.merges is None:
            writer.add_tokenizer_model("llama")
            writer.add_token_scores([-float(token) for token in range(len(self.tokens))])
            writer.add_unk_token_id(self.id("<unk>"))
            writer.add_bos_token_id(self.id("<s>"))
            writer.add_eos_token_id(self.id("</s>"))
            writer.add_add_bos_token(True)
            writer.add_add_space_prefix(True)
        else:
            writer.add_tokenizer_model("gpt2")
            writer.add_tokenizer_pre("qwen2")
            writer.add_token_merges(self.merges)
            writer.add_bos_token_id(self.id("<|endoftext|>"))
            writer.add_eos_token_id(self.id(END))
            writer.add_pad_token_id(self.id("<|endoftext|>"))
            writer.add_add_bos_token(False)
        if template is not None:
            writer.add_chat_template(template)


def byte_level(vocab_extra: int = 0) -> Tokenizer:
    """A byte-level BPE in the manner of Qwen2.5's: every byte, some merges, the marks, and padding tokens."""
    tokens = [spelling(bytes([byte])) for byte in range(256)]
    merges: list[str] = []
    for text in _MERGED:
        _add_merges(text.encode(), tokens, merges)
    for half in _HALVES:
        _add_merges(half, tokens, merges)
    types = [gguf.TokenType.NORMAL] * len(tokens)
    padding = [f"[PAD{len(tokens) + len(CONTROL) + len(USER_DEFINED) + i}]" for i in range(vocab_extra)]
    for texts, kind in (
        (CONTROL, gguf.TokenType.CONTROL),
        (USER_DEFINED, gguf.TokenType.USER_DEFINED),
        (padding, gguf.TokenType.UNUSED),
    ):
        tokens += texts
        types += [kind] * len(texts)
    return Tokenizer(tokens, types, merges)


def sentencepiece() -> Tokenizer:
    """A tokenizer in the manner of Llama 2's: it puts a space before every text, wants a begin-of-sequence token, and
    has bytes for the characters that it doesn't know."""
    kinds = {
        gguf.TokenType.UNKNOWN: ["<unk>"],
        gguf.TokenType.CONTROL: ["<s>", "</s>"],
        gguf.TokenType.USER_DEFINED: list(USER_DEFINED),
        gguf.TokenType.BYTE: [f"<0x{byte:02X}>" for byte in range(256)],
        gguf.TokenType.NORMAL: ["▁", *map(chr, range(33, 127)), *_PIECES.split()],
    }
    return Tokenizer(
        [text for texts in kinds.values() for text in texts], [kind for kind, texts in kinds.items() for _ in texts]
    )


def spelling(data: bytes) -> str:
    """Bytes as byte-level tokens are written: GPT-2 has a printable letter for each."""
    return "".join(_LETTERS[byte] for byte in data)


def _byte_letters() -> list[str]:
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(rest)) for byte in range(256)]


_LETTERS: Final = _byte_letters()


def _add_merges(data: bytes, tokens: list[str], merges: list[str]) -> None:
    """Adds the merges that are still missing to build `data` as one token, from its left."""
    known = set(tokens)
    left = spelling(data[:1])
    for byte in data[1:]:
        right = spelling(bytes([byte]))
        if left + right not in known:
            tokens.append(left + right)
            merges.append(f"{left} {right}")
        left += right


# Each becomes one token, built by merges from its left: words, code, indentation, line ends, halves of characters.
# The tokenizer never forms "\n    " (it splits text there before merging), but the model may emit it.
_SPACES: Final = ("  ", "    ", "        ", "   ", "       ", "\n\n", "\n    ", ":\n", ")\n", "):\n")
_WORDS: Final = """ =| ==| +|()|(self| t| th| the|he|in| in|er|an| an| and|on|re| re| return|st|at| a|en|or| for| of|\
 to|is| is|it| if|def| def|self| self|None|True|ing|ion|the|hello| hello|world| world|im|_start|_end|tool|_call|\
print|len|é|ü|你|好|🙂|import| import|class| not| with|user|system|assistant"""
_MERGED: Final = (*_SPACES, *_WORDS.split("|"))
_HALVES: Final = ("🙂".encode()[:2], "世".encode()[:2], "—".encode()[:2])
_PIECES: Final = "▁t he ▁the ▁w or ▁wor ld ▁world ▁▁ to <t <to <s s> /s> ▁["
