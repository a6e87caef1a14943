"""Chips and bursts, without a terminal."""

import pytest

from specchat.tui.pastes import Burst, chip, chip_at, expanded, normalised, worth_a_chip


def test_pasted_newlines_arrive_as_carriage_returns_and_leave_as_newlines() -> None:
    assert normalised("a\r\nb\rc\nd\0") == "a\nb\nc\nd"


@pytest.mark.parametrize(
    ("text", "worth"),
    [("short", False), ("x" * 799, False), ("x" * 800, True), ("\n" * 6, False), ("\n" * 7, True)],
)
def test_only_long_pastes_become_chips(text: str, worth: bool) -> None:
    assert worth_a_chip(text) is worth


def test_a_chip_says_how_much_it_stands_for() -> None:
    assert chip(1, "a\nb\nc\n") == "[Pasted #1: 3 lines]"
    assert chip(12, "x" * 1234) == "[Pasted #12: 1,234 characters]"


def test_chips_expand_once_and_only_if_they_are_known() -> None:
    pastes = {"[Pasted #1: 9 lines]": "see [Pasted #2: 9 lines]", "[Pasted #2: 9 lines]": "two"}
    text = "[Pasted #1: 9 lines] and [Pasted #3: 9 lines]"
    assert expanded(text, pastes) == "see [Pasted #2: 9 lines] and [Pasted #3: 9 lines]"


def test_a_location_is_inside_a_chip_only_between_its_ends() -> None:
    label = "[Pasted #1: 9 lines]"
    assert chip_at(f"a{label}", 1, {label: ""}) is None
    assert chip_at(f"a{label}", 2, {label: ""}) == (1, 1 + len(label))
    assert chip_at(f"a{label}", 1 + len(label), {label: ""}) is None
    assert chip_at(f"a{label}", 2, {}) is None


def feed(burst: Burst, text: str, start_s: float, gap_s: float) -> list[bool]:
    return [burst.feed(character, start_s + number * gap_s) for number, character in enumerate(text)]


def test_typing_is_no_burst() -> None:
    burst = Burst()
    assert not any(feed(burst, "hello\n", 0, 0.05))
    assert not burst.over(10) and burst.take() == ""


def test_keys_that_come_together_are_a_burst_with_its_first_characters() -> None:
    burst = Burst()
    assert feed(burst, "ab", 0, 0.001) == [False, False]
    assert burst.feed("c", 0.002) and burst.typed == "ab"
    assert burst.feed("\n", 0.003) and burst.typed == ""
    assert not burst.over(0.05) and burst.over(0.1)
    assert burst.take() == "abc\n"
    assert burst.guards_enter(0.3) and not burst.guards_enter(0.5)


def test_an_input_method_that_commits_a_word_delays_enter_only_briefly() -> None:
    burst = Burst()
    feed(burst, "日本語", 0, 0.001)
    assert burst.take() == "日本語"
    assert burst.guards_enter(0.1) and not burst.guards_enter(0.2)


def test_a_burst_goes_on_over_a_pause_until_it_is_taken() -> None:
    burst = Burst()
    feed(burst, "abc", 0, 0.001)
    assert burst.feed("d", 0.05)
    assert burst.take() == "abcd"
