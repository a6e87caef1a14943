"""Which candidate a few letters mean."""

import pytest

from specchat.tui.fuzzy import best

FILES = ["README.md", "app/main.py", "app/domain.py", "tests/test_main.py", "docs/maintenance.md"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("main", ["app/main.py", "docs/maintenance.md", "app/domain.py", "tests/test_main.py"]),
        ("main.py", ["app/main.py", "app/domain.py", "tests/test_main.py"]),
        ("amp", ["app/main.py", "app/domain.py"]),
        ("readme", ["README.md"]),
        ("xyz", []),
        ("a+", []),
        ("", FILES),
    ],
)
def test_names_that_begin_so_come_first_then_pieces_then_letters_in_order(typed: str, found: list[str]) -> None:
    assert best(typed, FILES, 10)[: len(found) or None] == found


def test_no_more_are_given_than_asked_for() -> None:
    assert len(best("a", [f"a{number}" for number in range(100)], 7)) == 7
