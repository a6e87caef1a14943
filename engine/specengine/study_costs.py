"""Cost tables to study decisions with, beside the one measured on the user's own machine.

Some are measured. The others are modelled from public figures of the hardware, by one formula, and say so in their
names. They are meant to have the shapes that machines have, not to predict anyone's tokens per second.

The formula is a roofline: a pass reads every weight once, at the memory's bandwidth, and computes two operations a
weight and token; it takes the longer of both, blended where they meet, and a fixed time to launch it. GPU kernels for
4-bit weights are flat up to 8 rows, then step up to the next tile.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from specengine.costs import GRID, CostTable


@dataclass(frozen=True, slots=True)
class Study:
    """A cost table with where it comes from."""

    name: str
    source: str
    """One sentence: measured on what, or modelled from what."""
    costs: CostTable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """Public figures of hardware, and how much of them 4-bit inference reaches."""

    bandwidth: float
    """Bytes a second that a pass reads weights with."""
    operations: float
    """Operations a second in products of 4-bit weights with many tokens."""
    launch_s: float
    """Seconds of a pass beside reading and computing, for the target."""
    draft_launch_s: float
    """The same for the draft model, which has fewer layers."""
    tile: int = 1
    """Rows that a kernel computes at the price of one."""


@dataclass(frozen=True, slots=True)
class _Model:
    parameters: float
    """Weights that a token is multiplied with, the head included."""
    bytes: float
    """Size of what a pass reads."""
    kv_bytes: float
    """Keys and values of one token."""


def modelled(machine: _Machine, target: _Model, draft: _Model) -> CostTable:
    """The roofline's table for a pair of models."""
    step_s = _pass_s(machine, draft, 1, machine.draft_launch_s)
    return CostTable(
        target_s=[_pass_s(machine, target, width, machine.launch_s) for width in GRID],
        draft_step_s=step_s,
        draft_read_s=_pass_s(machine, draft, 64, machine.draft_launch_s) / 64,
        host_s=0.0006,
        context_s=target.kv_bytes / machine.bandwidth,
    )


