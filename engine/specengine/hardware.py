"""What this machine has, and which model of the catalogue suits it."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from specengine.catalog import Catalog, Entry
from specengine.memory_speed import memory_speed

DEFAULT_CONTEXT = 8192
"""Tokens of context that are assumed where none are asked for, or the model's own where that is less."""
COMFORTABLE = 10.0
"""Estimated tokens per second below which a model is not offered: its answers, and pasted files even more, would mean
waiting."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card that nvidia-smi knows; sizes in bytes."""

    name: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Hardware:
    """Sizes in bytes; None where the system doesn't say."""

    cores: int
    """Physical cores that this process may use."""
    memory: int | None
    """Of the machine, or the container's limit."""
    available: int | None
    """That can be had without swapping."""
    disk: int | None
    """Free where the models are kept."""
    gpus: tuple[Gpu, ...] = ()
    bandwidth: float | None = None
    """Bytes per second at which one core reads memory, the best that was measured; None if it wasn't."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model suits a machine. Both numbers are estimates."""

    entry: Entry
    needed: int
    """Bytes of memory: weights, KV cache and workspace, those of the draft model included."""
    available: int | None
    """Bytes that it can have: on the GPU that holds all of it, else of the machine; None where nobody says."""
    fits: bool
    tokens_per_s: float | None
    """Plain decoding: every token reads all weights once, so memory bandwidth over their size bounds it; this is a
    share of that bound. An estimate, never a measurement."""


_REACHED = 0.7
"""Share of the bandwidth bound that plain decoding is assumed to reach."""
_SATURATING = 2
"""Cores that are assumed to use up the memory's bandwidth; more of them bring little."""
_WORKSPACE = 300 * 10**6
"""Compute buffers, logits and the process itself, taken generously."""


def detect(models_dir: Path, speed_file: Path | None, again: bool = False) -> Hardware:
    """Looks at the machine. Most of the time goes into the memory bandwidth, as long as that isn't known well.

    Args:
        speed_file: where the measured bandwidth is kept; None leaves it out.
        again: measure it also where it is known.
    """
    cores = physical_cores()
    memory, available = _memory()
    bandwidth = memory_speed(speed_file, available, again) if speed_file else None
    return Hardware(cores, memory, available, _free_disk(models_dir), _gpus(), bandwidth)


def physical_cores() -> int:
    """Cores without their hyper-threads, no more than this process is allowed to use."""
    allowed = allowed_cpus()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.platform == "linux":
            return max(1, min(_linux_cores(), allowed))
        if sys.platform == "darwin":
            # The efficiency cores hold the others up: every layer waits for the slowest thread.
            return max(1, _sysctl("hw.perflevel0.physicalcpu") or _sysctl("hw.physicalcpu") or allowed)
        if sys.platform == "win32":
            return max(1, min(_windows_cores(), allowed))
    return max(1, allowed)


def allowed_cpus() -> int:
    """Logical processors that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, round(int(quota) / int(period))))
    return count


def threads(asked: int | None) -> tuple[int, list[str]]:
    """Threads to compute with, and what there is to say about them; by default one for each core."""
    count, most = asked or physical_cores(), allowed_cpus()
    if count > most:
        return most, [f"This machine has {most} processors: more threads would only wait for each other."]
    return count, []


def available_memory() -> int | None:
    """Bytes that can be taken without swapping; None where the system doesn't say."""
    return _memory()[1]


def memory_needed(entry: Entry, n_ctx: int | None = None) -> int:
    """Bytes that the model takes while it runs, as an estimate: weights, F16 KV cache and workspace."""
    weights = entry.gguf.size or entry.gguf.approx_size or int((entry.parameters or 0) * 0.62 * 10**9)
    tokens = n_ctx or min(entry.context or DEFAULT_CONTEXT, DEFAULT_CONTEXT)
    kv = entry.shape.kv_bytes_per_token * tokens if entry.shape else weights // 8
    return weights + kv + _WORKSPACE


def fits(entry: Entry, hardware: Hardware, n_ctx: int | None = None, draft: Entry | None = None) -> Fit:
    """Judges a model, together with its draft model where one is given.

    On a GPU that holds all of it the memory of the machine doesn't count. No speed is foretold there.
    """
    needed = memory_needed(entry, n_ctx) + (memory_needed(draft, n_ctx) if draft else 0)
    on_gpu = next((gpu.free for gpu in hardware.gpus if needed <= gpu.free), None)
    available = hardware.available if on_gpu is None else on_gpu
    weights = weights_read(entry)
    rate = None
    if hardware.bandwidth and weights and on_gpu is None:
        rate = _REACHED * hardware.bandwidth * min(hardware.cores, _SATURATING) / weights
    return Fit(entry, needed, available, available is None or needed <= available, rate)


