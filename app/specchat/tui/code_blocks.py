"""The code in an answer: what stands between fences, as it was written, without the fences."""

from dataclasses import dataclass

from specchat.tui.segments import Code, CodeEnd, CodeStart, Segmenter


@dataclass(frozen=True, slots=True)
class CodeBlock:
    language: str
    text: str


def code_blocks(answer: str) -> list[CodeBlock]:
    """All blocks, first to last; one that was left open too."""
    found: list[CodeBlock] = []
    language, parts = "", list[str]()
    segmenter = Segmenter()
    for step in (*segmenter.feed(answer), *segmenter.end(), CodeEnd()):
        match step:
            case CodeStart(name):
                language, parts = name, []
            case Code(text):
                parts.append(text)
            case CodeEnd() if parts:
                found.append(CodeBlock(language, "".join(parts)))
                parts = []
    return found
