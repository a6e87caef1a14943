"""Which models may draft for which: the first difference of their vocabularies is named."""

from specengine.pair import mismatch
from vocabulary import Pieces

WORDS = [b"a", b"b", b"ab", b"c"]


def test_equal_vocabularies_match() -> None:
    assert mismatch(Pieces(WORDS), Pieces(WORDS)) is None


def test_the_first_token_that_differs_is_named() -> None:
    assert mismatch(Pieces(WORDS), Pieces([b"a", b"x", b"ab", b"y"])) == (
        "Token 1 is 'b' for the target and 'x' for the draft."
    )


def test_tokens_in_another_order_do_not_match() -> None:
    assert mismatch(Pieces(WORDS), Pieces([b"a", b"ab", b"b", b"c"])) is not None


class Padded(Pieces):
    """Has more tokens behind the real ones, as converted models do."""

    def __init__(self, padding: int) -> None:
        super().__init__(WORDS)
        self.size += padding

    def name(self, token: int) -> str:
        return [*map(bytes.decode, WORDS), "<end>"][token] if token <= len(WORDS) else f"[PAD{token}]"


def test_padding_on_either_side_does_no_harm() -> None:
    assert mismatch(Padded(0), Padded(7)) is None
    assert mismatch(Padded(7), Padded(0)) is None


def test_another_end_of_generation_is_named() -> None:
    other = Pieces(WORDS)
    other.end_of_generation = frozenset({2, 4})
    assert mismatch(Pieces(WORDS), other) == "Token 2 ('ab') is an end of generation for the draft only."
    assert mismatch(other, Pieces(WORDS)) == "Token 2 ('ab') is an end of generation for the target only."


def test_another_control_token_is_named() -> None:
    other = Pieces(WORDS)
    other.control = frozenset({4, 1})
    assert mismatch(Pieces(WORDS), other) == "Token 1 ('b') is a control token for the draft only."


def test_ends_of_generation_beyond_the_shared_tokens_do_not_matter() -> None:
    padded = Padded(7)
    padded.end_of_generation = frozenset({4, 9})
    assert mismatch(Padded(0), padded) is None
