"""Mistakes that speculative decoders make, made on purpose: the checks of the round must catch each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import decode_checks
from decode_checks import (
    GREEDY,
    Repeating,
    Varied,
    check_caches,
    check_counts,
    check_ends,
    check_reason_where_two_ends_meet,
    check_text,
)
from specengine import decode
from specengine.decode import Decoder, Limit, Take
from specengine.draft import Draft
from specengine.language_model import Rows
from specengine.protocol import Reason
from specengine.verify import verify


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repeating]:
    with decode_checks.repeating(tmp_path_factory.mktemp("repeating")) as made:
        yield made


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Varied]:
    with decode_checks.varied(tmp_path_factory.mktemp("varied")) as made:
        yield made


Check = Callable[[Repeating, Varied], None]


def caches(_: Repeating, varied: Varied) -> None:
    check_caches(varied, "both", 4, GREEDY)


def text(_: Repeating, varied: Varied) -> None:
    check_text(varied, "both", 4)


def counts(_: Repeating, varied: Varied) -> None:
    check_counts(varied, 3)


def ends(repeating: Repeating, _: Varied) -> None:
    check_ends(repeating, "lookup", 4)


def reasons(repeating: Repeating, _: Varied) -> None:
    check_reason_where_two_ends_meet(repeating)


CHECKS: tuple[Check, ...] = (caches, text, counts, ends, reasons)


def cut_nothing(decoder: Decoder) -> None:
    assert decoder.model is not None
    decoder.model.rollback(len(decoder.committed) - 1)


def cut_one_too_few(decoder: Decoder) -> None:
    decoder.target.rollback(min(len(decoder.committed), decoder.target.length))
    if decoder.model is not None:
        decoder.model.rollback(len(decoder.committed) - 1)


def cut_one_too_many(decoder: Decoder) -> None:
    decoder.target.rollback(min(len(decoder.committed) - 2, decoder.target.length))
    if decoder.model is not None:
        decoder.model.rollback(len(decoder.committed) - 1)


def leave_the_draft(decoder: Decoder) -> None:
    decoder.target.rollback(len(decoder.committed) - 1)


def check_the_last_only(
    committed: list[int], emitted: list[int], source: str, limit: Limit, take: Take
) -> tuple[Reason | None, int]:
    reasons = []
    for i, token in enumerate(emitted):
        committed.append(token)
        reasons.append(take(token, source if i < len(emitted) - 1 else "target"))
    return reasons[-1] or (limit.reason if len(committed) >= limit.length else None), len(emitted)


def limit_before_end(
    committed: list[int], emitted: list[int], draft: Draft, limit: Limit, take: Take
) -> tuple[Reason | None, int]:
    for i, token in enumerate(emitted):
        committed.append(token)
        reason = take(token, draft.source if i < len(emitted) - 1 else "target")
        if len(committed) >= limit.length:
            return limit.reason, i + 1
        if reason is not None:
            return reason, i + 1
    return None, len(emitted)


def emit_without_the_next_token(
    committed: list[int], emitted: list[int], draft: Draft, limit: Limit, take: Take
) -> tuple[Reason | None, int]:
    return decode_commit(committed, emitted[:-1] or emitted, draft, limit, take)


def verify_from_position_zero(rows: Rows, draft: Any, history: Sequence[int], _: int, *rest: Any) -> Any:  # noqa: ANN401
    return verify(rows, draft, history, 0, *rest)


def verify_without_history(rows: Rows, draft: Any, _: Sequence[int], *rest: Any) -> Any:  # noqa: ANN401
    return verify(rows, draft, (), *rest)


decode_commit = decode._commit

MUTANTS: list[tuple[str, Any, tuple[Check, ...]]] = [
    ("_cut_to_committed", cut_nothing, (caches, text)),
    ("_cut_to_committed", cut_one_too_few, (caches, text)),
    ("_cut_to_committed", cut_one_too_many, (caches, text)),
    ("_cut_to_committed", leave_the_draft, (caches,)),
    ("_commit", check_the_last_only, (ends,)),
    ("_commit", limit_before_end, (reasons,)),
    ("_commit", emit_without_the_next_token, (ends,)),
    ("verify", verify_from_position_zero, (text,)),
    ("verify", verify_without_history, (text,)),
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_real_decoder_passes_every_check(repeating: Repeating, varied: Varied, check: Check) -> None:
    check(repeating, varied)


@pytest.mark.parametrize(
    ("name", "mutant", "check"),
    [(name, mutant, check) for name, mutant, checks in MUTANTS for check in checks],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mutants_are_caught(
    repeating: Repeating,
    varied: Varied,
    name: str,
    mutant: object,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decode, name, mutant)
    with pytest.raises(AssertionError):
        check(repeating, varied)


@pytest.mark.parametrize("check", [caches, counts])
def test_a_draft_cache_one_short_after_a_full_accept_is_caught(
    repeating: Repeating, varied: Varied, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last drafted token was never read; a draft that is fed the bonus token alone misses it."""
    forward = varied.rig.draft.forward

    def only_the_last(tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None = None) -> Rows:
        return forward(tokens[-1:] if rows == 1 else tokens, rows, should_stop)

    monkeypatch.setattr(varied.rig.draft, "forward", only_the_last)
    with pytest.raises(AssertionError):
        check(repeating, varied)
