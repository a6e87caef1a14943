"""What is drafted in a round: decisions replayed from given costs and outcomes, without a clock."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest

from decoding import FixedCosts
from specengine.acceptance import AcceptanceEstimate
from specengine.costs import GRID, CostTable
from specengine.draft import NOTHING, PLAIN, Draft, Plan
from specengine.gamma import (
    CHECKS_SHARE,
    FIRST_PROBES_ACCEPTANCE,
    FIRST_PROBES_TOKENS,
    MAX_MODEL_GAMMA,
    MOST_CHECKS,
    PROBE_SHARE,
    Gamma,
    Situation,
)
from specengine.growth import BestRateGrowth

T1: Final = 0.030
PLAIN_S: Final = T1 + 0.001


def costs(curve: Callable[[int], float], draft_step_s: float | None = None, host_s: float = 0.001) -> CostTable:
    """Costs of a target pass by width, in units of a pass of one token."""
    return FixedCosts([T1 * curve(width) for width in GRID], draft_step_s, draft_step_s and draft_step_s / 2, host_s)


def memory_bound(width: int) -> float:
    """Wide passes cost hardly more: a GPU."""
    return 1 + 0.01 * (width - 1)


def compute_bound(width: int) -> float:
    """Every token of a pass costs a little more than a pass of its own."""
    return 1.05 * width if width > 1 else 1.0


def stepped(width: int) -> float:
    """Dear from 2 to 7, then cheap for its width: a kernel switches at 8."""
    return 1.0 if width == 1 else 8.0 if width < 8 else 8.0 + 0.02 * width


def matched(length: int, tokens: int) -> Draft:
    """A lookup proposal that continues a match of `length` tokens."""
    return Draft("lookup", tuple(range(tokens)), tuple(float(length + i) for i in range(tokens)))


def situation(
    lookup: Draft = NOTHING, *, model: bool = False, missing: int = 0, room: int = 127, gamma: int | None = None
) -> Situation:
    return Situation(lookup, model, missing, room, "auto", gamma)


def certain(probability: float, recent: float | None = None) -> AcceptanceEstimate:
    return AcceptanceEstimate((), (probability,), 1e9, probability if recent is None else recent)


def test_nothing_at_hand_is_a_plain_round() -> None:
    assert Gamma(costs(memory_bound)).plan(situation()) is PLAIN


def test_where_wide_passes_cost_nothing_more_the_whole_proposal_is_taken() -> None:
    assert Gamma(costs(memory_bound)).plan(situation(matched(20, 40))) == Plan("lookup", 40)


def test_where_every_token_costs_a_pass_nothing_is_drafted() -> None:
    gamma = Gamma(costs(compute_bound, draft_step_s=0.001), lookup=certain(0.99), model=certain(0.99))
    assert gamma.plan(situation(matched(60, 100), model=True)) is PLAIN


def test_a_cost_table_with_a_dip_is_crossed() -> None:
    gamma = Gamma(costs(stepped), lookup=certain(0.99))
    assert gamma.plan(situation(matched(20, 5))) is PLAIN
    plan = gamma.plan(situation(matched(20, 120)))
    assert plan.source == "lookup"
    assert plan.limit > 40


@pytest.mark.parametrize("probability", [0.3, 0.6, 0.8, 0.9, 0.97])
@pytest.mark.parametrize("curve", [memory_bound, compute_bound, stepped, lambda width: 0.6 + 0.4 * width])
def test_the_length_is_the_one_with_the_best_expected_rate(curve: Callable[[int], float], probability: float) -> None:
    table = costs(curve)
    plan = Gamma(table, lookup=certain(probability)).plan(situation(matched(5, 60)))
    rates = [(1 - probability ** (k + 1)) / (1 - probability) / (table.target(k + 1) + table.host_s) for k in range(61)]
    assert plan.limit == int(np.argmax(rates))


def test_a_draft_of_the_model_grows_while_the_best_rate_ahead_beats_stopping() -> None:
    table = costs(memory_bound, draft_step_s=0.1 * T1)
    plan = Gamma(table, model=certain(0.8)).plan(situation(model=True))
    assert (plan.source, plan.limit) == ("draft", MAX_MODEL_GAMMA)
    assert isinstance(plan.growth, BestRateGrowth)
    drawn = 0
    while drawn < plan.limit and plan.growth.takes([0.8] * drawn, 0.8) and plan.growth.runs_on([0.8] * (drawn + 1)):
        drawn += 1
    rates = [sum(0.8**i for i in range(k + 1)) / (k * 0.1 * T1 + table.target(k + 1) + table.host_s) for k in range(17)]
    assert drawn + 1 == int(np.argmax(rates))


def test_a_token_that_the_model_doubts_ends_its_draft() -> None:
    doubtful = AcceptanceEstimate((0.5,), (0.02, 0.95), 1e9, 0.9)
    table = costs(lambda width: 0.7 + 0.3 * width, draft_step_s=0.05 * T1)
    growth = Gamma(table, model=doubtful).plan(situation(model=True)).growth
    assert growth is not None
    assert growth.takes([0.9, 0.9], 0.9)
    assert not growth.takes([0.9, 0.9], 0.1)


def test_the_source_with_the_better_rate_is_used() -> None:
    table = costs(memory_bound, draft_step_s=0.2 * T1)
    gamma = Gamma(table, model=certain(0.8))
    assert gamma.plan(situation(matched(40, 60), model=True)).source == "lookup"
    assert gamma.plan(situation(matched(1, 3), model=True)).source == "draft"
    assert gamma.plan(situation(matched(2, 3))).source == "lookup"


class TestControls:
    """Off, on and a fixed gamma."""

    gamma = Gamma(costs(compute_bound, draft_step_s=0.5 * T1))

    def test_off_drafts_nothing(self) -> None:
        free = Gamma(costs(memory_bound, draft_step_s=0.001))
        for fixed in (None, 5):
            now = replace(situation(matched(60, 60), model=True, gamma=fixed), speculation="off")
            assert free.plan(now) is PLAIN

    def test_on_drafts_although_it_does_not_pay(self) -> None:
        assert self.gamma.plan(situation(matched(5, 60))) is PLAIN
        plan = self.gamma.plan(replace(situation(matched(5, 60)), speculation="on"))
        assert (plan.source, plan.limit >= 1) == ("lookup", True)

    @pytest.mark.parametrize("fixed", [1, 3, 16, 40])
    def test_a_fixed_gamma_is_kept_for_either_source(self, fixed: int) -> None:
        now = situation(matched(2, 60), model=True, gamma=fixed)
        assert self.gamma.plan(now) == Plan("lookup", fixed)
        assert self.gamma.plan(replace(now, lookup=NOTHING)) == Plan("draft", fixed)
        assert self.gamma.plan(replace(now, lookup=NOTHING, model_available=False)) is PLAIN

    def test_a_fixed_gamma_of_zero_is_plain(self) -> None:
        assert self.gamma.plan(situation(matched(2, 60), model=True, gamma=0)) is PLAIN

    @pytest.mark.parametrize("room", [0, 1, 5])
    @pytest.mark.parametrize("fixed", [None, 16])
    def test_no_draft_is_longer_than_the_room(self, room: int, fixed: int | None) -> None:
        free = Gamma(costs(memory_bound, draft_step_s=0.001))
        for now in (situation(matched(60, 60), room=room, gamma=fixed), situation(model=True, room=room, gamma=fixed)):
            assert free.plan(now).limit == room


class TestAModelThatCannotPay:
    """With a step of 0.69 target passes and compute-bound widths no acceptance helps."""

    table = costs(lambda width: (1.0, 1.8, 2.5, 3.1, 3.8, 5.0, 7.0)[width - 1] if width < 8 else 0.9 * width, 0.69 * T1)

    def test_it_is_known_before_anything_was_drafted(self) -> None:
        assert not Gamma(self.table).model_can_pay()
        assert Gamma(costs(memory_bound, 0.1 * T1)).model_can_pay()
        assert not Gamma(costs(memory_bound)).model_can_pay()

    def test_it_is_never_read_in_nor_probed(self) -> None:
        gamma = Gamma(self.table, model=certain(0.9999))
        for _ in range(20_000):
            plan = gamma.plan(situation(model=True, missing=5))
            assert plan is PLAIN
            gamma.observe(NOTHING, NOTHING, plan, [1], PLAIN_S)


def test_costs_that_were_measured_on_a_busy_machine_are_found_out_within_a_few_rounds() -> None:
    """Everything was measured too dear, plain passes most of all: drafts seemed to pay, and no plain pass was seen."""
    real = costs(compute_bound)
    believed = costs(compute_bound)
    believed.target_s = [
        seconds * (3 if width == 1 else 1.5) for width, seconds in zip(GRID, real.target_s, strict=True)
    ]
    table = CostTable(believed.target_s, host_s=0.001)
    gamma = Gamma(table, lookup=certain(0.7))
    drafted = []
    for _ in range(60):
        plan = gamma.plan(situation(matched(5, 8)))
        drafted.append(plan.limit)
        draft = matched(5, 8).first(plan.limit)
        seconds = real.target(plan.limit + 1)
        table.observe_target(plan.limit + 1, seconds)
        gamma.observe(NOTHING, draft if plan.limit else NOTHING, plan, [0], seconds + 0.001)
    assert drafted[0] > 0
    assert not any(drafted[30:])
    assert table.target(1) == pytest.approx(T1, rel=0.15)


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_on_a_machine_whose_times_jump_drafts_that_pay_are_hardly_ever_held_back(spread: float) -> None:
    rng = np.random.default_rng(1)
    real = costs(memory_bound)
    table = CostTable(list(real.target_s), host_s=0.001)
    gamma = Gamma(table, lookup=certain(0.95))
    held_back = 0
    for _ in range(1000):
        plan = gamma.plan(situation(matched(12, 8)))
        held_back += plan is PLAIN
        draft = matched(12, 8).first(plan.limit) if plan.limit else NOTHING
        seconds = real.target(plan.limit + 1) * float(np.exp(rng.normal(0, spread)))
        table.observe_target(plan.limit + 1, seconds)
        gamma.observe(NOTHING, draft, plan, [*draft.tokens, 0], seconds + 0.001)
    assert held_back <= MOST_CHECKS + 1000 * CHECKS_SHARE


class TestProbes:
    """A draft model that could pay but doesn't at present is tried now and then, if it reads fast: reading what it
    missed is part of a probe's price."""

    table = FixedCosts([T1 * (0.7 + 0.3 * width) for width in GRID], 0.35 * T1, 0.002 * T1, 0.001)

    def replay(
        self, rounds: int, agreement: Callable[[int], bool], missing: int = 0, first_mean: float = 0.8
    ) -> list[tuple[Plan, float]]:
        """Plans and seconds of rounds in which the model, tried or not, would have been right as `agreement` says."""
        gamma = Gamma(self.table, model=AcceptanceEstimate((), (first_mean,), 16.0, first_mean))
        plans = []
        lag = missing
        for number in range(rounds):
            plan = gamma.plan(situation(model=True, missing=lag))
            drawn = plan.limit if plan.probe else 3
            draft, emitted, seconds = NOTHING, [0], PLAIN_S
            if plan.source == "draft":
                draft = Draft("draft", (1,) * drawn, (0.9,) * drawn)
                emitted = [1] * drawn + [0] if agreement(number) else [0]
                read_s = lag * (self.table.draft_read_s or 0)
                seconds = drawn * (self.table.draft_step_s or 0) + self.table.target(drawn + 1) + 0.001 + read_s
                lag = 0
            else:
                lag += 1
            gamma.observe(NOTHING, draft, plan, emitted, seconds)
            plans.append((plan, seconds))
        return plans

    def test_a_model_that_is_never_right_goes_quiet_and_costs_a_hundredth(self) -> None:
        plans = self.replay(6000, lambda _: False)[1000:]
        probes = [seconds for plan, seconds in plans if plan.probe]
        assert all(plan.probe or plan is PLAIN for plan, _ in plans)
        assert len(probes) > 3
        assert sum(seconds - PLAIN_S for seconds in probes) <= 1.05 * PROBE_SHARE * sum(seconds for _, seconds in plans)

    def test_probes_notice_when_the_model_becomes_right(self) -> None:
        plans = self.replay(9000, lambda number: number > 3000)
        assert any(plan is PLAIN for plan, _ in plans[2000:3000])
        assert all(plan.source == "draft" and not plan.probe for plan, _ in plans[-500:])

    def test_where_the_model_becomes_right_it_is_mostly_back_within_forty_rounds(self) -> None:
        waits = sorted(self.rounds_until_back(hopeless) for hopeless in range(500, 1500, 50))
        assert sum(wait <= 40 for wait in waits) >= 0.9 * len(waits)
        assert waits[-1] <= 130

    def rounds_until_back(self, hopeless: int) -> int:
        """Rounds until the model drafts for good, once so many rounds without hope are over."""
        rng = np.random.default_rng(hopeless)
        gamma, lag, back = Gamma(self.table), 0, 0
        for number in range(hopeless + 400):
            plan = gamma.plan(situation(model=True, missing=lag))
            draft, emitted, passes = self.drawn(plan, rng, right=number >= hopeless)
            seconds = passes * (self.table.draft_step_s or 0) + self.table.target(len(draft) + 1) + 0.001
            gamma.observe(NOTHING, draft, plan, emitted, seconds + lag * (self.table.draft_read_s or 0) * bool(passes))
            lag = 0 if passes else lag + 1
            if not passes:
                back = max(number + 1, hopeless)
        return back - hopeless

    def drawn(self, plan: Plan, rng: np.random.Generator, right: bool) -> tuple[Draft, list[int], int]:
        """A draft of a model that is sure and right, or unsure and less often right than it believes; what the target
        then emits; the draft passes it took."""
        if plan.source != "draft" or plan.growth is None:
            return NOTHING, [0], 0
        tokens, evidence, passes = list[int](), list[float](), 0
        while len(tokens) < plan.limit:
            confidence = 0.97 if right else float(rng.choice((0.3, 0.4, 0.5, 0.6, 0.75, 0.9)))
            passes += 1
            if not plan.growth.takes(evidence, confidence):
                break
            tokens.append(1 if right or rng.random() < 0.8 * confidence else 2)
            evidence.append(confidence)
            if not plan.growth.runs_on(evidence):
                break
        accepted = tokens.index(2) if 2 in tokens else len(tokens)
        return Draft("draft", tuple(tokens), tuple(evidence)), [*[1] * accepted, 0], passes

    def test_a_long_lag_is_paid_for_out_of_the_budget(self) -> None:
        plans = self.replay(6000, lambda _: False, missing=20_000, first_mean=0.3)
        probes = [i for i, (plan, _) in enumerate(plans) if plan.probe]
        assert probes
        assert all(plan is PLAIN for plan, _ in plans[: probes[0]])
        for last in probes:
            spent = sum(plans[i][1] - PLAIN_S for i in probes if i <= last)
            decoding_s = sum(seconds for _, seconds in plans[: last + 1])
            assert spent <= FIRST_PROBES_TOKENS * PLAIN_S + PROBE_SHARE * decoding_s + 1e-9

    def test_a_short_prompt_is_read_at_once_to_get_to_know_the_model(self) -> None:
        plans = self.replay(100, lambda _: True, missing=1000, first_mean=0.3)
        assert plans[0][0].probe
        assert plans[-1][0].source == "draft" and not plans[-1][0].probe

    def test_a_model_that_is_never_right_has_lost_only_the_first_probes_after_a_hundred_tokens(self) -> None:
        plans = self.replay(100, lambda _: False, missing=1000, first_mean=0.3)
        lost = sum(seconds for _, seconds in plans) - 100 * PLAIN_S
        assert 0 < lost <= (FIRST_PROBES_TOKENS + 100 * PROBE_SHARE) * PLAIN_S

    def test_a_model_that_would_have_to_be_nearly_always_right_is_not_tried_until_decoding_has_earned_it(self) -> None:
        dear = costs(lambda width: 1.0 if width == 1 else 2.2 + 0.15 * (width - 2), draft_step_s=0.45 * T1)
        gamma = Gamma(dear)
        assert gamma.model_can_pay() and not gamma.model_can_pay(FIRST_PROBES_ACCEPTANCE)
        waited = 0
        while gamma.plan(situation(model=True)) is PLAIN:
            gamma.observe(NOTHING, NOTHING, PLAIN, [0], PLAIN_S)
            waited += 1
        probe_s = 3 * 0.45 * T1 + dear.target(4) - dear.target(1)
        assert waited == pytest.approx(probe_s / (PROBE_SHARE * PLAIN_S), abs=1)

    def test_a_probe_costs_only_what_it_loses(self) -> None:
        gamma = Gamma(self.table, model=certain(0.1))
        plan = gamma.plan(situation(model=True))
        assert plan.probe
        before = gamma.probe_budget_s
        draft = Draft("draft", (1,) * plan.limit, (0.9,) * plan.limit)
        gamma.observe(NOTHING, draft, plan, [1, 1, 1, 0], 4 * PLAIN_S)
        assert gamma.probe_budget_s == before
        gamma.observe(NOTHING, draft, plan, [1, 0], 4 * PLAIN_S)
        assert gamma.probe_budget_s == pytest.approx(before - 2 * PLAIN_S)

    def test_a_machine_that_slows_down_does_not_make_a_dear_model_seem_to_pay(self) -> None:
        dear = costs(lambda width: 1.0 if width == 1 else 2.2 + 0.1 * (width - 2), draft_step_s=0.45 * T1)
        table = CostTable(list(dear.target_s), dear.draft_step_s, dear.draft_read_s)
        gamma = Gamma(table, model=certain(0.8))
        for number in range(600):
            weather = 1 + min(1, max(0, number - 100) / 100)
            plan = gamma.plan(situation(model=True))
            assert plan is PLAIN or plan.probe
            table.observe_target(1, weather * dear.target(1))
            gamma.observe(NOTHING, NOTHING, PLAIN, [0], weather * PLAIN_S)

    @pytest.mark.parametrize("missing", [60, 400, 4000])
    def test_the_prompt_is_read_in_once_as_much_was_missed_as_reading_costs(self, missing: int) -> None:
        table = costs(memory_bound, draft_step_s=0.3 * T1)
        gamma = Gamma(table, model=certain(0.7))
        waited = 0
        while gamma.plan(situation(model=True, missing=missing)) is PLAIN:
            waited += 1
        best = max(sum(0.7**i for i in range(k + 1)) * PLAIN_S / 1.02 - self.seconds(table, k) for k in range(1, 17))
        assert waited == int(missing * (table.draft_read_s or 0) / best)

    def test_what_was_missed_is_forgotten_once_the_model_has_read(self) -> None:
        gamma = Gamma(costs(memory_bound, draft_step_s=0.3 * T1), model=certain(0.7))
        while gamma.plan(situation(model=True, missing=400)) is PLAIN:
            pass
        assert gamma.plan(situation(model=True)).source == "draft"
        assert gamma.plan(situation(model=True, missing=400)) is PLAIN

    def test_a_lag_that_could_never_be_made_up_is_never_read(self) -> None:
        gamma = Gamma(costs(memory_bound, draft_step_s=0.3 * T1), model=certain(0.1))
        assert all(gamma.plan(situation(model=True, missing=50)) is PLAIN for _ in range(1000))

    @staticmethod
    def seconds(table: CostTable, k: int) -> float:
        return k * (table.draft_step_s or 0) + table.target(k + 1) + table.host_s


