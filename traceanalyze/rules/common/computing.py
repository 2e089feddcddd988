"""Compute kernels of the windows and the operators that launched them, for the rules about kernels."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.op_calls import listed_shapes
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.replay.parts import less
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.replay import saved
from traceanalyze.rules.rule import Evidence, Facts, Finding, Scope, measured, picked

_LISTS = json.JSONDecoder(strict=False)
PRODUCTS = KernelGroup.MATMUL, KernelGroup.CONVOLUTION
FUSIBLE = (KernelGroup.ELEMENTWISE, KernelGroup.REDUCTION, KernelGroup.NORMALIZATION, KernelGroup.SOFTMAX)
"""Kernels that read and write memory and compute little, as a compiler would join them."""
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Computing:
    """Compute kernels of the headline device that begin in the windows, by start; one row a kernel. Times int64 ns."""

    event: NDArray[np.int64]
    """Position in `Context.device`."""
    row: Rows
    """Row in `Trace.events`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: NDArray[np.int64]
    """Duration of each kernel."""
    name: NDArray[np.int32]
    op: Rows
    """Place of the operator in `Context.op_nest`, -1 for none: the innermost, of a library's call (`aclnnMm`, which has
    no shapes) the operator that made it (`aten::mm`)."""
    op_row: NDArray[np.int32]
    """Its event row, -1 for none."""
    op_name: NDArray[np.int32]
    """Code of its name; of the kernel's where there is none."""
    group: NDArray[np.uint8]
    """`KernelGroup`"""
    tensor_core: NDArray[np.uint8]
    """`TensorCore`"""

    def __len__(self) -> int:
        return len(self.event)

    def spans(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, 2) intervals of some kernels."""
        return picked(self.start, self.end, chosen)


def computing(facts: Facts) -> Computing:
    """The compute kernels of a rank; use with `Facts.once`."""
    context = facts.context
    device, work = context.device, context.once(device_work)
    chosen = np.flatnonzero((facts.headline(DeviceClass.COMPUTE) & facts.inside(device.start))[work.event])
    event = work.event[chosen].astype(np.int64)
    start, end, op = device.start[event], device.end[event], dispatched(facts, context.event_op[event])
    op_row, name = context.op_nest.rows(op), device.name[event]
    return Computing(
        event=event,
        row=device.row[event],
        start=start,
        end=end,
        time=end - start,
        name=name,
        op=op,
        op_row=op_row,
        op_name=np.where(op_row >= 0, context.trace.events.name[op_row], name),
        group=work.group[chosen],
        tensor_core=work.tensor_core[chosen],
    )


def alone_time(facts: Facts) -> NDArray[np.int64]:
    """Time of each kernel with no other compute kernel of its device beside it; use with `Facts.once`."""
    work = facts.once(computing)
    end = np.minimum(work.end[1:], np.maximum.accumulate(work.end)[:-1])
    beside = end > work.start[1:]
    several = intervals.merge(work.start[1:][beside], end[beside])
    return work.time - intervals.coverage(several, work.start, work.end)


def dispatched(facts: Facts, op: Rows) -> Rows:
    """Of calls of a library, recorded as operators without a namespace (Ascend), the operators that made them."""
    nest, trace = facts.context.op_nest, facts.context.trace
    if trace.origin.format != "ascend" or not len(nest):
        return op
    names = trace.events.name[nest.row]
    parent = np.where(op >= 0, nest.parent[np.maximum(op, 0)], -1)
    under = (parent >= 0) & ~fits(facts, names[np.maximum(op, 0)], "::")
    return np.where(under & fits(facts, names[np.maximum(parent, 0)], r"^\w+::\w+$"), parent, op)


def part_of_compute(facts: Facts, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> float:
    """Time of some kernels over that of all compute kernels."""
    work = facts.once(computing)
    total = int(work.time.sum())
    return int(work.time[chosen].sum()) / total if total else 0.0


def matters(facts: Facts, chosen: NDArray[np.bool_] | NDArray[np.int64], change: Change, share: float) -> bool:
    """Whether some kernels take such a part of compute, or the step loses it to launching them."""
    if part_of_compute(facts, chosen) >= share:
        return True
    idle = facts.share(facts.amount_of("idle") or 0)
    return idle >= share and facts.share(saved(facts, change)) >= share


def fits(facts: Facts, codes: NDArray[np.int32], pattern: str) -> NDArray[np.bool_]:
    """Whether texts, by their codes, match somewhere."""
    return facts.context.trace.strings.matches(codes, sought(pattern))


@lru_cache(maxsize=256)
def sought(pattern: str) -> Callable[[str], object]:
    """Whether a name matches somewhere: asked of each name once, as those of many ranks are the same."""
    search = re.compile(pattern).search
    return lru_cache(maxsize=1024)(lambda name: search(name) is not None)


def kernels_of(facts: Facts, op: str, shapes: str) -> NDArray[np.int64]:
    """Kernels (rows of `Computing`) that an operator launched, with shapes as the table of operators writes them."""
    return facts.once(_by_op).get((op, shapes), _NO_ROWS)


def _by_op(facts: Facts) -> dict[tuple[str, str], NDArray[np.int64]]:
    """The same by operator and shapes, and by what the table of kernels of an Ascend profile says of both."""
    work, events, text = facts.once(computing), facts.context.trace.events, facts.context.trace.strings.text
    found: dict[tuple[str, str], list[NDArray[np.int64]]] = {}
    for name, row, field, shapes in (
        (work.op_name, work.op_row, "shapes", shapes_of),
        (events.numbers("op_type", work.row, -1), work.row, "kernel_shapes", listed_shapes),
    ):
        code = events.numbers(field, row, -1)
        rows = np.flatnonzero((row >= 0) & (name >= 0) & (code >= 0))
        each = group(name[rows], code[rows])
        cuts = np.split(rows[np.argsort(each.of, kind="stable")], np.cumsum(each.count())[:-1])
        for first, own in zip(rows[each.first].tolist(), cuts, strict=bool(len(rows))):
            shown = ", ".join("×".join(map(str, shape)) for shape in shapes(text(int(code[first]))) if shape)
            found.setdefault((text(int(name[first])), shown), []).append(own)
    # Several texts may write the same shapes: scalars beside them are left out.
    return {key: np.sort(np.concatenate(some), kind="stable") for key, some in found.items()}


def op_text(facts: Facts, field: str, row: Rows, value: Callable[[str], int], missing: int) -> NDArray[np.int64]:
    """A number made of a text argument (`shapes`, `dtypes`) of operators, decided once a distinct text.

    `row`: event rows, -1 for none; `missing` where there is none, or no text.
    """
    code = facts.context.trace.events.numbers(field, row)
    out = np.full(len(row), missing, np.int64)
    known = code >= 0
    out[known] = facts.context.trace.strings.lookup(code[known].astype(np.int32), value)
    return out


def dtypes_of(text: str) -> list[str]:
    """Element types of the tensors of a recorded call, in lower case and without namespace."""
    return [name.rpartition("::")[2].lower() for name in listed(text) if isinstance(name, str) and name]


@lru_cache(maxsize=4096)
def shapes_of(text: str) -> tuple[tuple[int, ...], ...]:
    """Shapes of the tensors of a recorded call; lists of tensors and scalars are left out. Several rules ask."""
    return tuple(
        tuple(entry)
        for entry in listed(text)
        if isinstance(entry, list) and entry and all(isinstance(size, int) for size in entry)
    )


def largest(text: str) -> int:
    """Elements of the largest tensor of a recorded call, at most 2³¹ - 1."""
    return min(max((prod(shape) for shape in shapes_of(text)), default=0), 2**31 - 1)


def listed(text: str) -> list[object]:
    """Entries of a recorded list, one an argument; none where the text is damaged."""
    try:
        parsed = _LISTS.decode(text)
    except (ValueError, RecursionError):
        return []
    return parsed if isinstance(parsed, list) else []


def names_of(facts: Facts, codes: NDArray[np.int32], time: NDArray[np.int64], most: int = 3) -> tuple[str, ...]:
    """Names that take most time, costliest first."""
    each = group(codes)
    costly = np.argsort(-each.sum(time), kind="stable")[:most]
    return tuple(facts.context.trace.strings.text(int(codes[each.first[at]])) for at in costly.tolist())


def compute_finding(
    facts: Facts,
    chosen: NDArray[np.bool_] | NDArray[np.int64],
    *,
    saving: int | None = None,
    bound: int | None = None,
    about: str = "",
    codes: NDArray[np.int32] | None = None,
    evidence: tuple[Evidence, ...] = (),
    **more: Any,
) -> Finding:
    """Some compute kernels that take too long, `chosen` among those of `computing`: time, part of compute, how many.

    By default `bound` is all their time, `saving` half of that, `about` what of `codes` (names, one a kernel; by
    default those of the operators) takes most time, and all of the kernels are shorter in proportion.
    """
    work = facts.once(computing)
    time, event = work.time[chosen], work.event[chosen]
    whole = facts.per_step(time)
    bound = whole if bound is None else bound
    if saving is None:
        saving = bound // 2
        more.setdefault("between", (less(event, time, bound / max(whole, 1)),))
    if "change" not in more:
        more["change"] = less(event, time, saving / max(whole, 1))
    return Finding(
        saving=saving,
        bound=bound,
        draws="compute",
        intervals=work.spans(chosen),
        evidence=(*measured(time=whole, part=part_of_compute(facts, chosen)), *evidence, *measured(count=len(time))),
        scope=Scope(
            ops=(about,) if about else names_of(facts, (work.op_name if codes is None else codes)[chosen], time)
        ),
        **{"count": len(time)} | more,
    )