def weights_read(entry: Entry) -> int:
    """Bytes read for each token."""
    return entry.gguf.size or entry.gguf.approx_size or 0


def best_fit(catalog: Catalog, hardware: Hardware, n_ctx: int | None = None) -> Fit:
    """The largest model that fits with its draft model, goes onto the disk and is fast enough to read along.

    Where several have about the same size, code models win. Where nothing fits, the catalogue's small default.
    """
    fitting = []
    for entry in catalog.models.values():
        draft = catalog.draft_of(entry)
        fit = fits(entry, hardware, n_ctx, draft)
        files = weights_read(entry) + (weights_read(draft) if draft else 0)
        fast = fit.tokens_per_s is None or fit.tokens_per_s >= COMFORTABLE
        if fit.fits and fast and entry.parameters and (hardware.disk is None or files < hardware.disk):
            fitting.append(fit)
    if not fitting:
        return fits(catalog.models[catalog.default], hardware, n_ctx)
    return max(fitting, key=lambda fit: (round(fit.entry.parameters or 0), "coder" in fit.entry.name))


def _linux_cores() -> int:
    cores = set()
    for cpu in os.sched_getaffinity(0):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        cores.add(((topology / "physical_package_id").read_text(), (topology / "core_id").read_text()))
    return len(cores)


def _memory() -> tuple[int | None, int | None]:
    """Total and available."""
    with contextlib.suppress(OSError, ValueError, KeyError, AttributeError, subprocess.SubprocessError):
        if sys.platform == "linux":
            return _linux_memory()
        if sys.platform == "darwin":
            return _sysctl("hw.memsize"), _mac_available()
        if sys.platform == "win32":
            return _windows_memory()
    return None, None


def _linux_memory() -> tuple[int, int]:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    known = {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) > 1}
    total, available = known["MemTotal"], known["MemAvailable"]
    group = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        # Pages of files count as used but are given back when needed.
        cached = next(line for line in (group / "memory.stat").read_text().splitlines() if line.startswith("file "))
        total = min(total, limit)
        available = min(available, max(0, limit - used + int(cached.split()[1])))
    return total, available


def _sysctl(name: str) -> int | None:
    answer = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=3, check=False)
    return int(answer.stdout) if answer.stdout.strip().isdigit() else None


def _mac_available() -> int | None:
    answer = subprocess.run(["/usr/bin/vm_stat"], capture_output=True, text=True, timeout=3, check=False)
    return mac_available(answer.stdout)


def mac_available(vm_stat: str) -> int | None:
    """Bytes that vm_stat's report calls free, inactive, speculative or purgeable."""
    head, *lines = vm_stat.splitlines() or [""]
    digits = "".join(character for character in head if character.isdigit())
    pages = 0
    for line in lines:
        name, _, count = line.partition(":")
        if name in ("Pages free", "Pages inactive", "Pages speculative", "Pages purgeable"):
            pages += int(count.strip(" ."))
    return pages * int(digits) if digits else None


def _windows_memory() -> tuple[int, int]:
    class Status(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "page", "page_left", "virtual", "virtual_left", "extended")
        ]

    status = Status(length=ctypes.sizeof(Status))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):  # type: ignore[attr-defined,unused-ignore]
        raise OSError
    return status.total, status.available


def _windows_cores() -> int:
    kernel, per_core = ctypes.windll.kernel32, 0  # type: ignore[attr-defined,unused-ignore]
    length = ctypes.c_ulong(0)
    kernel.GetLogicalProcessorInformationEx(per_core, None, ctypes.byref(length))
    buffer = ctypes.create_string_buffer(length.value)
    if not kernel.GetLogicalProcessorInformationEx(per_core, buffer, ctypes.byref(length)):
        raise OSError
    count, at = 0, 0
    while at < length.value:  # each record starts with its kind and its size
        count += 1
        at += int.from_bytes(buffer.raw[at + 4 : at + 8], "little")
    return count


def _gpus() -> tuple[Gpu, ...]:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return ()
    query = [tool, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_gpus(answer.stdout)


def parse_gpus(listing: str) -> tuple[Gpu, ...]:
    """The cards in nvidia-smi's "name, total MiB, free MiB" lines; those that hide their memory are left out."""
    found = []
    for line in listing.splitlines():
        name, *sizes = (field.strip() for field in line.rsplit(",", 2))
        if len(sizes) == 2 and all(size.isdigit() for size in sizes):
            found.append(Gpu(name, int(sizes[0]) << 20, int(sizes[1]) << 20))
    return tuple(found)


def _free_disk(folder: Path) -> int | None:
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(place).free
    return None