def _pass_s(machine: _Machine, model: _Model, width: int, launch_s: float) -> float:
    rows = -(-width // machine.tile) * machine.tile
    reading = model.bytes / machine.bandwidth
    computing = 2 * model.parameters * rows / machine.operations
    # The fourth-power mean is the longer of both, without a corner where they meet.
    return float((reading**4 + computing**4) ** 0.25) + launch_s


def _measured(
    target_ms: dict[int, float], *, step_ms: float, read_ms: float, host_ms: float, pair_ms: float = 0.0
) -> CostTable:
    """A table from measured widths, lines between them, and the last line continued."""
    widths, times = list(target_ms), list(target_ms.values())
    slope = (times[-1] - times[-2]) / (widths[-1] - widths[-2])
    beyond = [times[-1] + slope * max(0, width - widths[-1]) for width in GRID]
    within = np.interp(GRID, widths, times)
    return CostTable(
        [float(max(a, b) if width > widths[-1] else a) / 1e3 for width, a, b in zip(GRID, within, beyond, strict=True)],
        step_ms / 1e3,
        read_ms / 1e3,
        host_ms / 1e3,
        0.0,
        pair_ms / 1e3,
    )


def _times(t1_ms: float, ratios: dict[int, float]) -> dict[int, float]:
    return {width: t1_ms * ratio for width, ratio in ratios.items()}


_7B: Final = _Model(parameters=7.1e9, bytes=4.7e9, kv_bytes=57_344)
"""Qwen2.5-Coder-7B: 28 layers with 4 heads of 128 for keys and values; about 4.7 GB in 4 bits, the head included."""
_0_5B: Final = _Model(parameters=0.49e9, bytes=0.40e9, kv_bytes=12_288)
"""Qwen2.5-Coder-0.5B in 4 bits."""

_DESKTOP: Final = _Machine(bandwidth=60e9, operations=1.0e12, launch_s=0.001, draft_launch_s=0.0005)
"""Two channels of DDR5-5600 move 89.6 GB/s, two thirds of it in practice. Eight AVX-512 cores read a prompt at about
70 tokens a second with a 7B in 4 bits, which makes 10^12 operations."""
_RTX_3060: Final = _Machine(bandwidth=270e9, operations=12e12, launch_s=0.003, draft_launch_s=0.0006, tile=8)
"""360 GB/s, three quarters reached; 25 Tflop/s (fp16, fp32 accumulation), half reached. The draft's step is a replayed
graph; the target's kernels are launched one by one, mostly hidden behind reading."""
_RTX_4090: Final = _Machine(bandwidth=800e9, operations=80e12, launch_s=0.003, draft_launch_s=0.0006, tile=8)
"""1,008 GB/s, four fifths reached; 165 Tflop/s (fp16, fp32 accumulation), half reached."""
_RTX_4090_EAGER: Final = replace(_RTX_4090, draft_launch_s=0.006)
"""The same where the draft's 24 layers are launched kernel by kernel: some 800 launches a step."""

_XEON_MS: Final = {
    1: 85.0,
    2: 125.0,
    3: 147.0,
    4: 130.0,
    5: 172.0,
    6: 203.0,
    8: 243.0,
    12: 275.0,
    16: 285.0,
    24: 400.0,
    32: 480.0,
    48: 680.0,
    64: 890.0,
    128: 1630.0,
}
"""Behind an empty context; 1,536 tokens added 11 ms at width 1, 46 at 4, 170 at 16, 287 at 32."""

_ALL: Final = (
    Study(
        "cpu-2-cores",
        "measured: two cores of an Intel Xeon with AVX-512, llama.cpp, Qwen2.5-Coder 1.5B and 0.5B in Q4_K_M",
        _measured(_XEON_MS, step_ms=38.3, read_ms=7.0, host_ms=0.6, pair_ms=0.0075),
    ),
    Study(
        "cpu-2-cores-zen4",
        "measured up to 32 wide: two cores of an AMD Zen 4 with AVX-512, the same models",
        _measured(
            _times(32, {1: 1, 2: 1.8, 4: 3.1, 5: 3.8, 8: 7.0, 16: 8.4, 32: 14}),
            step_ms=22.0,
            read_ms=4.0,
            host_ms=0.5,
            pair_ms=0.003,
        ),
    ),
    Study(
        "cpu-2-cores-torch",
        "measured up to 32 wide: the same machine, torch with bitsandbytes NF4, Qwen2.5-Coder 1.5B and 0.5B",
        _measured(
            _times(74, {1: 1, 2: 1.0, 4: 1.2, 5: 2.0, 8: 2.4, 16: 3.3, 32: 5.3}), step_ms=43.0, read_ms=4.8, host_ms=1.0
        ),
    ),
    Study(
        "desktop-8-cores",
        "modelled: eight AVX-512 cores with two channels of DDR5, llama.cpp, Qwen2.5-Coder 7B and 0.5B",
        modelled(_DESKTOP, _7B, _0_5B),
    ),
    Study(
        "rtx-3060",
        "modelled: RTX 3060 12 GB, 4-bit Qwen2.5-Coder 7B and 0.5B, the draft's step a replayed graph",
        modelled(_RTX_3060, _7B, _0_5B),
    ),
    Study(
        "rtx-4090",
        "modelled: RTX 4090, 4-bit Qwen2.5-Coder 7B and 0.5B, the draft's step a replayed graph",
        modelled(_RTX_4090, _7B, _0_5B),
    ),
    Study(
        "rtx-4090-eager",
        "modelled: RTX 4090, 4-bit Qwen2.5-Coder 7B and 0.5B, the draft launched kernel by kernel",
        modelled(_RTX_4090_EAGER, _7B, _0_5B),
    ),
)
STUDIES: Final = {study.name: study for study in _ALL}
