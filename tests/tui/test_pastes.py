"""Pasted text: how it is cleaned, and when it becomes a chip."""

import pytest

from specchat.tui.pastes import ALWAYS_A_CHIP, normalised, worth_a_chip


def test_pasted_newlines_arrive_as_carriage_returns_and_leave_as_newlines() -> None:
    assert normalised("a\r\nb\rc\nd\r\n\r\n") == "a\nb\nc\nd\n\n"


def test_control_characters_are_harmless() -> None:
    assert normalised("a\0b\x1b[31mc\x07\x7f\x9b2J\td") == "ab[31mc2J\td"


@pytest.mark.parametrize(
    ("text", "worth"),
    [("short", False), ("x" * 799, False), ("x" * 800, True), ("\n" * 6, False), ("\n" * 7, True)],
)
def test_only_long_pastes_become_chips(text: str, worth: bool) -> None:
    assert worth_a_chip(text) is worth


def test_the_threshold_is_the_users_and_zero_makes_no_chips_but_for_what_would_stall() -> None:
    assert worth_a_chip("\n", 2) and not worth_a_chip("x" * 5000 + "\n" * 90, 100)
    assert not worth_a_chip("x\n" * 5000, 0)
    assert worth_a_chip("x" * ALWAYS_A_CHIP, 0)
