"""What happened in the rounds of an answer, and files of it: the raw data behind every figure of the bench, from which
other decisions can be replayed without a model (`replay`)."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from specengine.costs import CostTable
from specengine.errors import EngineError
from specengine.settings import Sampling


class Round(msgspec.Struct, frozen=True):
    """One round: a draft, perhaps empty, and the target pass that verified it. Seconds are wall-clock."""

    length: int
    """Committed tokens before it."""
    emitted: int
    """Tokens that it added to the answer: those up to the answer's end, if that lay inside the block."""
    source: str
    """Source of the draft: "lookup", "draft" (the draft model), or "none"."""
    drafted: int
    """Its length: the target pass was one wider."""
    accepted: int
    """Tokens of it that became part of the answer."""
    lookup: int
    """Length of prompt lookup's proposal, verified or not."""
    probe: bool
    """The draft was not expected to pay; it was drafted to learn whether it would."""
    draft_passes: int
    draft_read: int
    """Tokens that the draft model read in passes of their own, to catch up."""
    draft_caught_up: int
    """Committed tokens fed to the draft model's first pass: one, or two after a full accept."""
    draft_s: float
    """Proposing, both of the following included."""
    draft_read_s: float
    draft_steps_s: float
    verify_s: float
    host_s: float
    copied: int = 0
    """Tokens at its draft's end with which prompt lookup went on behind the draft model's."""

    @property
    def judged(self) -> int:
        """Drafted tokens that were accepted or turned down: not those behind the end of the answer."""
        return self.drafted if self.emitted > self.accepted else self.emitted

    @property
    def parts(self) -> "tuple[Part, ...]":
        """What became of each source's part of the draft, as far as the answer's end lets it be judged."""
        drawn = self.drafted - self.copied
        cuts = ((self.source, 0, drawn), ("lookup", drawn, self.drafted))
        return tuple(self._part(source, start, end) for source, start, end in cuts if min(end, self.judged) > start)

    @property
    def seconds(self) -> float:
        return self.draft_s + self.verify_s + self.host_s

    def _part(self, source: str, start: int, end: int) -> "Part":
        reached = min(self.accepted + 1, self.judged)
        counts = (min(max(upto - start, 0), end - start) for upto in (self.judged, reached, self.accepted))
        return Part(source, *counts)


class Part(NamedTuple):
    """One source's tokens within the draft of a round."""

    source: str
    judged: int
    """As `Round.judged`;"""
    reached: int
    """of these, those with all tokens before them accepted, the earlier source's too;"""
    accepted: int
    """and of these, those that were accepted too."""


class DraftAlong(msgspec.Struct, frozen=True):
    """What the draft model would have said at each position of an answer, if it had been asked there."""

    confidence: tuple[float, ...]
    """Its top probability."""
    agrees: tuple[bool, ...]
    """Whether the token that it would have drafted is the one that the target emitted."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, in full."""

    workload: str
    mode: str
    round: int
    model: str
    draft: str | None
    sampling: Sampling
    prompt: tuple[int, ...]
    """Token ids before the answer, earlier turns included."""
    answer: tuple[int, ...]
    """The emitted ids."""
    end_of_generation: tuple[int, ...]
    control: tuple[int, ...]
    """Ids that prompt lookup never matches over."""
    rounds: tuple[Round, ...]
    continues: bool = False
    """A further turn of the chat before it: indexes, caches and estimates carry over."""
    draft_along: DraftAlong | None = None
    """None without a draft model."""
    costs: CostTable
    """As it was when the answer had ended."""


def write_traces(file: Path, traces: Iterable[Trace]) -> None:
    """Writes one JSON object a line, packed if the name ends with .gz; an existing file is replaced.

    Raises:
        EngineError: the file can't be written.
    """
    lines = b"".join(msgspec.json.encode(trace) + b"\n" for trace in traces)
    try:
        file.write_bytes(gzip.compress(lines, mtime=0) if file.suffix == ".gz" else lines)
    except OSError as error:
        raise EngineError(f"The traces can't be written to {file}: {error.strerror}.") from None


def read_traces(file: Path) -> Iterator[Trace]:
    """The traces of a file, in order.

    Raises:
        EngineError: the file can't be read, or a line of it is not a trace.
    """
    try:
        content = file.read_bytes()
        lines = (gzip.decompress(content) if content.startswith(_GZIP) else content).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise EngineError(
            f"The traces can't be read from {file}: {getattr(error, 'strerror', None) or error}; give a file that "
            "`specchat bench --trace FILE` wrote."
        ) from None
    for number, line in enumerate(lines, 1):
        try:
            yield msgspec.json.decode(line, type=Trace)
        except msgspec.DecodeError as error:
            raise EngineError(
                f"{file}, line {number} is not a trace ({error}); `specchat bench --trace FILE` writes them."
            ) from None


_GZIP: Final = b"\x1f\x8b"
