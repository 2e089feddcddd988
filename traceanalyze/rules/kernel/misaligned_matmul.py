from collections.abc import Iterator, Sequence, Set
from math import prod

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.columns import MISSING
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.table import NotMeasured
from traceanalyze.replay.parts import shorter
from traceanalyze.rules.common.computing import (
    Computing,
    compute_finding,
    computing,
    dtypes_of,
    fits,
    kernels_of,
    shapes_of,
)
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, measured, rule

_PRODUCTS = r"^aten::(mm|addmm|bmm|baddbmm|_int_mm)$"
_STEP = {"half": 8, "bfloat16": 8, "char": 16, "signed char": 16, "double": 2}
"""Elements of 16 bytes (NVIDIA deep learning performance guide)."""
_TF32 = 4
_INNER_NPU = 256
"""Elements of the inner axis on Ascend (msprof-analyze advisor)."""


@rule(
    "KRN102",
    "misaligned-matmul",
    title="products with sizes that do not fit",
    sentence=(
        "Matrix products with sizes that do not fit the matrix units take {time} {per} ({part} of compute), such as "
        "{shape}."
    ),
    confidence=Confidence.HIGH,
    needs="DOH",
    advice_texts={
        "pad_sizes": "Pad vocabulary, hidden size, heads or batch to a multiple of 64 (of 8 at least).",
        "pad_sizes.ascend": "Pad the inner axes of products to a multiple of 256, those of attention to 128.",
    },
    options={
        "least_us": (20.0, "own: shorter products wait for other things than alignment"),
        "gain": (0.3, "own: nanoGPT's vocabulary padded from 50257 to 50304 made its products about a third shorter"),
        "reached": (0.7, "own: of the roofline, by products whose sizes fit"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Dimensions of matrix products do not fit the matrix units.

    What it finds
        Matrix products of which a row in memory, of an operand or of the result, is no multiple of 8 numbers (float16,
        bfloat16), 16 (int8), 4 (TF32) or 2 (float64); on Ascend an inner axis that is not a multiple of 256.
    Why it costs time
        Rows that do not begin at a multiple of 16 bytes are loaded in smaller pieces, or the product runs on slower
        units; the last tiles are filled up with nothing.
    How it is measured
        Device time of `mm`, `addmm`, `bmm` and `baddbmm` with such rows whose kernels take 20 µs or more; shapes and
        strides as recorded, without strides row by row. What is saved depends on the library: the estimate is 0.3 of
        it, half of that at least and 0.5 at most, and no more than leads to the roofline. Where a product whose sizes
        fit does no more work and is faster in the same recording, its rate tells what is saved at least. Kernels that
        are known not to use matrix units could reach 0.7 of the roofline, at most all.
    What to do
        Pad vocabulary, hidden size or batch to the next multiple of 64 (of 8 at least).

    References
        NVIDIA Deep Learning Performance Guide; PyTorch Performance Tuning Guide; msprof-analyze advisor.
    """
    work = facts.once(computing)
    chosen = (work.group == KernelGroup.MATMUL) & (work.time >= options.number("least_us") * 1000)
    chosen &= (work.op >= 0) & fits(facts, work.op_name, _PRODUCTS)
    bad, beside, shape = _misaligned(facts, work, np.flatnonzero(chosen))
    if len(bad) == 0:
        return
    reached, gain = _reached(facts, work)[bad], options.number("gain")
    slow = (work.tensor_core[bad] == TensorCore.NO) & (reached > 0) & (reached < options.number("reached") * (1 - gain))
    usual, most, seen = np.minimum(gain, 1 - reached), np.minimum(0.5, 1 - reached), beside > 0
    part = np.where(slow, 1 - reached / options.number("reached"), np.maximum(usual, beside))
    least = np.where(slow, part, np.where(seen, np.minimum(beside, part), part / 2))
    high = np.where(slow | seen, part, most)
    most = np.where(slow, 1 - reached, np.maximum(most, part))
    yield compute_finding(
        facts,
        bad,
        saving=facts.per_step(np.round(work.time[bad] * part).astype(np.int64)),
        bound=facts.per_step(np.round(work.time[bad] * most).astype(np.int64)),
        change=shorter(facts.context, work.event[bad], part),
        between=(shorter(facts.context, work.event[bad], least), shorter(facts.context, work.event[bad], high)),
        evidence=measured(shape=shape),
        confidence=Confidence.LOW if facts.platform == "ascend" else None,
    )


def _reached(facts: Facts, work: Computing) -> NDArray[np.float64]:
    """Part of the roofline that the operator of each kernel reaches, 0 where nothing tells."""
    reached, table = np.zeros(len(work)), facts.analysis.tables["op_rates"]
    for one in table.records() if table.absent is None else ():
        if not isinstance(one.roofline_share, NotMeasured):
            reached[kernels_of(facts, one.op, one.shapes)] = one.roofline_share
    return reached


def _misaligned(
    facts: Facts, work: Computing, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], str]:
    """Kernels of products with a bad dimension, what part of its time each needs too much, and the costliest shapes.

    That is at the rate of a product that fits and is no larger; 0 where none is faster.
    """
    fields = ("shapes", "dtypes", "strides")
    codes = [facts.context.trace.events.numbers(field, work.op_row[rows]) for field in fields]
    known = (codes[0] != MISSING) & (codes[1] != MISSING)
    rows, codes = rows[known], [code[known] for code in codes]
    if len(rows) == 0:
        return rows, np.zeros(0), ""
    matrix = work.tensor_core[rows] == TensorCore.YES
    each = group(*codes, matrix)
    text = facts.context.trace.strings.text
    bad, size = np.zeros(len(each), np.bool_), np.zeros(len(each))
    every = [shapes_of(text(code))[-2:] for code in codes[0][each.first].tolist()]
    wide = {shapes[1][-1] for shapes in every if len(shapes) == 2}
    kinds = []
    for at, (first, shapes) in enumerate(zip(each.first.tolist(), every, strict=True)):
        dtypes = dtypes_of(text(int(codes[1][first])))
        steps = shapes_of(text(int(codes[2][first]))) if codes[2][first] != MISSING else ()
        bad[at] = _is_bad(shapes, steps[-2:], wide, dtypes, bool(matrix[first]), facts.platform)
        size[at] = prod(shapes[0]) * shapes[1][-1] if len(shapes) == 2 else 0
        kinds.append((dtypes[:2], matrix[first]))
    time = each.sum(work.time[rows])
    rate, beside = size * each.count() / np.maximum(time, 1), np.zeros(len(each))
    for at in np.flatnonzero(bad & (rate > 0)).tolist():
        fit = [one for one in np.flatnonzero(~bad & (size <= size[at])).tolist() if kinds[one] == kinds[at]]
        beside[at] = max(0.0, 1 - rate[at] / max(rate[fit].max(initial=0.0), rate[at]))
    worst = every[int(np.where(bad, time, 0).argmax())]
    return rows[bad[each.of]], beside[each.of][bad[each.of]], " · ".join("×".join(map(str, one)) for one in worst)


def _is_bad(
    shapes: Sequence[tuple[int, ...]],
    strides: Sequence[tuple[int, ...]],
    wide: Set[int],
    dtypes: list[str],
    matrix: bool,
    platform: str,
) -> bool:
    if len(shapes) != 2 or min(len(shape) for shape in shapes) < 2 or not dtypes:
        return False
    if 1 in (*shapes[0][-2:], *shapes[1][-2:]):
        return False  # A matrix times a vector reads memory, whatever its alignment.
    if platform == "ascend":
        return len(shapes[0]) == 2 and any(shape[-1] % _INNER_NPU for shape in shapes)
    tensors = [dtype for dtype in dtypes if not dtype.startswith("scalar")]  # Factors of addmm come last.
    dtype = tensors[-1] if tensors else ""
    step = _STEP.get(dtype, _TF32 if matrix and dtype == "float" else 1)
    return any(size % step for size in _contiguous(shapes, strides, wide))


def _contiguous(shapes: Sequence[tuple[int, ...]], strides: Sequence[tuple[int, ...]], wide: Set[int]) -> Iterator[int]:
    """Sizes along which the operands and the result of a product lie in memory.

    Without strides row by row, but for the gradients of weights: their first operand is a transposed view, so that its
    rows are as long as the result of another product (`wide`).
    """
    yield shapes[1][-1]
    for at, shape in enumerate(shapes):
        stride = strides[at] if len(strides) == len(shapes) else ()
        known = len(stride) == len(shape)
        yield shape[-2 if known and stride[-2] == 1 and stride[-1] != 1 else -1]
        if not known and at == 0 and shape[-2] in wide:
            yield shape[-2]