class TestBridges:
    """A draft model in copied text: lookup is soon back, and faster."""

    table = costs(memory_bound, draft_step_s=0.12 * T1)

    def edited(self, gap: int, rounds: int = 60) -> list[int]:
        """Draft lengths of the model where lookup loses its match for `gap` tokens again and again, and finds the text
        after that for 60 tokens."""
        gamma = Gamma(self.table, lookup=certain(0.98), model=certain(0.97))
        lengths = []
        for _ in range(rounds):
            plan = gamma.plan(situation(matched(8, 60), model=True))
            assert plan.source == "lookup"
            gamma.observe(matched(8, 60), matched(8, 60), plan, range(40), 0.05)
            left = gap
            while left > 0:
                plan = gamma.plan(situation(model=True))
                drawn = 1
                assert plan.growth is not None
                while drawn < plan.limit and plan.growth.runs_on([0.97] * drawn):
                    drawn += 1
                lengths.append(drawn)
                draft = Draft("draft", tuple(range(drawn)), (0.97,) * drawn)
                gamma.observe(NOTHING, draft, plan, range(drawn + 1), 0.05)
                left -= drawn + 1
            gamma.resumption.see(matched(4 - left, 60))
        return lengths

    def test_a_draft_is_about_as_long_as_the_gaps_have_been(self) -> None:
        short, long = self.edited(3)[-10:], self.edited(40)[-10:]
        assert max(short) < min(long)
        assert max(short) <= 8

    def test_without_a_lookup_it_goes_as_far_as_it_pays(self) -> None:
        gamma = Gamma(self.table, model=certain(0.97))
        plan = gamma.plan(situation(model=True))
        assert plan.growth is not None
        assert all(plan.growth.runs_on([0.97] * k) for k in range(1, 15))


