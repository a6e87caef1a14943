"""Who wrote an answer, run by run: neighbouring tokens of one source, and how many characters they spell."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from specchat.thinking import Thinking
from specengine.protocol import Token


@dataclass(frozen=True, slots=True)
class Run:
    source: str
    """"target", or the source whose drafts these tokens are (as Token.source)."""
    tokens: int
    characters: int
    """How much of the answer's text they spell, from where the run before ends."""
    thinking: bool = False
    """Whether they belong to the thinking block, its tags included."""


class Runs:
    """Gathers the runs of an answer while its tokens come; or holds those of one that is complete."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self.runs = list(runs)
        self.tokens = tokens_by_source(self.runs)
        """Tokens of each source so far."""
        self.thought = thought_tokens(self.runs)
        """Tokens of the thinking block so far."""
        self._thinking = Thinking()

    def add(self, tokens: Iterable[Token]) -> None:
        for token in tokens:
            thinking = self._is_thinking(token.text)
            self._add(token, thinking)
            self.tokens[token.source] += token.count
            self.thought += token.count * thinking

    def taken(self) -> tuple[Run, ...]:
        """The runs since the last time; what comes next begins a new one."""
        runs, self.runs = tuple(self.runs), []
        return runs

    def _is_thinking(self, text: str) -> bool:
        if self._thinking.over:
            return False
        found_before = self._thinking.found
        self._thinking.feed(text)
        if self._thinking.found and not found_before:  # what came so far was the opening tag
            self.runs = [replace(run, thinking=True) for run in self.runs]
            self.thought = thought_tokens(self.runs)
        return self._thinking.found

    def _add(self, token: Token, thinking: bool) -> None:
        last = self.runs[-1] if self.runs else None
        if last and (last.source, last.thinking) == (token.source, thinking):
            tokens, characters = last.tokens + token.count, last.characters + len(token.text)
            self.runs[-1] = Run(token.source, tokens, characters, thinking)
        else:
            self.runs.append(Run(token.source, token.count, len(token.text), thinking))


def runs_joined(*parts: Iterable[Run]) -> tuple[Run, ...]:
    """The runs of a whole, from those of its parts."""
    runs: list[Run] = []
    for run in chain(*parts):
        last = runs[-1] if runs else None
        if last and (last.source, last.thinking) == (run.source, run.thinking):
            runs[-1] = replace(last, tokens=last.tokens + run.tokens, characters=last.characters + run.characters)
        else:
            runs.append(run)
    return tuple(runs)


def tokens_of(text: str, runs: Iterable[Run]) -> Iterator[Token]:
    """The text of an answer as tokens that stand for whole runs; what no run covers is nobody's."""
    start = 0
    for run in runs:
        yield Token(text[start : start + run.characters], run.source, run.tokens)
        start += run.characters
    if start < len(text):
        yield Token(text[start:], "", 0)


def tokens_by_source(runs: Iterable[Run]) -> Counter[str]:
    """How many tokens each source wrote."""
    counts: Counter[str] = Counter()
    for run in runs:
        counts[run.source] += run.tokens
    return counts


def thought_tokens(runs: Iterable[Run]) -> int:
    """How many tokens the thinking block took."""
    return sum(run.tokens for run in runs if run.thinking)
