"""The speed of the memory: measured a few times, and the best of it kept."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from specengine import memory_speed
from specengine.memory_speed import memory_speed as speed_of

GB = 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """What measurements find, one after the other."""
    found: list[float | None] = []
    monkeypatch.setattr(memory_speed, "measured", lambda available: found.pop(0))
    return found


def test_a_busy_machine_does_not_change_what_was_seen_of_a_quiet_one(
    tmp_path: Path, machine: list[float | None]
) -> None:
    machine += [3.0 * GB, 10.0 * GB, 2.0 * GB, 9.0 * GB, 1.0 * GB]
    kept = tmp_path / "cache" / "speed.json"
    assert [speed_of(kept, None) for _ in range(5)] == [3.0 * GB, *[10.0 * GB] * 4]


def test_after_five_looks_it_is_known_and_nobody_waits_for_another(tmp_path: Path, machine: list[float | None]) -> None:
    machine += [10.0 * GB] * 5
    assert [speed_of(tmp_path / "speed.json", None) for _ in range(8)] == [10.0 * GB] * 8
    assert machine == []


def test_who_asks_for_it_measures_again_and_keeps_the_better(tmp_path: Path, machine: list[float | None]) -> None:
    machine += [5.0 * GB] * 5 + [12.0 * GB]
    kept = tmp_path / "speed.json"
    for _ in range(5):
        speed_of(kept, None)
    assert speed_of(kept, None, again=True) == 12.0 * GB
    assert speed_of(kept, None) == 12.0 * GB


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"machine": "another", "bytes_per_s": 1e12, "looks": 9}'])
def test_a_damaged_file_or_one_of_another_machine_only_costs_a_measurement(
    tmp_path: Path, machine: list[float | None], damaged: bytes
) -> None:
    kept = tmp_path / "speed.json"
    kept.write_bytes(damaged)
    machine += [10.0 * GB]
    assert speed_of(kept, None) == 10.0 * GB
    assert msgspec.json.decode(kept.read_bytes())["looks"] == 1


def test_where_nothing_can_be_written_it_is_measured_each_time(tmp_path: Path, machine: list[float | None]) -> None:
    (tmp_path / "file").write_text("no folder")
    machine += [10.0 * GB, 9.0 * GB]
    assert [speed_of(tmp_path / "file" / "speed.json", None) for _ in range(2)] == [10.0 * GB, 9.0 * GB]


def test_where_there_is_no_room_to_measure_what_was_seen_before_holds(
    tmp_path: Path, machine: list[float | None]
) -> None:
    kept = tmp_path / "speed.json"
    machine += [None, 10.0 * GB, None]
    assert [speed_of(kept, None) for _ in range(3)] == [None, 10.0 * GB, 10.0 * GB]


def test_a_measurement_takes_a_small_part_of_the_memory_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def ones(count: int, kind: type[np.uint64], made: Callable[..., object] = np.ones) -> object:
        taken.append(8 * count)
        return made(count, kind)

    monkeypatch.setattr(np, "ones", ones)
    assert memory_speed.measured(16 * GB)
    assert memory_speed.measured(80 << 20)
    assert memory_speed.measured(0) is None
    assert taken == [256 << 20, 10 << 20, 0], "far more than any cache, where there is room"
