"""What is kept of width noise measurements, and for what they hold."""

import os
from pathlib import Path

import pytest

from specchat import noise_file
from specengine.protocol import Loaded, WidthNoise

SOME, NONE = WidthNoise(0.21, 0.02, False), WidthNoise(0.0, 0.0, True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "width_noise.json"


def loaded(model: Path, device: str = "CPU, 2 threads") -> Loaded:
    return Loaded("tiny", str(model), "llama.cpp", device, 8192, 1000)


def test_what_was_measured_is_found_again(file: Path, model: Path) -> None:
    assert noise_file.recall(file, model, exact=False) is None
    noise_file.remember(file, loaded(model), False, SOME)
    noise_file.remember(file, loaded(model), True, NONE)
    usual, exact = (noise_file.recall(file, model, exact) for exact in (False, True))
    assert usual and exact and (usual.noise, exact.noise) == (SOME, NONE)
    assert noise_file.in_words(usual.noise) == "text may part at near-ties: logits differ by up to 0.21"
    assert noise_file.in_words(exact.noise) == "identical text expected"


def test_a_new_measurement_takes_the_place_of_the_earlier_one(file: Path, model: Path) -> None:
    noise_file.remember(file, loaded(model), False, SOME)
    noise_file.remember(file, loaded(model), False, NONE)
    found = noise_file.recall(file, model, False)
    assert found and found.noise == NONE
    assert file.read_text().count("max_difference") == 1


def test_of_several_devices_the_one_that_runs_now_comes_first_then_the_newest(file: Path, model: Path) -> None:
    noise_file.remember(file, loaded(model, "CPU, 2 threads"), False, SOME)
    noise_file.remember(file, loaded(model, "GPU"), False, NONE)
    for running, expected in ((None, NONE), ("CPU, 2 threads", SOME), ("GPU", NONE), ("CPU, 8 threads", NONE)):
        found = noise_file.recall(file, model, False, loaded(model, running) if running else None)
        assert found and found.noise == expected, running


def test_it_holds_for_this_very_file_and_runtime_only(file: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_file.remember(file, loaded(model), False, SOME)
    with monkeypatch.context() as other:
        other.setattr(noise_file, "version", lambda package: "99")
        assert noise_file.recall(file, model, False) is None
    assert noise_file.recall(file, model, False)
    os.utime(model, ns=(1, 1))
    assert noise_file.recall(file, model, False) is None


def test_a_damaged_file_or_a_lost_model_costs_a_measurement_only(file: Path, model: Path) -> None:
    noise_file.remember(file, loaded(model), False, SOME)
    file.write_text("{")
    assert noise_file.recall(file, model, False) is None
    noise_file.remember(file, loaded(model), False, SOME)
    assert noise_file.recall(file, model, False)
    model.unlink()
    assert noise_file.recall(file, model, False) is None
    noise_file.remember(file, loaded(model), False, SOME)


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path, model: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    noise_file.remember(tmp_path / "cache" / "width_noise.json", loaded(model), False, SOME)
