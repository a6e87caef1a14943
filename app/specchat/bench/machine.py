"""The machine that was measured, for the record."""

import platform
import sys
from pathlib import Path
from typing import Any

from specengine import __version__, hardware
from specengine.costs import GRID, CostTable
from specengine.protocol import Loaded


def described(loaded: Loaded, costs: CostTable, models_dir: Path) -> dict[str, Any]:
    """Hardware, system and runtime, and what passes cost when the bench ended (milliseconds, by width)."""
    found = hardware.detect(models_dir, None)
    return {
        "processor": _processor(),
        "cores": found.cores,
        "memory_bytes": found.memory,
        "gpus": [gpu.name for gpu in found.gpus],
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "specchat": __version__,
        "backend": f"{loaded.backend} ({loaded.versions})",
        "device": loaded.device,
        "pass_ms": {
            "target": {width: _ms(seconds) for width, seconds in zip(GRID, costs.target_s, strict=True)},
            "draft_step": _ms(costs.draft_step_s),
            "host": _ms(costs.host_s),
        },
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def _processor() -> str:
    if sys.platform == "linux":
        try:
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return value.strip()
        except OSError:
            pass
    return platform.processor() or platform.machine()
