"""The check for machines with a card: without one it says so, and what of it runs on a processor runs."""

import importlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import tiny_folder
from backends import TORCH, needs_torch
from specengine.backends.torch_nf4.found import look
from specengine.model_folder import read_folder

PACKAGING = Path(__file__).parents[2] / "packaging"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(PACKAGING)
    yield importlib.import_module("cuda_check")
    for name in ("cuda_check", "made_models"):
        sys.modules.pop(name, None)


@pytest.mark.skipif(TORCH and look().card is not None, reason="this machine has a card")
def test_without_a_card_it_says_in_a_sentence_that_it_needs_one() -> None:
    program = [sys.executable, str(PACKAGING / "cuda_check.py")]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("This check needs a machine with a CUDA card: ")
    assert ended.stderr.count("\n") == 1


@needs_torch
def test_all_of_its_parts_run_on_a_processor(
    check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, draft = (check.Shape(128, 256, 2, 4, 2, 512, tied=tied) for tied in (False, True))
    random, big, small = tmp_path / "random", tmp_path / "big", tmp_path / "small"
    parts = [
        ("matrices", lambda: check.matrices("cpu", target)),
        ("passes", lambda: check.passes(check.randomised(random, draft), "cpu", starts=(20, 70))),
        ("pair", lambda: check.pair(check.hollow(big, target), check.hollow(small, draft), "cpu")),
    ]
    check.report(parts, until=time.monotonic() + 60)
    said = capsys.readouterr().out
    assert "failed" not in said
    assert "wrong" not in said
    drafted = re.search(r"(\d+) of (\d+) accepted", said)
    assert drafted is not None
    assert int(drafted[1]) == int(drafted[2]) > 64
    for what in ("gate, up 256 × 128", "graph against eager, at 70", "passes of 1 to 8", "tokens/s", "to be expected"):
        assert what in said
    assert read_folder(big).size == sum(tensor.size for tensor in read_folder(big).tensors.values())


@needs_torch
def test_a_real_pair_answers_a_question(check: ModuleType, tmp_path: Path) -> None:
    folder = tiny_folder.make(tmp_path / "tiny", vocab_extra=18)
    lines = list(check.pair(folder, folder, "cpu", real=True))
    assert [line.what for line in lines][-2:] == ["plain", "speculative"]
    assert all(line.verdict != "wrong" for line in lines)


def test_parts_that_fail_or_find_no_time_are_said(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Iterator[object]:
        yield check.Line("first", "fine", "ok")
        raise RuntimeError("no such kernel")

    assert check.report([("one", fails)], time.monotonic() + 60) == 1
    assert "failed: RuntimeError: no such kernel" in capsys.readouterr().out
    assert check.report([("one", fails)], time.monotonic() - 1) == 1
    assert "not checked: one" in capsys.readouterr().out


def test_what_drafts_can_gain_follows_from_costs_and_acceptance(check: ModuleType) -> None:
    free = check.gain(0.5, [1.0] * 8, 0.0)
    assert free == pytest.approx((1 - 0.5**8) / 0.5)
    assert check.gain(0.5, [1.0, 2.0], 0.5) == pytest.approx(1.5 / 2.5)