@dataclass
class Text:
    """A text as prompt lookup sees it: in copied stretches long matches are right, in prose short ones are wrong."""

    gamma: Gamma
    seconds: float = 0.0
    emitted: int = 0

    def copied(self, tokens: int, length: int = 2) -> list[int]:
        """Emits a copied stretch; returns the draft length of each round."""
        limits = []
        done = 0
        while done < tokens:
            proposal = Draft(
                "lookup", tuple(range(done, done + 60)), tuple(float(length + done + i) for i in range(60))
            )
            limits.append(self._round(proposal, list(range(done, done + 61))))
            done += limits[-1] + 1
        return limits

    def prose(self, rounds: int, every: int = 3) -> list[int]:
        """Emits prose in which a match of two or three tokens turns up at times, and is wrong."""
        return [
            self._round(Draft("lookup", tuple(range(60)), tuple(2.0 + i for i in range(60))), [99])
            if number % every == 0
            else self._round(NOTHING, [99])
            for number in range(rounds)
        ]

    def _round(self, proposal: Draft, follows: Sequence[int]) -> int:
        plan = self.gamma.plan(situation(proposal))
        verified = proposal.first(plan.limit) if plan.limit else NOTHING
        right = 0
        while right < plan.limit and verified.tokens[right] == follows[right]:
            right += 1
        seconds = self.gamma.costs.target(plan.limit + 1) + self.gamma.costs.host_s
        self.gamma.observe(proposal, verified, plan, [*verified.tokens[:right], follows[right]], seconds)
        self.seconds += seconds
        self.emitted += right + 1
        return plan.limit


