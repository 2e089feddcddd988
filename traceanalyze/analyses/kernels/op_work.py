"""FLOP/s and bytes/s that operators achieved, and how far that is from what the device can do."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import DEVICE_TIME, group
from traceanalyze.analyses.kernels.ascend import kernel_cost, matrix_cycles
from traceanalyze.analyses.kernels.work import WORK, Work, device_work
from traceanalyze.model.columns import MISSING, occurs
from traceanalyze.model.device_peaks import Peaks, peaks_of, peaks_of_cycles
from traceanalyze.model.kernel_classes import FULL_FLOAT, KernelGroup, TensorCore
from traceanalyze.model.kernel_names import meaning_of
from traceanalyze.model.op_calls import Call, Shape, listed_shapes, parse_call
from traceanalyze.model.op_costs import Cost, cost_of
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

_DTYPES = {
    "double": "fp64",
    "float": "fp32",
    "c10::half": "fp16",
    "half": "fp16",
    "float16": "fp16",
    "bf16": "bf16",
    "int8": "int8",
    "c10::bfloat16": "bf16",
    "bfloat16": "bf16",
    "signed char": "int8",
    "char": "int8",
}
_BY_NAME = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "e4m3": "fp8", "e5m2": "fp8", "i8": "int8"}
"""Types as labels of kernels have them, where tables of peaks call them otherwise."""
_PRODUCTS = (KernelGroup.MATMUL, KernelGroup.ATTENTION, KernelGroup.CONVOLUTION)
_MARKS = regex(r'[][",;]+')

_OP_RATES = declare(
    "op_rates",
    "What operators achieved, and what the device could do (sum over the analysed steps)",
    Column(
        "op",
        Kind.NAME,
        "operator that launched the kernels itself, or of Ascend profiles their type",
        heading="operator",
    ),
    Column(
        "shapes", Kind.NAME, "shapes of its tensors, and the type of one of another type; 1→8: one element stands for 8"
    ),
    Column(
        "dtype",
        Kind.TEXT,
        "type of the first tensor; tf32 where float ran on matrix units, hf32 on those of Ascend",
        heading="type",
    ),
    replace(WORK, minor=True),
    Column("calls", Kind.COUNT, "calls that ran something on the device"),
    DEVICE_TIME,
    Column(
        "flop", Kind.NUMBER, "floating point operations its mathematics needs, all calls", heading="FLOP", minor=True
    ),
    Column("bytes", Kind.BYTES, "inputs read once and outputs written once, all calls", minor=True),
    Column("tflops", Kind.NUMBER, "FLOP over device time, 10¹² per second", heading="TFLOP/s"),
    Column("bandwidth", Kind.NUMBER, "bytes over device time, 10⁹ bytes per second", heading="GB/s"),
    Column("intensity", Kind.NUMBER, "FLOP per byte", heading="FLOP/byte", minor=True),
    Column("bound", Kind.TERM, "what limits it at best on this device", heading="bound by", minor=True),
    Column(
        "roofline_share",
        Kind.SHARE,
        "least time this device needs over the time taken; above 100 % where all fits into its cache",
        heading="of roofline",
    ),
    ranked=True,
    detail=True,
)
_TENSORS = ("op_type", "kernel_shapes", "kernel_dtypes", "kernel_formats", "kernel_outputs", "kernel_output_dtypes")
Rows = dict[tuple[str, str, str, Cost, str], list[int]]
"""By operator, shapes, element type, what one call needs and why that lacks something: calls and device time, ns."""
_KNOWN = frozenset({*_DTYPES.values(), "fp8", "tf32"})
_NAMESPACES = ("aten::", "flash_attn::", "torch_attn::")
"""Of operators whose names say what they compute."""
_CALLS = 4096
"""Calls that are known, once looked at: those of many ranks are the same."""
Amount = int | NotMeasured
_ZERO, _NOT = regex(r"\b0\b"), regex("NO", re.IGNORECASE)
Measure = float | NotMeasured


def op_rates(context: Context) -> Table:
    """Operators with a formula (`model/op_costs.py`) by name, shapes and types, most device time first.

    The time of a call is that of the device events launched from it itself, not from operators inside it; copies by
    the copy engine have a table of their own. Where no operator has a formula and the profile lists the tensors of
    kernels, as Ascend's do without `record_shapes`, these take its place.
    """
    work, fields = context.once(device_work), context.trace.events.fields
    if not {"shapes", "kernel_outputs"} & set(fields):
        return _OP_RATES.missing("no_shapes")
    known = np.flatnonzero((work.op >= 0) & (work.group != KernelGroup.COPY))
    found = _of_operators(context, work, known, work.op[known])
    found = found or _of_kernels(context, work)
    if not found and len(known) == 0:
        return _OP_RATES.missing("no_linked_launches")
    peaks, names = context.once(device_peaks), _short_names(context)
    records = (
        {"op": op, **_row(shapes, names.get(dtype, dtype), cost, why, sums, peaks)}
        for (op, shapes, dtype, cost, why), sums in found.items()
    )
    return _OP_RATES.fill_records(records).sort("-device_time_ns", "op", "shapes")


def roof_share(context: Context, chosen: NDArray[np.int64]) -> Measure:
    """Least time this device needs for some rows of `device_work` over the time they take, as in `op_rates`.

    Of those with a formula, which must be half of their time.
    """
    work, fields = context.once(device_work), context.trace.events.fields
    peaks, known = context.once(device_peaks), chosen[work.group[chosen] != KernelGroup.COPY]
    if peaks is None:
        return NotMeasured("unknown_device")
    own, around = work.op[known], context.once(_around)[known]
    if not _listed(context, work, known, np.concatenate((own, around))):
        return NotMeasured("no_shapes")
    found = _of_operators(context, work, known[own >= 0], own[own >= 0])
    found = found or (_of_kernels(context, work, known) if "kernel_outputs" in fields else {})
    found = found or _of_operators(context, work, known[around >= 0], around[around >= 0])
    rows = [_row(*key[1:], sums, peaks) for key, sums in found.items()]
    least = [(row["roofline_share"], row["device_time_ns"]) for row in rows]
    told = [(share, time) for share, time in least if isinstance(share, float) and isinstance(time, int)]
    if 2 * sum(time for _, time in told) < int(work.time[chosen].sum()) or not told:
        return next((share for share, _ in least if isinstance(share, NotMeasured)), NotMeasured("no_formula"))
    return sum(share * time for share, time in told) / max(sum(time for _, time in told), 1)


def _around(context: Context) -> NDArray[np.int64]:
    """Row of the operator with a library's name around each launch, -1 for none: only such have shapes on Ascend."""
    nested, place = context.op_nest, context.event_op[context.once(device_work).event]
    vendor = context.trace.strings.matches(context.op_names, lambda name: "::" not in name)
    found = np.full(len(place), -1, np.int64)
    found[place >= 0] = nested.row[nested.beyond(vendor)[place[place >= 0]]]
    return found


