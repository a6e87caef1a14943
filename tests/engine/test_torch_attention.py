"""Attention of the torch engine: what the library's own eager path computes, for every shape that a pass has."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from transformers.models.llama.modeling_llama import eager_attention_forward

from specengine.backends.torch_nf4 import attention

GROUPS = (1, 2, 3, 7, 8)
"""Heads that share keys and values: none, then as SmolLM2, Qwen2.5 and Qwen3 have them."""
SHAPES = [(q, kv) for q in (*range(1, 10), 16, 33, 40) for kv in (q, q + 1, q + 2, q + 7, 64, 130) if kv >= q]


def states(groups: int, q: int, kv: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Queries, and keys and values as views of longer buffers."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(1, 2 * groups, q, 16, generator=generator)
    key, value = (torch.randn(1, 2, kv + 9, 16, generator=generator)[:, :, :kv] for _ in range(2))
    return query, key, value


def eager(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """The library's plain matrices and softmax over a mask that is written out."""
    module = SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], training=False)
    mask = torch.zeros(visible.shape).masked_fill(~visible, float("-inf"))
    mixed: torch.Tensor = eager_attention_forward(module, query, key, value, mask, scaling=0.3)[0]
    return mixed


def causal(q: int, kv: int) -> torch.Tensor:
    return torch.tensor([[[[place <= kv - q + row for place in range(kv)] for row in range(q)]]])


@pytest.mark.parametrize("groups", GROUPS)
def test_it_is_the_librarys_eager_attention(groups: int) -> None:
    for q, kv in SHAPES:
        query, key, value = states(groups, q, kv)
        expected = eager(query, key, value, causal(q, kv))
        found, weights = attention.attention(torch.nn.Module(), query, key, value, None, scaling=0.3)
        assert weights is None
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0, msg=f"{q} of {kv}")


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("way", [attention.bottom_right, attention.packed])
def test_each_way_for_itself_is_right_for_every_shape(way: Callable[..., torch.Tensor], groups: int) -> None:
    """What a graphics card takes is checked here on the processor, where it means the same."""
    for q, kv in SHAPES:
        query, key, value = states(groups, q, kv)
        expected = eager(query, key, value, causal(q, kv)).transpose(1, 2)
        torch.testing.assert_close(way(query, key, value, scaling=0.3), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("groups", GROUPS)
def test_a_window_is_respected(groups: int) -> None:
    for q, kv in SHAPES:
        query, key, value = states(groups, q, kv)
        rows, places = torch.arange(kv - q, kv)[:, None], torch.arange(kv)[None]
        visible = ((places <= rows) & (places > rows - 5))[None, None]
        found, _ = attention.attention(torch.nn.Module(), query, key, value, visible, scaling=0.3)
        torch.testing.assert_close(found, eager(query, key, value, visible), atol=1e-5, rtol=0)


def test_a_bound_on_the_scores_is_respected() -> None:
    query, key, value = states(3, 5, 12)
    scores = torch.einsum("hqd,hkd->hqk", query[0], key[0].repeat_interleave(3, 0)) * 0.3
    scores = (2.0 * torch.tanh(scores / 2.0)).masked_fill(~causal(5, 12)[0], float("-inf"))
    expected = torch.einsum("hqk,hkd->qhd", scores.softmax(-1), value[0].repeat_interleave(3, 0))
    found, _ = attention.attention(torch.nn.Module(), query, key, value, None, scaling=0.3, softcap=2.0)
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=0)
