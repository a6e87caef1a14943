"""What is shown of an answer, whatever bytes the model's tokens are made of."""

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specengine.clean_text import LONGEST_SEQUENCE, clean
from specengine.text_stream import TextStream
from vocabulary import Pieces

REPEATABLE = settings(deadline=None, derandomize=True)


def stream(pieces: Sequence[bytes], stop: Sequence[str] = ()) -> tuple[list[str], TextStream]:
    """The text that each token settles, and last the text that finishing adds."""
    texts = TextStream(Pieces(pieces), stop)
    parts = ["".join(token.text for token in texts.push(number, "target")) for number in range(len(pieces))]
    return [*parts, "".join(token.text for token in texts.finish())], texts


def text(pieces: Iterable[bytes], stop: Sequence[str] = ()) -> str:
    return "".join(stream(list(pieces), stop)[0])


@st.composite
def splits(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


LETTERS = [
    "a",
    "é",
    "你",
    "🙂",
    "\n",
    "\r",
    "\t",
    "\x1b",
    "[",
    "]",
    "P",
    "\\",
    "31",
    ";",
    "m",
    "0",
    " ",
    "(",
    "abc",
    "ab",
]
SEQUENCES = ["\x07", "\x9b", "\x9d", "\x9c", "\x00", "\x7f", "\u202e", "\x1b[31m", "\x1b]8;;x\x1b\\", "\x1b]0;t\x07"]
HOSTILE = st.lists(st.sampled_from(LETTERS + SEQUENCES), max_size=30).map("".join)
STOPS = st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3)


class TestCharacters:
    def test_a_character_belongs_to_the_token_that_completes_it(self) -> None:
        pieces = [b"a" + "你".encode()[:1], "你".encode()[1:2], "你".encode()[2:] + b"b"]
        assert stream(pieces)[0] == ["a", "", "你b", ""]

    def test_invalid_bytes_become_replacement_characters_and_hold_nothing_back(self) -> None:
        assert stream([b"a\xff", b"b", b"\xe4\xbd", b"c"])[0] == ["a\ufffd", "b", "", "\ufffdc", ""]

    def test_half_a_character_where_the_answer_was_cut_is_left_out(self) -> None:
        texts = TextStream(Pieces([b"\xffa", "🙂".encode()[:3]]))
        pushed = [*texts.push(0, "target"), *texts.push(1, "target")]
        ended = texts.finish(cut=True)
        assert "".join(token.text for token in (*pushed, *ended)) == "\ufffda"
        assert sum(token.count for token in (*pushed, *ended)) == 2

    def test_an_unfinished_character_ends_as_a_replacement_character(self) -> None:
        assert stream([b"a", "🙂".encode()[:3]])[0] == ["a", "", "\ufffd"]

    @REPEATABLE
    @given(st.data(), st.binary(max_size=40))
    def test_any_split_of_any_bytes_gives_the_same_text(self, data: st.DataObject, content: bytes) -> None:
        assert text(data.draw(splits(content))) == text([content]) == clean(content)

    @REPEATABLE
    @given(st.text())
    def test_text_without_control_characters_is_not_changed(self, content: str) -> None:
        plain = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "", content)
        assert clean(plain.encode()) == plain

    def test_tokens_without_text_show_nothing(self) -> None:
        vocabulary = Pieces([b"a"])
        texts = TextStream(vocabulary)
        (end,) = vocabulary.end_of_generation
        shown = [piece.text for token in (end, 0, end) for piece in texts.push(token, "target")]
        assert shown == ["", "a", ""]
        assert texts.finish() == []

    def test_each_text_carries_the_source_of_its_token(self) -> None:
        texts = TextStream(Pieces([b"a<", b"b", b"\xe4\xbd", b"\xa0"]), ["<x"])
        pieces = [
            piece for token, source in enumerate(["one", "two", "three", "four"]) for piece in texts.push(token, source)
        ]
        assert [(piece.text, piece.source, piece.count) for piece in pieces] == [
            ("a", "one", 0), ("<", "one", 1), ("b", "two", 1), ("", "three", 1), ("你", "four", 1),
        ]  # fmt: skip

    @REPEATABLE
    @given(st.data(), HOSTILE, STOPS)
    def test_each_token_is_counted_once_and_in_order_whatever_becomes_of_its_text(
        self, data: st.DataObject, content: str, stop: list[str]
    ) -> None:
        pieces = [*data.draw(splits(content.encode())), b""]
        texts = TextStream(Pieces(pieces), stop)
        counted = []
        pushed = 0
        while pushed < len(pieces) and not texts.stopped:
            counted += texts.push(pushed, str(pushed))
            pushed += 1
        counted += texts.finish()
        assert [token.source for token in counted if token.count] == [str(number) for number in range(pushed)]


