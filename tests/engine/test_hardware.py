"""What the machine has and which model suits it; speeds and sizes told are estimates, so only their order is tested."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from specengine import catalog, hardware
from specengine.catalog import Catalog, Entry, Gguf, Shape
from specengine.hardware import Gpu, Hardware, best_fit, fits, memory_needed

GB = 10**9
LAPTOP = Hardware(cores=4, memory=16 * GB, available=10 * GB, disk=100 * GB, bandwidth=20.0 * GB)


@pytest.fixture(scope="module")
def models() -> Catalog:
    return catalog.load()


class TestThisMachine:
    def test_its_sizes_are_plausible(self, tmp_path: Path) -> None:
        found = hardware.detect(tmp_path / "not" / "yet" / "there", tmp_path / "speed.json")
        assert 1 <= found.cores <= (os.cpu_count() or 1)
        assert found.memory and found.available and 0 < found.available <= found.memory
        assert found.disk and found.disk > 0
        assert found.bandwidth and found.bandwidth > 10**8

    def test_the_bandwidth_is_measured_only_for_those_who_ask_for_speeds(self, tmp_path: Path) -> None:
        assert hardware.detect(tmp_path, None).bandwidth is None

    def test_no_more_cores_than_the_process_may_use(self) -> None:
        if not hasattr(os, "sched_setaffinity"):
            pytest.skip("needs Linux's CPU affinity")
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            assert hardware.physical_cores() == 1
        finally:
            os.sched_setaffinity(0, allowed)

    def test_graphics_cards_are_asked_of_nvidia_smi(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 143000'\necho 'NVIDIA GB10, [N/A], [N/A]'\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
        assert hardware.detect(tmp_path, None).gpus == (Gpu("NVIDIA H200", 143771 << 20, 143000 << 20),)

    def test_a_broken_nvidia_smi_means_no_cards(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.defpath}")
        assert hardware.detect(tmp_path, None).gpus == ()

    def test_free_pages_of_a_mac_are_counted(self) -> None:
        report = (
            "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n"
            "Pages free:                                5.\nPages active:                           1000.\n"
            "Pages inactive:                           10.\nPages speculative:                       20.\n"
            "Pages purgeable:                          40.\n"
        )
        assert hardware.mac_available(report) == 75 * 16384
        assert hardware.mac_available("") is None


class TestFit:
    def test_the_cache_grows_with_the_context(self) -> None:
        entry = Entry(
            gguf=Gguf(file="x.gguf", size=GB), context=32768, shape=Shape(layers=28, kv_heads=2, head_dim=128)
        )
        assert memory_needed(entry, 8192) - memory_needed(entry, 4096) == 4096 * 28672
        assert memory_needed(entry) == memory_needed(entry, hardware.DEFAULT_CONTEXT)
        short = Entry(gguf=entry.gguf, context=2048, shape=entry.shape)
        assert memory_needed(short) == memory_needed(entry, 2048)

    def test_a_model_fits_into_exactly_what_it_needs(self, models: Catalog) -> None:
        entry = models.find("qwen3-8b")
        needed = memory_needed(entry)
        assert fits(entry, replace(LAPTOP, available=needed)).fits
        assert not fits(entry, replace(LAPTOP, available=needed - 1)).fits

    def test_the_draft_model_counts(self, models: Catalog) -> None:
        entry, draft = models.find("qwen3-8b"), models.find("qwen3-0.6b")
        assert fits(entry, LAPTOP, draft=draft).needed == memory_needed(entry) + memory_needed(draft)

    def test_a_graphics_card_that_holds_it_makes_it_fit_and_foretells_no_speed(self, models: Catalog) -> None:
        small = replace(LAPTOP, available=GB, gpus=(Gpu("card", 24 * GB, 24 * GB),))
        fit = fits(models.find("qwen3-8b"), small)
        assert (fit.fits, fit.tokens_per_s) == (True, None)

    def test_twice_the_weights_are_half_the_speed(self) -> None:
        one, two = (fits(Entry(gguf=Gguf(file="x.gguf", size=size * GB)), LAPTOP).tokens_per_s for size in (1, 2))
        assert one and two and one == pytest.approx(2 * two)

    def test_without_a_measured_bandwidth_no_speed_is_told(self, models: Catalog) -> None:
        assert fits(models.find("qwen3-8b"), replace(LAPTOP, bandwidth=None)).tokens_per_s is None


class TestBestFit:
    @pytest.mark.parametrize(
        ("machine", "name"),
        [
            (replace(LAPTOP, available=GB // 10), "smollm2-135m"),
            (replace(LAPTOP, available=3 * GB), "qwen2.5-coder-1.5b"),
            (LAPTOP, "qwen3-4b"),
            (replace(LAPTOP, bandwidth=40.0 * GB), "qwen2.5-coder-7b"),
            (replace(LAPTOP, bandwidth=200.0 * GB, available=60 * GB), "qwen2.5-coder-32b"),
            (replace(LAPTOP, bandwidth=200.0 * GB, available=60 * GB, disk=6 * GB), "qwen2.5-coder-7b"),
            (replace(LAPTOP, available=4 * GB, gpus=(Gpu("card", 25 * GB, 24 * GB),)), "qwen2.5-coder-32b"),
        ],
    )
    def test_the_largest_that_fits_and_can_be_read_along_is_offered(
        self, models: Catalog, machine: Hardware, name: str
    ) -> None:
        assert best_fit(models, machine).entry.name == name

    def test_where_nothing_fits_the_small_default_is_offered_and_said_not_to_fit(self, models: Catalog) -> None:
        fit = best_fit(models, replace(LAPTOP, available=1))
        assert (fit.entry.name, fit.fits) == ("smollm2-135m", False)
