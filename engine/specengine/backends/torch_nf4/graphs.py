"""Passes of few tokens on a card, captured as CUDA graphs.

A small model's token is some hundred launches of kernels, which take the processor several times as long as the card
takes for the work. A graph launches them all at once.
"""

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import torch
from transformers import PreTrainedModel

from specengine.backends.torch_nf4.few_tokens import WIDEST, FewTokens, Shape
from specengine.language_model import Rows

_WARM_UPS: Final = 2
"""Passes before a capture: libraries make their workspaces in the first, which no graph may hold."""
_AGREE: Final = 0.02
"""Largest difference of a graph's logits from the eager pass's, as a part of the logits' spread."""
_log = logging.getLogger(__name__)


class Graphs:
    """Runs passes by graphs, each captured when its shape first comes up; without CUDA, or where capturing failed, by
    the very same function."""

    def __init__(self, few: FewTokens, capture: bool) -> None:
        self._few = few
        self.capture = capture
        """Whether shapes that come up are captured. Turned off by the first that can't be."""
        self._captured: dict[Shape, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None
        self._logits: torch.Tensor | None = None
        """What all graphs write to."""
        self._host: torch.Tensor | None = None
        """Where a card copies its logits to by itself; elsewhere its driver would copy them once more."""

    @property
    def model(self) -> PreTrainedModel:
        """What passes run through."""
        return self._few.model

    def forward(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        """fp32 logits of the last `rows` positions, valid until the next pass; the cache's length stays as it is."""
        shape = self._few.place(tokens, rows)
        if self.capture and shape not in self._captured:
            self._try_to_capture(shape)
        graph = self._captured.get(shape)
        if graph is None or self._logits is None:
            return self._few.run(shape)
        graph.replay()
        return self._logits[:rows]

    def on_host(self, logits: torch.Tensor) -> Rows:
        """The numbers, valid until the next pass."""
        if logits.is_cuda:
            if self._host is None:
                self._host = torch.empty((WIDEST, logits.shape[1]), pin_memory=True)
            logits = self._host[: len(logits)].copy_(logits)
        rows: Rows = logits.numpy()
        return rows

    @property
    def count(self) -> int:
        """Graphs that were captured."""
        return len(self._captured)

    def _try_to_capture(self, shape: Shape) -> None:
        usual = torch.cuda.current_stream() if torch.cuda.is_available() else None
        try:
            expected = self._warmed_up(shape)
            graph, logits = self._capture(shape, expected)
            graph.replay()
            if not agree(logits, expected):
                raise RuntimeError("their logits are not those of the eager pass")
        except RuntimeError as error:
            if usual is not None:
                torch.cuda.set_stream(usual)  # a capture that fails leaves its own behind
            _log.warning("passes run without CUDA graphs: %s", str(error).strip().partition("\n")[0])
            self.capture = False
            self._captured.clear()
            return
        self._captured[shape] = graph

    def _warmed_up(self, shape: Shape) -> torch.Tensor:
        """The eager pass's logits. Repeating a pass changes nothing: it writes the same to the same places."""
        side = _side_stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                expected = self._few.run(shape)
        torch.cuda.current_stream().wait_stream(side)
        return expected

    def _capture(self, shape: Shape, like: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        if self._logits is None:
            self._logits = like.new_empty((WIDEST, like.shape[1]))
        logits = self._logits[: shape.rows]
        graph = torch.cuda.CUDAGraph()
        # Other threads may be at work on the card, loading a model say: only what this one does is captured.
        with torch.cuda.graph(graph, self._pool, _side_stream(), capture_error_mode="thread_local"):
            logits.copy_(self._few.run(shape))
        self._pool = graph.pool()
        return graph, logits


def agree(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether a graph's logits are those of the eager pass; what is no number agrees with nothing."""
    return bool((found - expected).abs().max() <= _AGREE * expected.std())


@cache
def _side_stream() -> torch.cuda.Stream:
    """Where passes are warmed up and captured. One for all: a library keeps a workspace for each stream it ever saw."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]
