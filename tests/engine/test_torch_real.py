"""A real pair in torch, in four bits, on the processor: speculation saves passes and leaves the text as it is."""

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bitsandbytes.functional import has_avx512bf16

from decoding import answer, flat_costs
from dequantised import folder_of
from specengine.engine import Engine
from specengine.gamma import Gamma
from specengine.loading import load
from specengine.protocol import Chat, Load, Message
from specengine.settings import Limits, Sampling

RealModel = Callable[[str], Path]

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]

GREEDY = Sampling(temperature=0)
EDIT = "Rename the variable `text` to `words` in this code and write out all of it:\n\n"


@contextmanager
def opened(model: Path, draft: Path | None = None) -> Iterator[Engine]:
    """Loaded as the program loads it, but with costs that make speculation pay at any width."""
    request = Load(
        str(model),
        draft=str(draft) if draft else None,
        engine="torch",
        device="cpu",
        n_ctx=2048,
        kept_dir=str(model.parent / "four-bits"),
    )
    engine = load(request, lambda *_: None, lambda: False)
    engine.gamma = Gamma(flat_costs())
    try:
        yield engine
    finally:
        engine.close()


def test_an_edit_by_lookup_is_the_plain_text_in_a_third_of_the_passes(real_model: RealModel) -> None:
    with opened(folder_of(real_model("qwen2.5-coder-1.5b"))) as engine:
        assert engine.loaded.backend == "torch, NF4"
        assert engine.loaded.notices == ()
        chat = Chat((Message("user", EDIT + inspect.getsource(textwrap.dedent)[:1200]),))
        limits = Limits(max_tokens=120)
        plain = answer(engine, chat, GREEDY, limits=limits)
        fast = answer(engine, chat, GREEDY, limits=limits, lookup=True, gamma=7)
        assert "words" in plain.text
        assert fast.stats.target_passes < plain.stats.target_passes / 3
        if has_avx512bf16():  # elsewhere a pass's arithmetic depends on its width
            assert fast.tokens == plain.tokens


def test_a_small_sibling_drafts_what_stands(real_model: RealModel) -> None:
    small = folder_of(real_model("qwen2.5-coder-0.5b"))
    with opened(small, small) as engine:
        assert engine.loaded.draft is not None
        chat = Chat((Message("user", "Write a Python function that counts the words in a file."),))
        limits = Limits(max_tokens=48)
        plain = answer(engine, chat, GREEDY, limits=limits)
        fast = answer(engine, chat, GREEDY, limits=limits, draft=True, gamma=4)
        # The draft's head is in four bits and the target's is not, so a few tokens differ.
        assert fast.stats.accepted > 0.8 * fast.stats.drafted > 0
        if has_avx512bf16():
            assert fast.tokens == plain.tokens
