"""A gap in code that a model is to fill: where it is, and what language surrounds it."""

import re
from dataclasses import dataclass

from specchat.chat import Settings
from specchat.complete.ending import Ending
from specchat.complete.place import MARK, line_start
from specchat.complete.run import MAX_TOKENS
from specengine.errors import EngineError
from specengine.protocol import Generate, Infill
from specengine.settings import Limits, Sampling

_SIGNS = (
    ("python", r"^\s*(?:def \w+\(|class \w+[:(]|from [\w.]+ import |import \w+$|elif |@\w+$)"),
    ("rust", r"^\s*(?:pub )?(?:fn \w+|impl\b|let mut |use [\w:]+;|struct \w+ \{)"),
    ("go", r"^\s*(?:package \w+$|func (?:\(\w+ [*\w]+\) )?\w+\()|:= "),
    ("cpp", r"^\s*(?:#include\b|template ?<|namespace \w+|std::)"),
    ("java", r"^\s*(?:public|private|protected) (?:static |final )*(?:class|void|\w+(?:<[^>]*>)?) \w+"),
    ("typescript", r"^\s*(?:export )?(?:interface \w+|type \w+ =|(?:const|let) \w+: )"),
    ("javascript", r"^\s*(?:export |async )*(?:function\b|const \w+ =|let \w+ =)|=> [{(]"),
    ("html", r"(?i)^\s*<(?:!doctype|html|head|body|div)\b"),
    ("sql", r"(?i)^\s*(?:select .* from|create table|insert into) "),
    ("bash", r"^#!.*sh$|^\s*(?:fi|done|esac)$"),
)
"""What lines of a language look like; the one that most lines look like is it."""


@dataclass(frozen=True, slots=True)
class Gap:
    before: str
    after: str

    @property
    def language(self) -> str:
        """By Pygments' name; "text" where nothing tells."""
        code = f"{self.before}\n{self.after}"
        found = {name: len(re.findall(signs, code, re.MULTILINE)) for name, signs in _SIGNS}
        best = max(found, key=lambda name: found[name])
        return best if found[best] else "text"

    def ending(self) -> Ending:
        return Ending("block", self.before[line_start(self.before, len(self.before)) :])


def gap_in(text: str) -> Gap:
    """The gap at the mark, or at the end of a text without one.

    Raises:
        EngineError: there is no text, or more than one mark; one sentence.
    """
    before, mark, after = text.partition(MARK)
    if MARK in after:
        raise EngineError(f"There is more than one {MARK}; leave the one at the gap.")
    if not text.replace(MARK, "").strip():
        raise EngineError(f"/fim takes code, pasted or attached, with {MARK} where it is to be filled.")
    return Gap(before if mark else text, after)


def request(id: int, gap: Gap, settings: Settings) -> Generate:
    """Asks for what belongs into the gap: the likeliest text, and beside the conversation."""
    return Generate(
        id=id,
        prompt=Infill(gap.before, gap.after),
        sampling=Sampling(temperature=0.0, seed=settings.sampling.seed),
        limits=Limits(MAX_TOKENS),
        speculation=settings.speculation,
        gamma=settings.gamma,
        lookup=settings.lookup,
        draft=settings.draft,
        aside=True,
    )