def two_cores(width: int) -> float:
    """Qwen2.5-Coder 1.5B on two cores with llama.cpp."""
    return float(np.interp(width, [1, 2, 4, 5, 8, 16, 32, 64, 128], [1, 1.8, 3.1, 3.8, 7.0, 8.4, 14, 24, 44]))


def test_prose_soon_costs_what_plain_decoding_costs() -> None:
    text = Text(Gamma(costs(two_cores)))
    text.prose(30)
    text.seconds, text.emitted = 0.0, 0
    text.prose(300)
    assert text.seconds <= text.emitted * PLAIN_S / 0.97


def test_after_prose_copied_code_is_drafted_again_within_a_few_rounds() -> None:
    text = Text(Gamma(costs(two_cores)))
    for _ in range(3):
        text.prose(400)
        limits = text.copied(300)
        assert max(limits[:12]) >= 31
        text.copied(300)


def test_after_copied_code_prose_is_decoded_plainly_within_a_few_rounds() -> None:
    text = Text(Gamma(costs(two_cores)))
    for _ in range(3):
        text.copied(900)
        limits = text.prose(40)
        assert sum(limits[20:]) == 0


def test_copied_code_comes_near_to_what_the_cost_table_allows() -> None:
    text = Text(Gamma(costs(two_cores)))
    text.copied(600, length=8)
    best = max((k + 1) / (text.gamma.costs.target(k + 1) + 0.001) for k in range(61))
    assert text.emitted / text.seconds >= 0.85 * best


