"""Replays of recorded answers: they tell what really happened, and what fixed settings would have done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import tiny
from decoding import FixedCosts, answer, engine, flat_costs
from specengine.costs import GRID
from specengine.draft import PLAIN as PLAIN_ROUND
from specengine.draft import Draft, Plan
from specengine.engine import Engine
from specengine.gamma import Gamma, Situation
from specengine.hindsight import PLAIN, Fixed, fixed_settings, hindsight, oracle_seconds, passes
from specengine.protocol import Raw
from specengine.replay import replay
from specengine.settings import Limits, Sampling
from specengine.standing import conversations, standing
from specengine.trace import DraftAlong, Round, Trace

STEEP: Final = FixedCosts([0.01 * (0.6 + 0.4 * width) for width in GRID], 0.002, 0.0002, 0.0005)
FLAT: Final = FixedCosts([0.01 * (0.99 + 0.01 * width) for width in GRID], 0.001, 0.0001, 0.0005)
PROMPT: Final = "def f(x):\n    return x + 1\n" * 5


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("replay") / "target.gguf", cycle=1.0)


@pytest.fixture
def cold(target: Path) -> Iterator[Engine]:
    with engine(target) as made:
        yield made


def recorded(made: Engine, sampling: Sampling, tokens: int = 200, prompt: str = PROMPT) -> Trace:
    """An answer decoded for real, with what happened."""
    rounds: list[Round] = []
    made.on_round = rounds.append
    given = answer(made, Raw(prompt), sampling, limits=Limits(tokens), lookup=True, speculation="auto")
    vocabulary = made.target.vocabulary
    n_prompt = len(made.committed) - len(given.tokens)
    return Trace(
        workload="test",
        mode="auto",
        round=0,
        model="target",
        draft=None,
        sampling=sampling,
        prompt=tuple(made.committed[:n_prompt]),
        answer=given.tokens,
        end_of_generation=tuple(vocabulary.end_of_generation),
        control=(),
        rounds=tuple(rounds),
        costs=made.gamma.costs,
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("costs", [flat_costs(), STEEP], ids=["flat", "steep"])
def test_a_replay_tells_the_rounds_that_really_happened(target: Path, costs: FixedCosts, temperature: float) -> None:
    with engine(target, costs=costs) as made:
        trace = recorded(made, Sampling(temperature=temperature))
    (told,) = replay([trace], lambda: Gamma(costs), costs)
    assert [(one.source, one.drafted, one.accepted, one.emitted) for one in told.rounds] == [
        (one.source, one.drafted, one.accepted, one.emitted) for one in trace.rounds
    ]
    assert any(one.accepted < one.drafted for one in told.rounds)
    assert any(one.accepted for one in told.rounds)


@dataclass
class Always:
    """Drafts as a fixed setting does."""

    setting: Fixed

    def plan(self, now: Situation) -> Plan:
        if self.setting.lookup and len(now.lookup):
            return Plan("lookup", min(self.setting.lookup, len(now.lookup)))
        if self.setting.draft and now.model_available and now.room:
            return Plan("draft", min(self.setting.draft, now.room))
        return PLAIN_ROUND

    def observe(self, lookup: Draft, verified: Draft, plan: Plan, emitted: Sequence[int], seconds: float) -> None:
        pass


def with_draft(trace: Trace, agrees: Sequence[bool]) -> Trace:
    along = DraftAlong(tuple(0.9 if right else 0.5 for right in agrees), tuple(agrees))
    return Trace(**{field: getattr(trace, field) for field in trace.__struct_fields__} | {"draft_along": along})


@pytest.mark.parametrize(
    "setting", [PLAIN, Fixed(4, 0), Fixed(24, 0), Fixed(63, 0), Fixed(0, 3), Fixed(0, 15), Fixed(8, 5)], ids=str
)
def test_a_fixed_setting_counted_at_once_runs_what_its_replay_runs(cold: Engine, setting: Fixed) -> None:
    trace = recorded(cold, Sampling(temperature=0.7))
    trace = with_draft(trace, [i % 7 not in (0, 3) for i in range(len(trace.answer))])
    (told,) = replay([trace], lambda: Always(setting), STEEP)
    ran = passes(hindsight([trace])[0], setting)
    assert sum(ran.widths.values()) == len(told.rounds)
    assert ran.seconds(STEEP) == pytest.approx(told.seconds)


def test_nothing_is_faster_than_the_oracle(cold: Engine) -> None:
    trace = recorded(cold, Sampling(temperature=0.7))
    trace = with_draft(trace, [i % 5 != 0 for i in range(len(trace.answer))])
    (conversation,) = conversations([trace])
    for costs in (STEEP, FLAT):
        stands = standing(conversation, costs)
        assert stands.oracle >= max(stands.ours, *stands.fixed.values())
        assert stands.plain == pytest.approx(1 / (costs.target(1) + costs.host_s))
        assert set(stands.fixed) == set(fixed_settings(with_draft=True))


def test_the_oracle_accepts_everything_it_drafts() -> None:
    """Ten tokens that the draft model has all right, passes that cost the same at every width: two rounds, since the
    last token is never drafted and no draft is longer than fifteen."""
    costs = FixedCosts([1.0] * len(GRID), draft_step_s=0.01, draft_read_s=0.0, host_s=0.0)
    trace = made_up(answer=tuple(range(10, 20)), agrees=[True] * 10)
    assert oracle_seconds(hindsight([trace])[0], costs) == pytest.approx(1.0 + 9 * 0.01)


def test_a_turn_that_continues_a_chat_finds_its_index_and_estimates() -> None:
    first = made_up(prompt=tuple(range(1, 40)), answer=tuple(range(40, 60)))
    again = made_up(prompt=(*range(1, 60), 99), answer=tuple(range(20, 50)), continues=True)
    fresh = made_up(prompt=(*range(1, 60), 99), answer=tuple(range(20, 50)))
    (_, chat), (alone,) = hindsight([first, again]), hindsight([fresh])
    assert chat.matched == alone.matched
    assert (chat.unread, alone.unread) == (1, 60)
    assert len(list(conversations([first, again, fresh]))) == 2


def made_up(
    answer: tuple[int, ...],
    prompt: tuple[int, ...] = (1, 2, 3),
    agrees: Sequence[bool] | None = None,
    continues: bool = False,
) -> Trace:
    return Trace(
        workload="made up",
        mode="auto",
        round=0,
        model="target",
        draft=None,
        sampling=Sampling(temperature=0),
        prompt=prompt,
        answer=answer,
        end_of_generation=(0,),
        control=(0,),
        rounds=(),
        continues=continues,
        draft_along=None if agrees is None else DraftAlong(tuple(0.9 for _ in agrees), tuple(agrees)),
        costs=FLAT,
    )
