"""How gamma stands on recorded answers: against plain decoding, every fixed setting, and the best in hindsight."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from specengine.costs import CostTable
from specengine.gamma import Gamma
from specengine.hindsight import PLAIN, Fixed, Hindsight, Passes, fixed_settings, hindsight, oracle_seconds, passes
from specengine.replay import Policy, Replay, replay
from specengine.trace import Trace


@dataclass(frozen=True, slots=True)
class Standing:
    """Tokens per second of one conversation under one cost table."""

    name: str
    tokens: int
    ours: float
    fixed: dict[Fixed, float]
    oracle: float
    """What no choice of lengths could surpass."""
    replays: list[Replay]
    """What ours did, answer by answer."""

    @property
    def plain(self) -> float:
        return self.fixed[PLAIN]

    @property
    def best(self) -> Fixed:
        """The fixed setting that turned out fastest."""
        return max(self.fixed, key=lambda setting: self.fixed[setting])

    @property
    def to_best(self) -> float:
        """Our rate over that of the best fixed setting."""
        return self.ours / self.fixed[self.best]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Traces that follow each other in one chat, with what every fixed setting runs for them."""

    traces: tuple[Trace, ...]
    seen: tuple[Hindsight, ...]
    fixed: dict[Fixed, list[Passes]]

    @property
    def name(self) -> str:
        first = self.traces[0]
        return f"{first.workload}, temperature {first.sampling.temperature:g}"


def conversations(traces: Iterable[Trace]) -> Iterator[Conversation]:
    """Traces put together to conversations, with the passes of all fixed settings counted once for all tables."""
    for chat in _chats(traces):
        seen = hindsight(chat)
        settings = fixed_settings(chat[0].draft_along is not None)
        yield Conversation(
            tuple(chat), tuple(seen), {setting: [passes(one, setting) for one in seen] for setting in settings}
        )


def standing(conversation: Conversation, costs: CostTable, policy: Callable[[CostTable], Policy] = Gamma) -> Standing:
    """Replays a conversation under a table that `policy` knows and that holds still."""
    replays = replay(conversation.traces, lambda: policy(costs), costs)
    tokens = sum(one.tokens for one in conversation.seen)
    fixed = {setting: tokens / sum(ran.seconds(costs) for ran in runs) for setting, runs in conversation.fixed.items()}
    oracle = tokens / sum(oracle_seconds(one, costs) for one in conversation.seen)
    ours = tokens / sum(one.seconds for one in replays)
    return Standing(conversation.name, tokens, ours, fixed, oracle, replays)


def _chats(traces: Iterable[Trace]) -> Iterator[Sequence[Trace]]:
    chat: list[Trace] = []
    for trace in traces:
        if chat and not trace.continues:
            yield chat
            chat = []
        chat.append(trace)
    if chat:
        yield chat