def test_a_silent_proposal_teaches_too() -> None:
    gamma = Gamma(costs(compute_bound))
    before = gamma.lookup.probability(2)
    proposal = matched(2, 5)
    plan = gamma.plan(situation(proposal))
    assert plan is PLAIN
    gamma.observe(proposal, NOTHING, plan, [proposal.tokens[0]], PLAIN_S)
    assert gamma.lookup.probability(2) > before


def test_only_drafts_of_the_model_teach_about_the_model() -> None:
    gamma = Gamma(costs(memory_bound, draft_step_s=0.001))
    before = [gamma.model.probability(evidence) for evidence in (0.1, 0.4, 0.6, 0.9)]
    proposal = matched(20, 5)
    gamma.observe(proposal, proposal, Plan("lookup", 5), [0, 1, 2, 3, 4, 9], PLAIN_S)
    assert [gamma.model.probability(evidence) for evidence in (0.1, 0.4, 0.6, 0.9)] == before


def test_a_decision_looks_at_each_length_once() -> None:
    """Lookup decides on arrays; a model's draft asks the table for at most 16 lengths a token."""

    class CountingCosts(FixedCosts):
        def target(self, width: int) -> float:
            asked.append(width)
            return super().target(width)

    asked: list[int] = []
    table = CountingCosts([T1 * memory_bound(width) for width in GRID], 0.001, 0.001, 0.001)
    Gamma(table).plan(situation(matched(20, 120)))
    assert len(asked) <= 2
    asked.clear()
    plan = Gamma(table).plan(situation(model=True))
    assert plan.growth is not None
    assert len(asked) <= 4 * MAX_MODEL_GAMMA
    asked.clear()
    plan.growth.takes([0.9] * 5, 0.9)
    plan.growth.runs_on([0.9] * 6)
    assert len(asked) <= 3 * MAX_MODEL_GAMMA
