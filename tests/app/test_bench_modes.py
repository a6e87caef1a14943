"""How modes are written, and what they switch on."""

import pytest

from specchat.bench.modes import Mode, mode, possible, refusal, sweep
from specengine.protocol import Loaded

PAIR = Loaded("toy", "toy.gguf", "llama.cpp", "CPU, 2 threads", n_ctx=2048, n_vocab=100, draft="small")
ALONE = Loaded("toy", "toy.gguf", "llama.cpp", "CPU, 2 threads", n_ctx=2048, n_vocab=100, draft_refused="It differs.")
PLAIN = Loaded("toy", "toy.gguf", "llama.cpp", "CPU", n_ctx=2048, n_vocab=100, speculation_refused="It can't.")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("plain", Mode("plain", "off", lookup=False, draft=False)),
        ("lookup", Mode("lookup", "auto", lookup=True, draft=False)),
        ("draft", Mode("draft", "auto", lookup=False, draft=True)),
        ("auto", Mode("auto", "auto", lookup=True, draft=True)),
        ("lookup:8", Mode("lookup:8", "auto", lookup=True, draft=False, gamma=8)),
        ("draft:03", Mode("draft:3", "auto", lookup=False, draft=True, gamma=3)),
        ("both:127", Mode("both:127", "auto", lookup=True, draft=True, gamma=127)),
    ],
)
def test_a_name_says_which_sources_draft_and_how_far(name: str, meant: Mode) -> None:
    assert mode(name) == meant


@pytest.mark.parametrize(
    "name",
    ["", "fast", "auto:3", "plain:1", "lookup:", "lookup:0", "draft:128", "both:-1", "both:x", "draft:1:2", "draft:²"],
)
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match="choose from plain, lookup, draft, auto, or fix the draft length with lookup:N"
    ):
        mode(name)


def test_possible_modes_follow_from_what_is_loaded() -> None:
    assert possible(PAIR) == ("plain", "lookup", "draft", "auto")
    assert possible(ALONE) == ("plain", "lookup", "auto")
    assert possible(PLAIN) == ("plain",)


def test_a_sweep_has_every_source_that_is_there() -> None:
    assert sweep([3, 8], PAIR) == ("lookup:3", "lookup:8", "draft:3", "draft:8", "both:3", "both:8")
    assert sweep([3, 8], ALONE) == ("lookup:3", "lookup:8")
    assert sweep([3, 8], PLAIN) == ()


@pytest.mark.parametrize(
    ("name", "loaded", "reason"),
    [
        ("auto", PAIR, None),
        ("auto", ALONE, None),
        ("lookup:4", ALONE, None),
        ("plain", PLAIN, None),
        ("draft", ALONE, "It differs."),
        ("both:4", ALONE, "It differs."),
        ("lookup", PLAIN, "It can't."),
    ],
)
def test_a_mode_that_cannot_be_run_has_a_reason(name: str, loaded: Loaded, reason: str | None) -> None:
    assert refusal(name, loaded) == reason