def _listed(context: Context, work: Work, known: NDArray[np.int64], of_op: NDArray[np.int64]) -> bool:
    """Whether the profile has the tensors of any of these: its operator's, or all of the kernel's own."""
    numbers = context.trace.events.numbers
    row = context.device.row[work.event[known]]
    whole = np.all([numbers(field, row) != MISSING for field in _TENSORS], axis=0)
    return bool(whole.any() or (numbers("shapes", of_op[of_op >= 0]) != MISSING).any())


def _of_operators(context: Context, work: Work, known: NDArray[np.int64], op: NDArray[np.signedinteger]) -> Rows:
    """Calls and device time of operators, each with its row of `device_work`; those without a formula are left out."""
    if len(known) == 0 or "shapes" not in context.trace.events.fields:
        return {}
    calls = group(op)
    row = op[calls.first]
    fields = [context.trace.events.numbers(field, row, -1) for field in ("shapes", "dtypes", "concrete", "strides")]
    # Other strides than 0 change nothing here.
    repeats = context.trace.strings.matches(np.maximum(fields[3], 0).astype(np.int32), _ZERO.search)
    fields[3] = np.where(repeats, fields[3], -1)
    rows = group(context.trace.events.name[row], *fields)
    time = rows.sum(calls.sum(work.time[known]))
    matrix = rows.sum(calls.sum(_short_float(context, work, known))) > 0
    found, text = Rows(), context.trace.strings.text
    for index, (first, count) in enumerate(zip(rows.first.tolist(), rows.count().tolist(), strict=True)):
        name, codes = text(int(context.trace.events.name[row[first]])), [int(field[first]) for field in fields]
        rated = _rated(name, *(text(code) if code >= 0 else None for code in codes))
        if rated is not None:
            call, cost, shapes = rated
            dtype = _dtype(call.shapes, call.dtypes, matrix_units=bool(matrix[index]))
            # Arguments that change neither what is shown nor what it costs are no other row.
            sums = found.setdefault((name, shapes, dtype, cost, _why(call)), [0, 0])
            sums[0] += count
            sums[1] += int(time[index])
    return found


