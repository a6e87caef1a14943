"""Attention for few queries over a long cache, with grouped heads, registered with transformers under a name of ours.

The library's own sdpa path builds a 4D mask for every pass of two tokens and more over a cache, and then copies keys
and values once per group of heads, since torch's kernels take no mask with grouped heads. Here the queries of a group
are laid behind each other instead, as if they were queries of one head: nothing is copied but the queries.
"""

from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

NAME: Final = "specchat"


def attention(
    module: torch.nn.Module,  # noqa: ARG001 - given by the library
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Causal attention of the last positions; what the library calls in every layer.

    Args:
        query: shape (1, heads, q, head dimension).
        key: shape (1, KV heads, kv, head dimension), the queries' own positions last.
        attention_mask: true where a query sees a key, shape (1, 1, q, kv); None is plain causal.
        softcap: bound of the scores, where the model has one.

    Returns:
        The mixed values, shape (1, q, heads, head dimension).
    """
    heads, q, dim = query.shape[1:]
    kv_heads, kv = key.shape[1], key.shape[2]
    groups = heads // kv_heads
    if q == kv and attention_mask is None and softcap is None:
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling, enable_gqa=groups > 1)
        return out.transpose(1, 2), None
    mask = attention_mask
    if mask is None and q > 1:
        mask = causal_mask(q, kv, query.device)
    packed = query.reshape(1, kv_heads, groups * q, dim)
    if mask is not None and groups > 1:
        mask = mask.repeat(1, 1, groups, 1)
    if softcap is None:
        out = F.scaled_dot_product_attention(packed, key, value, attn_mask=mask, scale=scaling)
    else:
        out = _capped(packed, key, value, mask, dim**-0.5 if scaling is None else scaling, softcap)
    return out.reshape(1, heads, q, dim).transpose(1, 2), None


def causal_mask(q: int, kv: int, device: torch.device) -> torch.Tensor:
    """True where one of the last `q` positions sees one of all `kv`, shape (1, 1, q, kv)."""
    return torch.ones((1, 1, q, kv), dtype=torch.bool, device=device).tril(kv - q)


def _capped(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float,
) -> torch.Tensor:
    scores = torch.tanh(query @ key.transpose(2, 3) * (scaling / softcap)) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1, dtype=torch.float32).to(value.dtype) @ value


def _mask(
    *,
    q_length: int,
    kv_length: int,
    local_size: int | None = None,
    **given: Any,  # noqa: ANN401 - whatever this release passes on
) -> torch.Tensor | None:
    """A mask only where a layer sees less than all before it: a window that the cache has outgrown."""
    if local_size is None or kv_length <= local_size:
        return None
    given["allow_is_causal_skip"] = False
    mask: torch.Tensor | None = sdpa_mask(q_length=q_length, kv_length=kv_length, local_size=local_size, **given)
    return mask


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, _mask)
