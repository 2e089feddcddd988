"""FLOP and bytes of scaled dot product attention.

With batch b, query heads h, query length q, key length k, head sizes d (query, key) and e (value):
forward FLOP = 2·b·h·q·k·(d + e), the two products; backward 2.5 times that (five products: the scores again, and the
gradients of value, scores, query and key). A causal mask with q = k leaves (q + 1) / 2q of the scores; other causal
masks and sequences of varying length are not counted. Softmax and dropout are left out.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from traceanalyze.model.op_calls import Call, Shape

Amounts = tuple[int | None, int | None]


class _Variant(NamedTuple):
    """Where an operator has its arguments."""

    query: int
    """Position of the query; key and value follow."""
    causal: int
    """Position of the causal flag or, for memory-efficient attention, of the mask type (0 none, 1 and 2 causal)."""
    heads_last: bool
    """Layout [b, length, h, d] instead of [b, h, length, d]."""


_VARIANTS = {
    "_scaled_dot_product_flash_attention": _Variant(0, 4, heads_last=False),
    "_scaled_dot_product_flash_attention_for_cpu": _Variant(0, 4, heads_last=False),
    "_scaled_dot_product_efficient_attention": _Variant(0, 6, heads_last=False),
    "_scaled_dot_product_cudnn_attention": _Variant(0, 6, heads_last=False),
    "_flash_attention_forward": _Variant(0, 8, heads_last=True),
    "_efficient_attention_forward": _Variant(0, 9, heads_last=True),
    "_cudnn_attention_forward": _Variant(0, 10, heads_last=False),
    "_scaled_dot_product_flash_attention_backward": _Variant(1, 11, heads_last=False),
    "_scaled_dot_product_efficient_attention_backward": _Variant(1, 11, heads_last=False),
    "_scaled_dot_product_cudnn_attention_backward": _Variant(1, 14, heads_last=False),
    "_flash_attention_backward": _Variant(1, 11, heads_last=True),
    "_efficient_attention_backward": _Variant(1, 14, heads_last=True),
    "_cudnn_attention_backward": _Variant(1, 14, heads_last=False),
}
_BACKWARD = 5
"""Products of a backward call, as against two of a forward one."""


def attention(call: Call) -> Amounts | None:
    """FLOP and bytes of an attention call, None if the call is none."""
    variant = _VARIANTS.get(call.op)
    if variant is None:
        return None
    query, key, value = (_sizes(call.shape(variant.query + i), variant) for i in range(3))
    if query is None or key is None or value is None:
        return None, None
    scores = _scores(query[2], key[2], _causal(call, variant))
    backward = variant.query == 1
    flop = None
    if scores is not None:
        forward = 2 * query[0] * query[1] * scores * (query[3] + value[3])
        flop = forward * _BACKWARD // 2 if backward else forward
    return flop, _bytes(call, variant, value[3], backward=backward)


def _sizes(shape: Shape, variant: _Variant) -> Shape | None:
    """Batch, heads, length, head size."""
    if len(shape) != 4:
        return None
    batch, a, b, size = shape
    return (batch, b, a, size) if variant.heads_last else (batch, a, b, size)


def _causal(call: Call, variant: _Variant) -> bool | None:
    text = call.value(variant.causal)
    return {"True": True, "1": True, "2": True, "False": False, "0": False}.get(text or "")


def _scores(queries: int, keys: int, causal: bool | None) -> int | None:
    """Pairs of query and key that attend to each other."""
    if causal is None or (causal and queries != keys):
        return None
    return queries * (queries + 1) // 2 if causal else queries * keys


def _bytes(call: Call, variant: _Variant, value_size: int, *, backward: bool) -> int | None:
    """Query, key and value read, the output written; backward reads output and gradient too and writes three."""
    first = variant.query
    each = call.element(first)
    if each is None:
        return None
    query, key, value = (prod(call.shape(first + i)) for i in range(3))
    output = query // call.shape(first)[-1] * value_size if call.shape(first)[-1] else 0
    given = query + key + value
    return each * (2 * given + 2 * output if backward else given + output)