def _of_kernels(context: Context, work: Work, chosen: NDArray[np.int64] | None = None) -> Rows:
    """The same of types of kernels with the tensors that the profile's own table lists."""
    known = np.arange(len(work.event)) if chosen is None else chosen
    row, text = context.device.row[work.event[known]], context.trace.strings.text
    fields = [context.trace.events.numbers(field, row) for field in _TENSORS]
    told = np.all([field != MISSING for field in fields], axis=0)
    known, fields = known[told], [field[told] for field in fields]
    short = _short_float(context, work, known)
    rows = group(*fields, short)
    time, found = rows.sum(work.time[known]), Rows()
    for at, count, spent in zip(rows.first.tolist(), rows.count().tolist(), time.tolist(), strict=True):
        texts = [text(int(field[at])) for field in fields]
        cost = kernel_cost(*texts)
        if cost is not None:
            shapes = listed_shapes(texts[1])
            dtype = _dtype(shapes, texts[2].split(";"), matrix_units=bool(short[at]))
            sums = found.setdefault((texts[0], _shown(shapes), dtype, cost, "no_formula"), [0, 0])
            sums[0] += count
            sums[1] += spent
    return found


def _short_float(context: Context, work: Work, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which kernels multiply on matrix units, and float with fewer bits, as far as their names and table tell."""
    event, matches = work.event[rows], context.trace.strings.matches
    stated = context.trace.events.numbers("hf32", context.device.row[event], -1).astype(np.int32)
    full = matches(context.device.name[event], regex(FULL_FLOAT).search)
    full |= (stated >= 0) & matches(np.maximum(stated, 0), _NOT.fullmatch)
    short: NDArray[np.bool_] = (work.tensor_core[rows] == TensorCore.YES) & ~full
    return short


def _unstated(context: Context, work: Work, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which kernels of Ascend multiply float as HF32 or not: a profile need not have that column."""
    stated = context.trace.events.numbers("hf32", context.device.row[work.event[rows]], -1) >= 0
    ascend = context.trace.origin.format == "ascend"
    found: NDArray[np.bool_] = ~stated & (work.tensor_core[rows] == TensorCore.YES) & ascend
    return found


def precisions(context: Context, chosen: NDArray[np.int64] | None = None) -> dict[str, int]:
    """Device time, ns, of matrix products, convolutions and attention by the type they compute in, empty where unknown.

    Or of the `chosen` rows of `device_work`. By the first tensor of the kernel, or of the operator that launched it if
    that says what it computes, else by the kernel's name. Float of which nothing tells whether matrix units multiply
    it is fp32/tf32; on Ascend TF32 is HF32.
    """
    work, events, text = context.once(device_work), context.trace.events, context.trace.strings.text
    rows = np.flatnonzero(occurs(work.group, _PRODUCTS)) if chosen is None else chosen
    of_kernel = events.numbers("kernel_dtypes", context.device.row[work.event[rows]])
    of_op = np.where(of_kernel < 0, events.numbers("dtypes", work.op[rows]), of_kernel)
    telling = context.trace.strings.matches(
        np.maximum(work.op_name[rows], 0).astype(np.int32), lambda name: name.startswith(_NAMESPACES)
    )
    types = np.where((of_kernel >= 0) | telling, of_op, MISSING)
    unsure = (work.tensor_core[rows] == TensorCore.UNKNOWN) | _unstated(context, work, rows)
    name, short = context.device.name[work.event[rows]].astype(np.int64), _short_float(context, work, rows)
    names = _short_names(context)
    kinds, found = group(types, name, short, unsure), dict[str, int]()
    for at, time in zip(kinds.first.tolist(), kinds.sum(work.time[rows]).tolist(), strict=True):
        said = next(filter(None, _MARKS.split(text(int(types[at])))), "") if types[at] >= 0 else ""
        dtype = _named(said, matrix_units=bool(short[at]))
        if dtype not in _KNOWN:
            meant = meaning_of(text(int(name[at])))
            said = meant.dtype.partition("·")[0] if meant else ""
            dtype = _named(_BY_NAME.get(said, said), matrix_units=bool(short[at]))
        dtype = "fp32/tf32" if dtype in {"fp32", "tf32"} and unsure[at] else dtype if dtype in _KNOWN else ""
        dtype = names.get(dtype, dtype)
        found[dtype] = found.get(dtype, 0) + time
    return found


def _short_names(context: Context) -> dict[str, str]:
    """What float with fewer bits is called on this device, by its name among the peaks."""
    return {"tf32": "hf32", "fp32/tf32": "fp32/hf32"} if context.trace.origin.format == "ascend" else {}


def _shown(shapes: Iterable[Shape | None]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes if shape)


def _shapes(call: Call) -> str:
    """Of `mul(a, 2, out=b)` `4×1→8, [], 4×8 fp16`: what is no tensor, and another type than that of the first one.

    Along the second dimension all elements of `a` are one and the same, which is read once.
    """
    found: list[str] = []
    places = [place for place, shape in enumerate(call.shapes) if shape]
    for place in range(max(places, default=-1) + 1):
        sizes = (f"1→{size}" if repeats and size > 1 else str(size) for size, repeats in call.dimensions(place))
        dtype, first = (call.dtypes[at] if at < len(call.dtypes) else "" for at in (place, places[0]))
        other = dtype if place in places and dtype != first else ""
        found.append(f"{'×'.join(sizes) or '[]'} {_DTYPES.get(other.lower(), other)}".strip())
    return ", ".join(found)


@lru_cache(_CALLS)
def _rated(
    name: str, shapes: str | None, dtypes: str | None, values: str | None, strides: str | None
) -> tuple[Call, Cost, str] | None:
    """A call of these arguments, what it needs, and its tensors as they are shown; None without a formula."""
    if shapes is None or dtypes is None or not name.startswith(_NAMESPACES):
        return None
    call = parse_call(name, shapes, dtypes, values, strides)
    cost = None if call is None else cost_of(call)
    return None if call is None or cost is None else (call, cost, _shapes(call))


def device_peaks(context: Context) -> Peaks | None:
    """Peak rates of the headline device: by its name, else by what its matrix units can do."""
    trace = context.trace
    ascend = trace.origin.format == "ascend"
    name = trace.device_name(context.devices[0] if context.devices else None) or ("Ascend" if ascend else None)
    found = None if name is None else peaks_of(name, context.options.peaks)
    return found or (peaks_of_cycles(matrix_cycles(trace)) if ascend else None)


def _row(shapes: str, dtype: str, cost: Cost, why: str, sums: Sequence[int], peaks: Peaks | None) -> dict[str, Value]:
    calls, time = sums
    flop = _total(cost.flop, calls, "moves_only" if cost.moves_only else why)
    size = _total(cost.bytes, calls, why)
    bound, share = _roofline(flop, size, time, peaks, dtype, moves_only=cost.moves_only)
    if isinstance(share, float) and share > 1 and peaks and (cost.bytes or 0) > peaks.cache_mib * (1 << 20):
        share = NotMeasured("above_peak")
    return {
        "shapes": shapes,
        "dtype": dtype,
        "work": f"work_{cost.group.name.lower()}",
        "calls": calls,
        "device_time_ns": time,
        "flop": flop,
        "bytes": size,
        "tflops": _rate(flop, time, 1e3),
        "bandwidth": _rate(size, time, 1.0),
        "intensity": _ratio(flop, size),
        "bound": bound,
        "roofline_share": share,
    }


def _dtype(shapes: Iterable[Shape | None], dtypes: Iterable[str], *, matrix_units: bool) -> str:
    """Element type of the first tensor, as the table of peaks names it; on matrix units float is multiplied as TF32."""
    return _named(
        next((dtype for dtype, shape in zip(dtypes, shapes, strict=False) if shape), ""), matrix_units=matrix_units
    )


def dtype_name(text: str) -> str:
    """A type as the table of peaks names it, or as it stands where that has none."""
    return "fp8" if "float8" in text.lower() else _DTYPES.get(text.lower(), text)


def _named(first: str, *, matrix_units: bool) -> str:
    known = dtype_name(first)
    return "tf32" if known == "fp32" and matrix_units else known


def _why(call: Call) -> str:
    """Why a formula lacks something: the plain arguments were not recorded, or the case is not covered."""
    return "no_op_arguments" if call.values is None else "no_formula"


def _total(each: int | None, calls: int, reason: str) -> Amount:
    return NotMeasured(reason) if each is None else each * calls


def _rate(amount: Amount, time: int, scale: float) -> Measure:
    if isinstance(amount, NotMeasured):
        return amount
    return amount / time / scale if time else NotMeasured("no_duration")


def _ratio(flop: Amount, size: Amount) -> Measure:
    if isinstance(flop, NotMeasured):
        return flop
    if isinstance(size, NotMeasured):
        return size
    return flop / size if size else NotMeasured("no_formula")


def _roofline(
    flop: Amount, size: Amount, time: int, peaks: Peaks | None, dtype: str, *, moves_only: bool
) -> tuple[str | NotMeasured, Measure]:
    """What limits the operator at best, and the least time it needs over the time it took."""
    if peaks is None:
        return NotMeasured("unknown_device"), NotMeasured("unknown_device")
    if isinstance(size, NotMeasured):
        return size, size
    moving = size / peaks.bandwidth
    computing = 0.0
    if not moves_only:
        rate = peaks.rate(dtype)
        if isinstance(flop, NotMeasured):
            return flop, flop
        if rate is None:
            return NotMeasured("unknown_peak"), NotMeasured("unknown_peak")
        computing = flop / rate
    bound = "bound_compute" if computing > moving else "bound_memory"
    return bound, max(computing, moving) / time if time else NotMeasured("no_duration")
