"""A pull in words."""

import pytest

from specchat.pull_words import progressed, stopped
from specengine.transfer import PullProgress


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (PullProgress("waiting", ""), "tiny: waiting for another specchat that pulls it"),
        (PullProgress("connecting", "x.example"), "tiny: asking x.example"),
        (PullProgress("checking", "x.example", 5, 10), "tiny: checking 50%"),
        (PullProgress("downloading", "x.example", 5_000_000), "tiny: … 5.0 MB, from x.example"),
        (
            PullProgress("downloading", "x.example", 5_000_000, 4_000_000_000, 1e6),
            "tiny: 0% 5.0 MB of 4.0 GB, 1.0 MB/s, 67 min left, from x.example",
        ),
        (
            PullProgress("downloading", "x.example", 0, 40_000_000_000, 1e6),
            "tiny: 0% 0.0 MB of 40.0 GB, 1.0 MB/s, 11.1 h left, from x.example",
        ),
    ],
)
def test_progress_tells_what_is_known(now: PullProgress, words: str) -> None:
    assert progressed("tiny", now) == words


def test_while_nothing_arrives_there_is_no_speed_and_no_time_left() -> None:
    now = PullProgress("downloading", "x.example", 5_000_000, 10_000_000, 1e6, stalled=True)
    assert progressed("tiny", now) == "tiny: 50% 5.0 MB of 10 MB, stalled, from x.example"


def test_a_stopped_pull_says_how_much_is_kept() -> None:
    assert stopped("tiny", 1_200_000_000) == "Stopped; 1.2 GB of tiny are kept, and the next pull goes on from there."
    assert stopped("tiny", 0) == "Stopped; nothing of tiny had arrived that could be kept."
