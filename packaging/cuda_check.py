"""Checks the torch engine on a machine with a CUDA card, in under eight minutes: is it right there, and is it fast?

    .venv/bin/python packaging/cuda_check.py [--target FOLDER [--draft FOLDER]]

Prints a line for each thing checked, and a verdict. Ends with 0 if all is well, with 1 if something is wrong or too
slow for speculation to pay, with 2 where there is no card. Speed is measured at the shapes of a 7B model and its 0.5B
sibling, whose files hold zeros and take next to no room on the disk; with --target in a real pair, too.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from made_models import HALF_B, SEVEN_B, Shape, hollow, randomised

from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import look
from specengine.backends.torch_nf4.options import TorchDevice

Verdict = Literal["ok", "slow", "wrong", ""]
WIDTHS: Final = range(1, 9)
_LIMIT_S: Final = 420
"""After so long no further part is begun."""
_PAYS: Final = 2.0
"""Times of one token that a pass of eight may take."""
_EXPECTED: Final = (0.6, 0.7, 0.8)
"""Shares of drafted tokens that are accepted, of the pairs that drafting is made for."""


@dataclass(frozen=True)
class Line:
    """One thing that was checked."""

    what: str
    found: str
    verdict: Verdict = ""


def main() -> int:
    """Runs all parts that there is time for; returns the exit status."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--target", type=Path, help="a Hugging Face folder to measure as well")
    asked.add_argument("--draft", type=Path, help="its draft model")
    given = asked.parse_args()
    found = look()
    why = refusals.not_installed(found) or refusals.device_refusal(found, "cuda")
    if why:
        print(f"This check needs a machine with a CUDA card: {why}.", file=sys.stderr)
        return 2
    assert found.card is not None
    print(f"{found.card.name}, {found.card.free / 2**30:.1f} GiB free; {found.in_words()}")
    with tempfile.TemporaryDirectory(prefix="specchat-cuda-") as made:
        target, draft = hollow(Path(made) / "7b", SEVEN_B), hollow(Path(made) / "0.5b", HALF_B)
        parts: list[tuple[str, Callable[[], Iterator[Line]]]] = [
            ("4-bit matrices", lambda: matrices("cuda", SEVEN_B)),
            ("graphs, random 0.5B", lambda: passes(randomised(Path(made) / "random", HALF_B), "cuda")),
            ("7B and 0.5B", lambda: pair(target, draft, "cuda")),
        ]
        if given.target:
            parts.insert(2, (f"graphs, {given.target.name}", lambda: passes(given.target, "cuda")))
            parts.append((given.target.name, lambda: pair(given.target, given.draft, "cuda", real=True)))
        return report(parts, time.monotonic() + _LIMIT_S)


def report(parts: Sequence[tuple[str, Callable[[], Iterator[Line]]]], until: float) -> int:
    """Prints the table as it is found, then the verdict; returns the exit status."""
    bad: list[Line] = []
    unchecked = []
    for title, part in parts:
        print(f"\n{title}")
        if time.monotonic() > until:
            print("  left out: no time")
            unchecked.append(title)
            continue
        try:
            for line in part():
                print(f"  {line.what:<34} {line.found:<70} {line.verdict}", flush=True)
                bad += [line] if line.verdict in ("slow", "wrong") else []
        except Exception as error:  # the other parts are worth their time
            bad.append(Line(title, str(error), "wrong"))
            print(f"  failed: {type(error).__name__}: {error}")
    wrong = [line.what for line in bad if line.verdict == "wrong"]
    slow = [line.what for line in bad if line.verdict == "slow"]
    says = [f"wrong: {', '.join(wrong)}"] if wrong else []
    says += [f"too slow: {', '.join(slow)}"] if slow else []
    says += [f"not checked: {', '.join(unchecked)}"] if unchecked else []
    print(f"\n{'; '.join(says) or 'All is well: right, and speculation pays.'}")
    return 1 if says else 0


