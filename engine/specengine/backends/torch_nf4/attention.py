"""Attention for few queries over a long cache, with grouped heads, registered with transformers under a name of ours.

The library's own sdpa path builds a 4D mask for every pass of two tokens and more over a cache, and copies keys and
values once per group of heads. Here no key and no value is copied. On a card that has flash attention there is no mask
either. Elsewhere the queries of a group are laid behind each other, as if they were queries of one head: on a processor
a verifying pass of 8 tokens over 4,096 takes a sixth of the time that the copies take.

On a processor keys and values come padded to whole blocks, hidden by the mask: only so a position's sums are made of
the same steps whatever else is in the pass, and text is the same with and without speculation.
"""

from functools import cache
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch.nn.attention.bias import causal_lower_right
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

NAME: Final = "specchat"
_FLASH_ATTENTION: Final = (8, 0)
"""Oldest compute capability with flash attention."""
_FEW: Final = 128
"""Queries, at most, of passes whose logits are compared. With more, a processor is faster on heads as they are."""


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
    q, kv = query.shape[2], key.shape[2]
    if softcap is not None:
        out = packed(query, key, value, attention_mask, scaling, softcap)
    elif attention_mask is None and q == kv:
        out = _grouped(query, key, value, scaling, is_causal=True)
    elif attention_mask is None and q > 1 and _has_flash_attention(query.device, query.dtype):
        out = bottom_right(query, key, value, scaling)
    elif q > _FEW and not query.is_cuda:
        mask = causal_mask(q, kv, query.device) if attention_mask is None else attention_mask
        out = _grouped(query, key, value, scaling, attn_mask=mask)
    else:
        out = packed(query, key, value, attention_mask, scaling)
    return out.transpose(1, 2), None


def bottom_right(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None = None
) -> torch.Tensor:
    """Causal attention without a mask in memory, where the kernel aligns to the last key; shape as `query`."""
    return _grouped(query, key, value, scaling, attn_mask=causal_lower_right(query.shape[2], key.shape[2]))


def packed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    scaling: float | None = None,
    softcap: float | None = None,
) -> torch.Tensor:
    """Causal attention with the queries of a group as queries of one head; shape as `query`."""
    q = query.shape[2]
    if mask is None and q > 1:
        mask = causal_mask(q, key.shape[2], query.device)
    if mask is not None:
        mask = mask_of_groups(mask, query.shape[1] // key.shape[1])
    return in_groups(query, key, value, mask, scaling, softcap)


def mask_of_groups(mask: torch.Tensor, groups: int) -> torch.Tensor:
    """The mask of queries that are laid behind each other, so many heads of them."""
    return mask.repeat(1, 1, groups, 1) if groups > 1 else mask


def in_groups(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
) -> torch.Tensor:
    """As `packed`.

    Args:
        mask: as `mask_of_groups` makes it, or what is added to the scores; None hides nothing.
    """
    heads, q, dim = query.shape[1:]
    few = query.reshape(1, key.shape[1], -1, dim)
    if softcap is None:
        out = F.scaled_dot_product_attention(few, key, value, attn_mask=mask, scale=scaling)
    else:
        out = _capped(few, key, value, mask, dim**-0.5 if scaling is None else scaling, softcap)
    return out.reshape(1, heads, q, dim)


def causal_mask(q: int, kv: int, device: torch.device) -> torch.Tensor:
    """True where one of the last `q` positions sees one of all `kv`, shape (1, 1, q, kv)."""
    return torch.ones((1, 1, q, kv), dtype=torch.bool, device=device).tril(kv - q)


def _grouped(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float | None,
    **how: Any,  # noqa: ANN401
) -> torch.Tensor:
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, scale=scaling, enable_gqa=grouped, **how)


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


@cache
def _has_flash_attention(device: torch.device, dtype: torch.dtype) -> bool:
    half = dtype in (torch.bfloat16, torch.float16)
    return half and device.type == "cuda" and torch.cuda.get_device_capability(device) >= _FLASH_ATTENTION


def _mask(
    *,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    local_size: int | None = None,
    **given: Any,  # noqa: ANN401 - whatever this release passes on
) -> torch.Tensor | None:
    """A mask where keys are padded, or a layer sees less than all before it: a window that the cache has outgrown."""
    if kv_length == q_offset + q_length and (local_size is None or kv_length <= local_size):
        return None
    given["allow_is_causal_skip"] = False
    mask: torch.Tensor | None = sdpa_mask(
        q_length=q_length, kv_length=kv_length, q_offset=q_offset, local_size=local_size, **given
    )
    return mask


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, _mask)
