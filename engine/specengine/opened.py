"""What a runtime hands over when it has loaded a target and, where there is one, its draft model."""

from collections.abc import Callable
from dataclasses import dataclass

from specengine.language_model import LanguageModel

Progress = Callable[[str, float], None]
"""Is told what is being loaded, and how much of it (0 to 1)."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Loaded models, and what there is to say about them."""

    target: LanguageModel
    draft: LanguageModel | None
    draft_refused: str | None
    """Why the wanted draft model is not used, in one sentence."""
    backend: str
    device: str
    """Where the weights are, in words."""
    versions: str
    """The packages that compute, with their versions."""
    conditions: str
    """What pass costs depend on besides those and the model files: device, precision, threads."""
    notices: tuple[str, ...]
    n_ctx_trained: int | None
    """Longest context that the target was trained for."""
    kv_share: float
    """Bytes of the target's KV cache a token, in units of the bytes of its weights: how much more a pass has to read
    for each token behind it."""

    def close(self) -> None:
        """Frees the models."""
        self.target.close()
        if self.draft is not None:
            self.draft.close()