def matrices(device: TorchDevice, shape: Shape) -> Iterator[Line]:
    """What products of a 4-bit matrix with 1 to 8 vectors take against one, and how far off they are."""
    import bitsandbytes as bnb
    import torch

    sizes = {
        "query, output": (shape.hidden, shape.hidden),
        "key, value": (shape.hidden * shape.kv_heads // shape.heads, shape.hidden),
        "gate, up": (shape.feed, shape.hidden),
        "down": (shape.hidden, shape.feed),
    }
    for name, (rows, columns) in sizes.items():
        weight = torch.randn(rows, columns, device=device, dtype=torch.bfloat16) * 0.02
        # As many as outgrow every cache, as a model's do.
        layers = []
        for _ in range(max(1, 200 * 10**6 // (rows * columns // 2)) if device == "cuda" else 1):
            layer = bnb.nn.Linear4bit(
                columns, rows, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta"
            ).eval()
            layer.weight = bnb.nn.Params4bit(
                weight.clone(), requires_grad=False, compress_statistics=True, quant_type="nf4"
            ).to(device)
            layers.append(layer)
        plain = bnb.functional.dequantize_4bit(layers[0].weight, layers[0].weight.quant_state).float()
        given = torch.randn(1, 8, columns, device=device, dtype=torch.bfloat16)
        with torch.inference_mode():
            expected = given.float() @ plain.T
            off = max(_difference(layers[0](given[:, :m]), expected[:, :m]) for m in WIDTHS)
            times = [_captured_s(layers, given[:, :m].contiguous()) / len(layers) for m in WIDTHS]
        ratios = " ".join(f"{one / times[0]:.2f}" for one in times)
        verdict: Verdict = "wrong" if off > 0.05 else "slow" if times[-1] > _PAYS * times[0] else "ok"
        yield Line(f"{name} {rows} × {columns}", f"{times[0] * 1e6:.0f} µs, × {ratios}; off by {off:.4f}", verdict)


def passes(folder: Path, device: TorchDevice, starts: Sequence[int] = (300, 900, 1900, 3800)) -> Iterator[Line]:
    """Passes of 1 to 8 tokens: do graphs, the engine's own eager pass and the library agree, and what do they take?"""
    import torch

    from specengine.backends.torch_nf4.few_tokens import FewTokens
    from specengine.backends.torch_nf4.graphs import Graphs
    from specengine.backends.torch_nf4.model import TorchModel
    from specengine.model_folder import read_folder

    precision = refusals.precision(look(), device)
    model = TorchModel(read_folder(folder), _options(max(starts) + 100, device, precision, draft=True))
    inner, own = model._model, model._few
    if inner is None or own is None:
        yield Line("own passes", "this model is left to the library")
        return
    with torch.inference_mode():
        eager = Graphs(FewTokens(inner, model._kv, static=device == "cuda"), capture=False)
    ways: dict[str, Graphs | None] = {"library": None, "eager": eager, "graph": own}
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(model.vocabulary.size, (max(starts) + 8,), generator=generator).tolist()
    for start in sorted(starts):
        for at in range(model.length, start, 100):
            model.forward(tokens[at : min(start, at + 100)], 0)
        rows: dict[tuple[str, int], Any] = {}
        seconds = {}
        for way, few in ways.items():
            model._few = few
            for width in WIDTHS:
                model.rollback(start)
                rows[way, width] = torch.from_numpy(model.forward(tokens[start : start + width], width).copy())
            model.rollback(start)
            seconds[way] = pass_s(model, 1)
        model._few = own
        model.rollback(start)
        for way, other, limit in (("graph", "eager", 0.02), ("eager", "library", 0.1)):
            off = max(_difference(rows[way, width], rows[other, width]) for width in WIDTHS)
            yield Line(f"{way} against {other}, at {start}", f"off by {off:.4f}", "wrong" if off > limit else "ok")
        found = ", ".join(f"{way} {one * 1e3:.2f} ms" for way, one in seconds.items())
        slow = device == "cuda" and seconds["graph"] > seconds["library"]
        yield Line(f"one token, at {start}", found, "slow" if slow else "ok")
    if device == "cuda":
        yield Line("graphs captured", str(own.count), "ok" if own.capture else "wrong")
    model.close()


def pair(target: Path, draft: Path | None, device: TorchDevice, real: bool = False) -> Iterator[Line]:
    """Memory as planned and as taken, what passes cost, and the rate of plain and speculative answers."""
    import torch

    from specengine.loading import load
    from specengine.protocol import Load

    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    request = Load(str(target), draft=str(draft) if draft else None, engine="torch", device=device, n_ctx=2048)
    engine = load(request, lambda *_: None, lambda: False)
    try:
        if draft and engine.model is None:
            yield Line("draft", str(engine.loaded.draft_refused), "wrong")
        engine.measure_costs(lambda: False)
        for speculation in ("off", "auto"):
            answer(engine, real, speculation, 16)
        if device == "cuda":
            folders = [target, *([draft] if draft else [])]
            yield from _memory(folders, device, torch.cuda.max_memory_allocated() - before)
        yield from _costs(engine)
        stats = {speculation: answer(engine, real, speculation, 128) for speculation in ("off", "auto")}
        plain, fast = (one.emitted / one.decode_s for one in stats.values())
        yield Line("plain", f"{plain:.1f} tokens/s")
        accepted = f"{stats['auto'].accepted} of {stats['auto'].drafted} accepted"
        verdict: Verdict = "ok" if fast > plain or device == "cpu" else "slow"
        yield Line("speculative", f"{fast:.1f} tokens/s, {fast / plain:.2f} × plain, {accepted}", verdict)
    finally:
        engine.close()


def answer(engine: Any, real: bool, speculation: Any, tokens: int) -> Any:  # noqa: ANN401
    """What one greedy answer took."""
    from specengine.controls import Controls
    from specengine.protocol import Chat, Done, Generate, Message, Raw
    from specengine.settings import Limits, Sampling

    question = "Write a Python class for a bounded queue with a lock, and explain each method."
    prompt = Chat((Message("user", question),)) if real else Raw("abcdefgh" * 40)
    gamma = None if real or speculation == "off" else 4
    asked = Generate(1, prompt, Sampling(temperature=0), Limits(tokens), speculation, gamma, lookup=real, aside=True)
    for event in engine.generate(asked, Controls(speculation=speculation, gamma=gamma)):
        if isinstance(event, Done):
            return event.stats
    raise AssertionError("no answer")


def pass_s(model: Any, width: int, repeats: int = 9) -> float:  # noqa: ANN401
    """Seconds of a pass, logits on the host included; the first, which may capture, doesn't count."""
    start, times = model.length, []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        model.forward([1] * width, width)
        times.append(time.perf_counter() - began)
        model.rollback(start)
    return statistics.median(times[1:])


def gain(accepted: float, verify: Sequence[float], draft: float) -> float:
    """The best speed-up over draft lengths 1 to 7 (Leviathan 2023, theorem 3.8, with measured costs of passes).

    Args:
        verify: costs of passes of 1 to 8 tokens, in passes of one.
        draft: cost of a draft step, in the same.
    """
    return max((1 - accepted ** (g + 1)) / (1 - accepted) / (g * draft + verify[g]) for g in range(1, len(verify)))


def _costs(engine: Any) -> Iterator[Line]:  # noqa: ANN401
    one = pass_s(engine.target, 1)
    verify = [pass_s(engine.target, width) / one for width in WIDTHS]
    yield Line("passes of 1 to 8", f"{one * 1e3:.2f} ms, × " + " ".join(f"{cost:.2f}" for cost in verify))
    if engine.model is None:
        return
    draft = pass_s(engine.model.model, 1) / one
    yield Line("draft step", f"{draft:.3f} of a target pass")
    gains = [gain(accepted, verify, draft) for accepted in _EXPECTED]
    found = ", ".join(f"{best:.2f} × at {accepted:.0%}" for best, accepted in zip(gains, _EXPECTED, strict=True))
    yield Line("to be expected of drafts", found, "ok" if gains[1] > 1 else "slow")


def _memory(folders: Sequence[Path], device: TorchDevice, peak: int) -> Iterator[Line]:
    from specengine.backends.torch_nf4.plan import plan
    from specengine.model_folder import read_folder

    precision = refusals.precision(look(), device)
    planned = sum(
        plan(read_folder(folder), precision, device, quantised_head=folder is not folders[0]).needed(2048)
        for folder in folders
    )
    found = f"planned {planned / 2**30:.2f} GiB, at most {peak / 2**30:.2f} GiB taken"
    yield Line("memory", found, "ok" if peak <= 1.1 * planned else "wrong")


def _options(n_ctx: int, device: TorchDevice, precision: Any, draft: bool) -> Any:  # noqa: ANN401
    from specengine.backends.torch_nf4.options import TorchOptions

    return replace(TorchOptions(n_ctx, device, precision), quantised_head=draft)


def _difference(one: Any, other: Any) -> float:  # noqa: ANN401
    """The largest, as a part of the spread of what it is compared with; 0 where both are all the same."""
    spread = float(other.float().std())
    return float((one.float() - other.float()).abs().max()) / (spread or 1.0)


def _captured_s(layers: Sequence[Any], given: Any) -> float:  # noqa: ANN401
    """Seconds of one call of each layer; on a card as a graph, since launching takes longer than these kernels."""
    import torch

    def call() -> None:
        for layer in layers:
            layer(given)

    call()
    if not given.is_cuda:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times[2:])


if __name__ == "__main__":
    sys.exit(main())
