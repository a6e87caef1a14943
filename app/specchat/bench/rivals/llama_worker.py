"""The process in which llama-cpp-python's own `Llama` answers.

Apart from ours, because two users of the library in one process would share its log, its backend and its memory.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from specchat.bench.rivals.lines import Ask, Told, serve

if TYPE_CHECKING:
    from llama_cpp.llama_speculative import LlamaDraftModel

_GGML_TYPE_BF16: Final = 30

_Ids = npt.NDArray[np.intc]


class Start(msgspec.Struct, frozen=True):
    """The first line in: what to load."""

    model: str
    n_ctx: int
    threads: int
    gpu_layers: int
    bf16: bool
    lookup: tuple[int, int] | None
    """`num_pred_tokens` and `max_ngram_size` of its prompt lookup; None for plain decoding."""


def main() -> NoReturn:
    """Serves until stdin ends."""
    serve(Start, _Engine)


class _Engine:
    """A loaded `Llama`, and what it did in the answer that runs."""

    def __init__(self, start: Start) -> None:
        import llama_cpp  # before our backends, which would say how its threads wait

        from specengine.backends.amx import amx_refused

        self._drafts: list[tuple[int, list[int]]] = []
        """Where each draft of the answer began, in tokens from the start of the prompt, and what it was."""
        self._widths: list[int] = []
        """Tokens of each pass of the answer."""
        self._read: tuple[int, ...] = ()
        self._c = llama_cpp
        kv_type, widths = _GGML_TYPE_BF16 if start.bf16 else None, self._widths

        class Watched(llama_cpp.Llama):
            def eval(self, tokens: Sequence[int]) -> None:
                widths.append(len(tokens))
                super().eval(tokens)

        with amx_refused():
            self._llama = Watched(
                model_path=start.model,
                n_ctx=start.n_ctx,
                n_threads=start.threads,
                n_threads_batch=start.threads,
                n_gpu_layers=start.gpu_layers,
                flash_attn=True,
                type_k=kv_type,
                type_v=kv_type,
                # Without it a draft model writes past the scores of a prompt longer than a batch.
                logits_all=start.lookup is not None,
                draft_model=self._watched_draft(*start.lookup) if start.lookup else None,
                verbose=False,
            )

    def answer(self, ask: Ask) -> Told:
        """One answer; the prompt is in the KV cache before it is timed, but for its last token."""
        first_token_s = None
        if ask.cold:
            self._llama.n_tokens = 0
        if ask.cold or ask.prompt != self._read:
            reading_s = self._generate(msgspec.structs.replace(ask, max_tokens=1))[1]
            first_token_s = reading_s if ask.cold else None
            self._read = ask.prompt
        # With all of the prompt and no more in its cache, Llama would take the first token without a pass.
        self._llama.n_tokens = min(self._llama.n_tokens, len(ask.prompt) - 1)
        tokens, reading_s, seconds = self._generate(ask)
        emitted = [*ask.prompt, *tokens]
        return Told(
            tokens=tuple(tokens),
            seconds=seconds,
            first_token_s=first_token_s,
            reading_s=reading_s if self._widths[0] > 1 else None,
            target_passes=len(self._widths),
            drafted=sum(len(draft) for _, draft in self._drafts),
            accepted=sum(_agreeing(draft, emitted[start:]) for start, draft in self._drafts),
        )

    def _generate(self, ask: Ask) -> tuple[list[int], float, float]:
        """Ids, seconds to the first of them, seconds to the last."""
        self._drafts.clear()
        self._widths.clear()
        self._llama.set_seed(ask.seed)
        ends = self._c.llama_vocab_is_eog
        vocabulary = self._c.llama_model_get_vocab(self._llama.model)
        tokens: list[int] = []
        started = time.perf_counter()
        first = started
        for token in self._llama.generate(
            ask.prompt, temp=ask.temperature, top_k=ask.top_k, top_p=ask.top_p, min_p=ask.min_p
        ):
            if not tokens:
                first = time.perf_counter()
            tokens.append(int(token))
            if len(tokens) == ask.max_tokens or ends(vocabulary, token):
                break
        return tokens, first - started, time.perf_counter() - started

    def _watched_draft(self, num_pred_tokens: int, max_ngram_size: int) -> "LlamaDraftModel":
        from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

        drafts = self._drafts

        class Watched(LlamaPromptLookupDecoding):
            def __call__(self, input_ids: _Ids, /, **options: object) -> _Ids:
                draft = super().__call__(input_ids, **options)
                drafts.append((len(input_ids), draft.tolist()))
                return draft

        return Watched(max_ngram_size=max_ngram_size, num_pred_tokens=num_pred_tokens)


def _agreeing(draft: Sequence[int], emitted: Sequence[int]) -> int:
    """How many tokens of a draft were emitted."""
    shorter = min(len(draft), len(emitted))
    return next((i for i in range(shorter) if draft[i] != emitted[i]), shorter)


if __name__ == "__main__":
    main()
