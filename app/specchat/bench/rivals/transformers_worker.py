"""The process in which transformers' own `generate` answers, on weights in the same NF4 as ours."""

import copy
import functools
import inspect
import os
import time
from typing import Any, Final, Literal, NoReturn

import msgspec

from specchat.bench.rivals.lines import Ask, Told, serve

_KEPT: Final = 4
"""Prompts whose keys and values are kept: as many as the longest chat has turns."""

Precision = Literal["bf16", "fp16", "fp32"]


class Start(msgspec.Struct, frozen=True):
    """The first line in: what to load."""

    target: str
    """A Hugging Face folder, as is the draft model."""
    draft: str | None
    device: Literal["cuda", "cpu"]
    precision: Precision
    threads: int
    end_of_generation: tuple[int, ...]
    """Ids that an answer ends with."""


def main() -> NoReturn:
    """Serves until stdin ends."""
    serve(Start, _Engine)


class _Engine:
    """The loaded models, and what the target did in the answer that runs."""

    def __init__(self, start: Start) -> None:
        # Nothing is fetched, and one tensor at a time is at full precision.
        os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DEACTIVATE_ASYNC_LOAD": "1"}
        import torch
        import transformers

        transformers.logging.disable_progress_bar()
        torch.set_num_threads(start.threads)
        self._torch, self._transformers = torch, transformers
        self._start = start
        self._ends = list(start.end_of_generation)
        self._model = self._loaded(start.target)
        self._draft = self._loaded(start.draft) if start.draft else None
        self._argument = _cache_argument(self._model)
        self._widths: list[int] = []
        """Tokens of each of the target's passes."""
        self._read: dict[tuple[int, ...], Any] = {}
        """Prompts → caches that hold all of them but the last token."""
        self._model.register_forward_pre_hook(self._count, with_kwargs=True)
        _go_on_from_caches(self._model, self._argument)

    def answer(self, ask: Ask) -> Told:
        """One answer; the prompt is in the KV cache before it is timed, but for its last token."""
        first_token_s = None
        if ask.cold or ask.prompt not in self._read:
            reading_s = self._read_prompt(ask.prompt)
            first_token_s = reading_s if ask.cold else None
        cache = copy.deepcopy(self._read[ask.prompt])
        tokens, seconds = self._generate(ask.prompt, ask.max_tokens, cache, self._how(ask))
        passes = len(self._widths)
        return Told(
            tokens=tuple(tokens),
            seconds=seconds,
            first_token_s=first_token_s,
            target_passes=passes,
            drafted=sum(self._widths) - passes,
            accepted=len(tokens) - passes,
        )

    def _loaded(self, folder: str) -> Any:  # noqa: ANN401 - the library is untyped
        library = self._transformers
        dtype = {"bf16": self._torch.bfloat16, "fp16": self._torch.float16, "fp32": self._torch.float32}
        four_bits = library.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype[self._start.precision],
        )
        model = library.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype[self._start.precision],
            quantization_config=four_bits,
            device_map={"": self._start.device},
            local_files_only=True,
        )
        model.generation_config = self._settings()
        return model.eval()

    def _settings(self) -> Any:  # noqa: ANN401
        """The library's own: what a folder recommends, a penalty say, is not what is asked of us."""
        return self._transformers.GenerationConfig(eos_token_id=self._ends, pad_token_id=self._ends[0])

    def _how(self, ask: Ask) -> dict[str, Any]:
        """What `generate` is given for this mode and sampling."""
        how: dict[str, Any] = {"do_sample": False}
        if ask.temperature > 0:
            self._torch.manual_seed(ask.seed)
            how = {"do_sample": True, "temperature": ask.temperature, "top_k": ask.top_k, "top_p": ask.top_p}
            how["min_p"] = ask.min_p
        kind, _, length = ask.mode.partition(":")
        if kind == "lookup":
            how["prompt_lookup_num_tokens"] = int(length)
        if kind == "draft":
            assert self._draft is not None
            how["assistant_model"] = self._draft
            self._draft.generation_config = self._settings()
            if length:
                self._draft.generation_config.num_assistant_tokens = int(length)
        return how

    def _read_prompt(self, prompt: tuple[int, ...]) -> float:
        """Keeps a cache that holds all but the last token; seconds until the token behind that was known."""
        cache, seconds = self._transformers.DynamicCache(config=self._model.config), 0.0
        if len(prompt) > 1:
            seconds = self._generate(prompt[:-1], 1, cache, {"do_sample": False})[1]
        while len(self._read) >= _KEPT:
            del self._read[next(iter(self._read))]
        self._read[prompt] = cache
        return seconds

    def _generate(
        self,
        prompt: tuple[int, ...],
        max_tokens: int,
        cache: Any,  # noqa: ANN401
        how: dict[str, Any],
    ) -> tuple[list[int], float]:
        """Ids, and seconds."""
        self._widths.clear()
        ids = self._torch.tensor([prompt], device=self._start.device)
        given = how | {self._argument: cache, "attention_mask": self._torch.ones_like(ids)}
        started = time.perf_counter()
        all_ids = self._model.generate(ids, max_new_tokens=max_tokens, **given)[0].tolist()
        return all_ids[len(prompt) :], time.perf_counter() - started

    def _count(self, _model: object, _positional: object, given: dict[str, Any]) -> None:
        self._widths.append(given["input_ids"].shape[1])


def _cache_argument(model: Any) -> str:  # noqa: ANN401
    """Before 5.24 the library called it `past_key_values`."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def _go_on_from_caches(model: Any, argument: str) -> None:  # noqa: ANN401
    """Has the first pass of every `generate` leave out what its cache holds: with drafts the library would read the
    prompt once more, behind itself."""
    usual = model.prepare_inputs_for_generation

    @functools.wraps(usual)  # the library reads its signature
    def prepared(input_ids: Any, *rest: Any, **given: Any) -> Any:  # noqa: ANN401
        held = given[argument].get_seq_length() if given.get(argument) is not None else 0
        if held and not rest and given.get("is_first_iteration") and given.get("next_sequence_length") is None:
            given["next_sequence_length"] = input_ids.shape[1] - held
        return usual(input_ids, *rest, **given)

    model.prepare_inputs_for_generation = prepared


if __name__ == "__main__":
    main()