class TestControlCharacters:
    @pytest.mark.parametrize(
        "sequence",
        [
            "\x1b[31m", "\x1b[2J", "\x1b[?1049h", "\x1b[1;2 q", "\x9b31m", "\x1bc", "\x1b7", "\x1b(B", "\x1b#8",
            "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\", "\x9d8;;http://a.b/\x9c", "\x1bPq#0\x1b\\", "\x1b_Gi=1\x1b\\",
            "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x00", "\x07", "\x08", "\x0b", "\x0c", "\x7f", "\x85",
            "\u202e", "\u2066",
        ],
    )  # fmt: skip
    def test_a_whole_sequence_leaves_nothing_behind(self, sequence: str) -> None:
        assert clean(f"a{sequence}b".encode()) == "ab"
        assert text([bytes([byte]) for byte in f"a{sequence}b".encode()]) == "ab"

    @pytest.mark.parametrize(("content", "shown"), [("a\r\nb\rc\n\rd", "a\nb\nc\n\nd"), ("a\r\x1b[m\nb", "a\n\nb")])
    def test_returns_become_newlines(self, content: str, shown: str) -> None:
        assert clean(content.encode()) == text([bytes([byte]) for byte in content.encode()]) == shown

    def test_a_newline_after_a_return_and_an_escape_is_one_of_its_own(self) -> None:
        assert text([b"a\r\x1b", b"\nb"]) == clean(b"a\r\x1b\nb") == "a\n\nb"

    @pytest.mark.parametrize("start", ["\x1b]0;", "\x1bP", "\x9d", "\x1b[", "\x1b_"])
    def test_an_unterminated_sequence_swallows_nothing_but_its_control_characters(self, start: str) -> None:
        answer = "?" * 40 + "\nThe answer is 42.\n" + "é" * 3000
        shown = start.lstrip("\x1b\x9d") + answer
        assert clean((start + answer).encode()) == shown
        assert text([letter.encode() for letter in start + answer]) == shown

    def test_a_sequence_that_is_too_long_is_shown_as_text(self) -> None:
        payload = "x" * LONGEST_SEQUENCE
        assert clean(f"\x1b]{payload}\x07".encode()) == f"]{payload}"

    @REPEATABLE
    @given(st.data(), HOSTILE)
    def test_nothing_that_a_terminal_obeys_comes_through(self, data: st.DataObject, content: str) -> None:
        shown = text(data.draw(splits(content.encode())))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
        assert shown == clean(content.encode())

    @pytest.mark.parametrize("start", ["\x1b]", "\x1b[", "\x9d", "\x1b "])
    def test_what_is_held_back_is_bounded(self, start: str) -> None:
        parts, _ = stream([letter.encode() for letter in start + "3" * 3000])
        shown = 0
        for pushed, part in enumerate(parts[:-1], start=1):
            shown += len(part)
            assert pushed - shown <= LONGEST_SEQUENCE
        assert parts[-1] == ""


class TestStopStrings:
    @pytest.mark.parametrize(
        ("pieces", "stop", "shown", "before"),
        [
            (["Hello EN", "D now"], ["END"], "Hello ", 0),
            (["Hello ", "E", "ND", " now"], ["END"], "Hello ", 1),
            (["END"], ["END"], "", 0),
            (["a", "EEND"], ["END"], "aE", 1),
            (["a", "EN", "EN", "D"], ["END"], "aEN", 2),
            (["abc", "d"], ["abcd", "bc"], "a", 0),
            (["x\n", "\nUser", ":"], ["\n\nUser:", "\nUser:"], "x", 0),
            (["na", "nan", "as"], ["nanas"], "na", 1),
            (["ab"], ["b", "ab"], "", 0),
            (["ab"], ["ab", "b"], "", 0),
        ],
    )
    def test_text_before_the_stop_is_shown_and_whole_tokens_before_it_are_counted(
        self, pieces: list[str], stop: list[str], shown: str, before: int
    ) -> None:
        parts, texts = stream([piece.encode() for piece in pieces], stop)
        assert "".join(parts) == shown
        assert texts.stopped
        assert texts.tokens_before_stop == before

    def test_tokens_before_the_stop_end_with_a_whole_character(self) -> None:
        parts, texts = stream([b"a", b"\xc3", b"\xa9x\xc3", b"\xbcb"], ["ü"])
        assert "".join(parts) == "aéx"
        assert texts.tokens_before_stop == 1

    def test_a_stop_that_stays_unfinished_is_shown_at_the_end(self) -> None:
        parts, texts = stream([b"a", b"EN"], ["END"])
        assert parts == ["a", "", "EN"]
        assert not texts.stopped
        assert texts.tokens_before_stop is None

    def test_the_end_of_the_answer_may_complete_a_stop(self) -> None:
        parts, texts = stream([b"ab", b"\xe4"], ["b\ufffd"])
        assert "".join(parts) == "a"
        assert texts.stopped
        assert texts.tokens_before_stop == 0

    def test_what_is_removed_does_not_hide_a_stop(self) -> None:
        assert text([b"aE\x1b[", b"1mND"], ["END"]) == "a"

    @REPEATABLE
    @given(st.data(), st.text("ab\n", max_size=30), STOPS)
    def test_the_match_that_completes_first_wins_wherever_tokens_end(
        self, data: st.DataObject, content: str, stop: list[str]
    ) -> None:
        parts, texts = stream(data.draw(splits(content.encode())), stop)
        ends = [(found + len(string), -len(string)) for string in stop if (found := content.find(string)) >= 0]
        end, minus_length = min(ends, default=(len(content), 0))
        assert "".join(parts) == content[: end + minus_length]
        assert texts.stopped == bool(ends)

    @REPEATABLE
    @given(st.data(), HOSTILE, STOPS | st.just(["é", "🙂"]))
    def test_tokens_before_the_stop_spell_the_beginning_of_the_text(
        self, data: st.DataObject, content: str, stop: list[str]
    ) -> None:
        pieces = data.draw(splits(content.encode()))
        parts, texts = stream(pieces, stop)
        kept = len(pieces) if texts.tokens_before_stop is None else texts.tokens_before_stop
        assert "".join(parts).startswith(clean(b"".join(pieces[:kept])))

    @REPEATABLE
    @given(st.text("ab", max_size=60), STOPS)
    def test_less_than_a_stop_string_is_held_back(self, content: str, stop: list[str]) -> None:
        texts = TextStream(Pieces([letter.encode() for letter in content]), stop)
        shown = 0
        for number in range(len(content)):
            shown += sum(len(token.text) for token in texts.push(number, "target"))
            if texts.stopped:
                break
            assert number + 1 - shown < max(map(len, stop), default=1)
