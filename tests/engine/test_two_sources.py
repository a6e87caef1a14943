"""Drafts of two sources: a draft model draws some tokens, and prompt lookup goes on behind them."""

from collections.abc import Iterator, Sequence
from typing import Final

import pytest

import decode_checks
from backends import BOTH
from decode_checks import GREEDY, WARM, Repeating, Varied, end_at
from decoding import CacheWatch, Run, run
from specengine.controls import Controls
from specengine.decode import Decoder, Limit, decode
from specengine.drafters.lookup import PromptLookup
from specengine.growth import BestRateGrowth
from specengine.settings import Sampling
from specengine.stats import Stats
from specengine.trace import Round

COPIED: Final = 3


@pytest.fixture(scope="module", params=BOTH)
def varied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Varied]:
    with decode_checks.varied(tmp_path_factory.mktemp("varied"), request.param) as made:
        yield made


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repeating]:
    with decode_checks.repeating(tmp_path_factory.mktemp("repeating")) as made:
        yield made


@pytest.fixture(autouse=True)
def copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every match is taken up behind the second drawn token, and no draft begins with one."""

    def copies(_: BestRateGrowth, evidence: Sequence[float], matches: Sequence[float]) -> int:
        return min(COPIED, len(matches)) if len(evidence) >= 2 else 0

    monkeypatch.setattr(BestRateGrowth, "copies", copies)
    monkeypatch.setattr("specengine.gamma.Gamma._lookup_candidate", lambda *_: None)


def told(decoder: Decoder, sampling: Sampling, count: int, **how: object) -> tuple[Run, list[Round]]:
    rounds: list[Round] = []
    decoder.on_round = rounds.append
    return run(decoder, sampling, count, **how), rounds  # type: ignore[arg-type]


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_the_caches_hold_exactly_the_committed_tokens(varied: Varied, sampling: Sampling) -> None:
    watch = CacheWatch(varied.rig.engine)
    answer, rounds = told(varied.rig.decoder(varied.prompt, "both"), sampling, 60, each_round=watch)
    both = [one for one in rounds if one.copied]
    assert any(one.accepted > one.drafted - one.copied for one in both), "some copied tokens stand"
    assert any(one.accepted < one.drafted - one.copied for one in both), "in some rounds drawn ones don't"
    assert {one.source for one in answer.rounds if one.drafted} >= {"both"}
    varied.check(watch)


def test_the_text_is_that_of_plain_decoding(varied: Varied) -> None:
    answer = run(varied.rig.decoder(varied.prompt, "both"), WARM, len(varied.text))
    assert answer.tokens == varied.text
    assert any(one.source == "both" for one in answer.rounds)


def test_the_index_forgets_what_was_only_drafted(varied: Varied) -> None:
    decoder = varied.rig.decoder(varied.prompt, "both")

    def compare(_rounds: int, _controls: object) -> None:
        fresh = PromptLookup(decoder.target.vocabulary.end_of_generation)
        fresh.observe(decoder.committed[: len(varied.prompt)])
        fresh.observe(decoder.committed, written=True)
        assert decoder.lookup is not None
        assert (decoder.lookup._ends, decoder.lookup._keys) == (fresh._ends, fresh._keys)

    _, rounds = told(decoder, WARM, 60, each_round=compare)
    assert sum(one.copied > 0 for one in rounds) > 2


def test_an_end_at_any_position_of_such_a_draft_cuts_the_answer_there(repeating: Repeating) -> None:
    reached: set[int] = set()
    for last in range(24):
        decoder = repeating.rig.decoder(repeating.prompt, "both")
        answer, rounds = told(decoder, GREEDY, 80, ends=end_at(last, "stop"))
        assert (answer.tokens, answer.reason) == (repeating.following[: last + 1], "stop")
        assert decoder.target.length == len(decoder.committed) - 1
        counted = sum(part.judged for one in rounds for part in one.parts)
        assert counted == answer.stats.drafted
        if rounds[-1].copied:
            reached.add(answer.rounds[-1].last_offset)
    assert reached >= set(range(2 + COPIED))


def test_each_token_says_who_drafted_it(repeating: Repeating) -> None:
    decoder = repeating.rig.decoder(repeating.prompt, "both")
    sources: list[str] = []

    def take(_: int, source: str) -> None:
        sources.append(source)

    stats = Stats()
    for _ in decode(
        decoder, GREEDY, Limit(len(decoder.committed) + 30, "length"), take, Controls(speculation="on"), stats
    ):
        pass
    assert sources[1:13] == [*["draft"] * 2, *["lookup"] * 3, "target"] * 2
    assert sources.count("lookup") == stats.sources["lookup"].accepted
    assert sources.count("draft") == stats.sources["draft"].accepted
