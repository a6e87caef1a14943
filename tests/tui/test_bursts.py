"""Pastes that a terminal did not bracket, without a terminal."""

from specchat.tui.bursts import Burst


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


def test_control_characters_of_a_paste_do_not_act_and_keys_pressed_by_hand_do() -> None:
    burst = Burst()
    burst.feed("a", 0)
    assert burst.holds_back("ctrl+g", 0.001) and burst.holds_back("escape", 0.001)
    assert not burst.holds_back("ctrl+c", 0.001) and not burst.holds_back("backspace", 0.001)
    assert not burst.holds_back("ctrl+g", 0.1)


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
