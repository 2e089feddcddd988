"""Operators of both sides for who moves a model to an NPU: their kernels, what binds them, what to do about each."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct as distinct_keys
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, counted_events
from traceanalyze.analyses.kernels.ascend import tensor_bytes
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.kernels import DYNAMIC, UNITS
from traceanalyze.analyses.kernels.op_work import device_peaks, precisions, roof_share
from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.comparison.calls import Calls, calls_of, described, tensors
from traceanalyze.comparison.canonical_ops import Fused
from traceanalyze.comparison.names import BACKWARD_SUFFIX
from traceanalyze.comparison.operators import frames_of_longest
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.columns import MISSING, distinct
from traceanalyze.model.device_peaks import Peaks
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.op_calls import listed_shapes
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Kind, Message, NotMeasured, Value, Word, sentences
from traceanalyze.model.vocabulary import DeviceClass

_SAY = sentences(
    to_cores="{time} of it runs on the AI CPU, as no core has a kernel for its types: take other types or operators",
    to_fused="one fused operator does it: {api}",
    to_layout=(
        "{time} of it changes layouts or types (TransData, Cast): keep one format and type, with "
        "torch_npu.npu_format_cast once before the loop"
    ),
    to_precision="computes in {candidate}, the other side in {base}",
    to_autocast="computes in {candidate}, the other side in {base}: torch.autocast('npu')",
    to_hf32=(
        "computes in {candidate}, the other side in {base}: HF32 by torch.npu.matmul.allow_hf32 and "
        "torch.npu.conv.allow_hf32"
    ),
    to_split="{candidate} kernels a call, {base} on the other side",
    to_often="it runs {candidate} times a step, {base} times on the other side: {time} of it is by that",
    to_kernel=(
        "{time} more than the other side in kernels for the same work, in which the {unit} works {share} of the "
        "time{clock}"
    ),
    to_record=(
        "{time} more than the other side in kernels for the same work; what binds them tells a recording of level 1 "
        "with aic_metrics"
    ),
    to_only="the other side has no operator of this name",
    to_bound="the {unit} works {share} of the time in its kernels{clock}",
    to_unused="the other side's device does nothing for this operator",
    to_across="for this operator the other side only copies between host and device (memory ops)",
    to_fill="{blocks} of {cores} cores are used: larger or batched tensors",
)
_API = {
    "aten::scaled_dot_product_attention": "torch_npu.npu_fusion_attention",
    "aten::rms_norm": "torch_npu.npu_rms_norm",
    "aten::rotary_mul": "torch_npu.npu_rotary_mul",
    "aten::swiglu": "torch_npu.npu_swiglu",
    "aten::_fused_adamw": "torch_npu.optim.NpuFusedAdamW",
    "aten::_fused_adam": "torch_npu.optim.NpuFusedAdam",
}
"""Operators that are fused on a GPU (`names.FUSED`), and what torch_npu has for them."""
_PRODUCTS = (KernelGroup.MATMUL, KernelGroup.ATTENTION, KernelGroup.CONVOLUTION)
_LAYOUT = regex(r"TransData|Cast|Transpose|ViewCopy|Format")
_AI_CPU = regex(r"AI_?CPU")
_INSIDE = DIRECTIONS.index("d2d"), DIRECTIONS.index("fill")
"""Copies and fills that a kernel may do as well."""
_UNTYPED = NotMeasured("no_kernel_types")
AMOUNTS = ("base_time_ns", "candidate_time_ns", "ratio", "base_sum_ns", "candidate_sum_ns")
WORTH = 0.05
"""Own: part of an operator's time, from which on something about it is said."""


class Work(NamedTuple):
    """Kernels that compute, and copies and fills inside the device's memory, by the operator they count for."""

    context: Context
    names: list[str]
    of: NDArray[np.int64]
    event: NDArray[np.int64]
    time: NDArray[np.int64]
    op: NDArray[np.int64]
    """Place of the operator that launched each, -1 where none is known."""
    row: NDArray[np.int64]
    """Of each in `device_work`."""
    kind: NDArray[np.uint8]
    """`KernelGroup`."""
    unit: NDArray[np.int64]
    """The call they are of: of a fused operator that is written as several the first."""
    calls: Calls
    computes: NDArray[np.bool_]

    def each(self, own: NDArray[np.int64]) -> float:
        """Kernels a call."""
        return len(own) / max(len(np.unique(self.unit[own])), 1)

    def calls_of(self, own: NDArray[np.int64]) -> int:
        """Calls that launched these; 0 where that is not known of all."""
        return len(np.unique(self.unit[own])) if len(own) and (self.unit[own] >= 0).all() else 0

    def precision(self, own: NDArray[np.int64]) -> str | None:
        """Type in which products compute, else all kernels, most of the time."""
        products = own[np.isin(self.kind[own], _PRODUCTS)]
        found = precisions(self.context, self.row[products if len(products) else own])
        return max(found, key=lambda dtype: found[dtype]) or None if found else None

    def rows(self, chosen: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
        """By operator those that are chosen."""
        order = np.argsort(self.of, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(self.of, minlength=len(self.names)))[:-1])
        found = zip(self.names, (part[chosen[part]] for part in parts), strict=bool(self.names))
        return {name: part for name, part in found if len(part)}


def work_of(context: Context, options: CompareOptions, fused: Fused) -> Work:
    """That of one side; `fused` are the names that count for one operator (`fused_names`)."""
    every, work = counted_events(context), context.once(device_work)
    klass = context.device.klass[every[0]]
    own = klass == DeviceClass.COMPUTE
    copies = np.flatnonzero(klass == DeviceClass.MEM)
    own[copies] = np.isin(directions(context, every[0][copies]), _INSIDE)
    event, time = (each[own] for each in every)
    op = context.event_op[event]
    calls, known = calls_of(context, options, fused), op >= 0
    whole = np.where(known, calls.ops.whole[np.maximum(op, 0)] if len(calls.ops.whole) else 0, -1)
    of_link = np.where(context.link[event] >= 0, -2, -1)
    rows = group(np.where(known, calls.tokens[whole] if len(calls.tokens) else 0, of_link))
    alone = {-1: UNLINKED, -2: OUTSIDE_OPS}
    found = (calls.key(int(whole[at]))[0] if known[at] else alone[int(of_link[at])] for at in rows.first.tolist())
    names, of = distinct_keys(found, rows.of)
    unit = np.where(known, calls.ops.unit[whole] if len(calls.ops.unit) else 0, -1)
    row, computes = np.searchsorted(work.event, event), klass[own] == DeviceClass.COMPUTE
    return Work(context, names, of, event, time, op, row, work.group[row], unit, calls, computes)


def _ran(work: Work) -> dict[str, str]:
    """What to say of operators of a side without a kernel or a copy inside its device, by their names."""
    context, calls = work.context, work.calls
    begun = np.flatnonzero(context.op_nest.begun_in(context.host_windows))
    place = context.event_op[counted_events(context)[0]]
    busy = calls.ops.whole[place[place >= 0]].astype(np.int64)
    found = dict[str, str]()
    for places, said in ((begun, "to_unused"), (busy, "to_across")):
        first = group(calls.tokens[places]).first if len(places) else places
        found |= dict.fromkeys((calls.key(at)[0] for at in places[first].tolist()), said)
    return found


def paired(old: Work, new: Work) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.int64]]]:
    """By operator the kernels of both, and the base's copies and fills where the candidate has kernels for them."""
    after, copies, moved = new.rows(new.computes), new.rows(~new.computes), old.rows(~old.computes)
    before = old.rows(old.computes)
    for name in after.keys() & moved.keys() - copies.keys():
        before[name] = np.concatenate((before.get(name, moved[name][:0]), moved[name]))
    return before, after


def operator_rows(
    base: tuple[Work, Mapping[str, NDArray[np.int64]]],
    candidate: tuple[Work, Mapping[str, NDArray[np.int64]]],
    per: PerStep,
) -> Iterator[dict[str, Any]]:
    """Operators of the candidate, each with the base's kernels for it, as rows of the table."""
    (old, before), (new, after) = base, candidate
    ran = _ran(old)
    peaks = old.context.once(device_peaks), new.context.once(device_peaks)
    for name, own in after.items():
        other = before.get(name, own[:0])
        sums = int(old.time[other].sum()), int(new.time[own].sum())
        product = np.isin(new.kind[own], _PRODUCTS)
        types = old.precision(other), new.precision(own)
        peak = _allowed(*peaks, types if 2 * new.time[own][product].sum() > sums[1] else None)
        layout = own[_named(new, own, "op_type", _LAYOUT)]
        # Changes of layout have advice of their own.
        bound, share, bind = _bound(new, np.setdiff1d(own, layout) if len(layout) < len(own) else own)
        # Work of unknown operators has its counterpart among that of the base's known ones.
        unknown = name == UNLINKED and not len(other)
        win = NotMeasured("operator_unknown") if unknown else to_win(sums, peak, per)
        cells = {
            "op": Word("all_work") if name == "" else name,
            **amounts(sums, per),
            "win_ns": win,
            "peak_ratio": NotMeasured("unknown_device") if peak is None else peak,
            "bound": bound,
            "bound_share": share,
            **_described(old, new, other, own),
        }
        cells |= {"blocks": _blocks(new, own), "dynamic": dynamic_share(new, own), "clock": _clock(new, bind)}
        cells["base_roof"] = roof_share(old.context, old.row[other]) if len(other) else None
        cells["candidate_roof"] = roof_share(new.context, new.row[own])
        cells["cores"] = _cores(new, own)
        cells["base_precision"], cells["candidate_precision"] = types
        typed = (_numbers(new, own, "op_type", -1) >= 0).any()
        time, size = (int(new.time[layout].sum()), _read(new, layout)) if typed else (_UNTYPED, _UNTYPED)
        cells["layout_ns"], cells["layout_bytes"] = (
            each if isinstance(each, NotMeasured) else per.candidate(each) for each in (time, size)
        )
        more = {"layout": layout, "only": ran.get(name, "to_only")}
        said = () if unknown else tuple(_advice(name, old, new, other, own, cells | more, per))
        yield {**cells, "to_do": said}


def on_host(old: Work, new: Work) -> list[str]:
    """Operators that the base's device runs and for which the candidate takes tensors to the host, longest first."""
    rows, after, context = old.rows(old.computes), new.rows(new.computes), new.context
    wanted = {
        name: int(old.time[own].sum())
        for name, own in rows.items()
        if name not in after and (old.kind[own] != KernelGroup.LAYOUT).any()
    }
    every, _ = counted_events(context)
    copies = every[context.device.klass[every] == DeviceClass.MEM]
    place = context.event_op[copies[directions(context, copies) == DIRECTIONS.index("d2h")]]
    found, seen = set[str](), np.zeros(len(context.op_nest), np.bool_)
    while wanted and len(place := distinct(place[place >= 0])):
        found |= wanted.keys() & {new.calls.key(at)[0] for at in place.tolist()}
        seen[place] = True
        place = context.op_nest.parent[place]
        place = place[~seen[place]]
    return sorted(found, key=lambda name: (-wanted[name], name))


def amounts(sums: tuple[int, int], per: PerStep) -> dict[str, Value]:
    """Times of both sides and their ratio."""
    found = per.amounts(*sums)
    return {key: found[key] for key in AMOUNTS}


def to_win(sums: tuple[int, int], peak: float | None, per: PerStep) -> int:
    """What the candidate takes above the base's time, of which it may take `peak` times as long, ns a step."""
    pace = sums[0] / per.base_steps * (peak or 1.0)
    return max(round(sums[1] / per.candidate_steps - pace), 0)


def _allowed(old: Peaks | None, new: Peaks | None, types: tuple[str | None, str | None] | None) -> float | None:
    """By how much longer the candidate may take: of matrix products in these types, else of what moves memory.

    It may compute in the base's type where its device can.
    """
    if old is None or new is None:
        return None
    if types is None:
        return old.bandwidth / new.bandwidth
    taken = types[1] or ""
    wanted = types[0] or taken
    rates = old.rate(wanted), new.rate(wanted) or new.rate(taken)
    return rates[0] / rates[1] if rates[0] and rates[1] else None


def _numbers(work: Work, own: NDArray[np.int64], field: str, missing: int = MISSING) -> NDArray[np.int64]:
    return work.context.trace.events.numbers(field, work.context.device.row[work.event[own]], missing)


def _bound(work: Work, own: NDArray[np.int64]) -> tuple[str | NotMeasured, float | NotMeasured, NDArray[np.int64]]:
    """The unit that works longest, the part of the time of all kernels with counters in which it does, and its kernels.

    Those in which it works: the clocks of cube and vector cores are others. What mostly runs on the AI CPU, which has
    no counters, is bound by that.
    """
    untold, on_host = NotMeasured("no_core_counters"), own[_named(work, own, "core", _AI_CPU)]
    part = int(work.time[on_host].sum()) / max(int(work.time[own].sum()), 1)
    if part > 1 / 2:
        return "unit_ai_cpu", part, on_host
    row = work.context.device.row[work.event[own]]
    busy, kernels = {}, {}
    for unit, field in UNITS.items():
        worked = work.context.trace.events.numbers(field, row)
        told = worked != MISSING
        busy[unit] = int(worked[told].sum()) / max(int(work.context.trace.events.dur[row[told]].sum()), 1)
        kernels[unit] = own[told & (worked > 0)]
    unit = max(busy, key=lambda each: busy[each])
    return (f"unit_{unit}", busy[unit], kernels[unit]) if busy[unit] else (untold, untold, own)


def _texts(work: Work, own: NDArray[np.int64], field: str) -> list[tuple[str, int, int]]:
    """What a text of the profile says of kernels, with their number and time, most time first."""
    rows = group(_numbers(work, own, field, -1))
    codes = _numbers(work, own[rows.first], field, -1).tolist()
    text = work.context.trace.strings.text
    found = zip(codes, rows.count().tolist(), rows.sum(work.time[own]).tolist(), strict=True)
    return sorted(((text(code), count, time) for code, count, time in found if code >= 0), key=lambda each: -each[2])


def _named(work: Work, own: NDArray[np.int64], field: str, pattern: Any) -> NDArray[np.bool_]:
    """Which kernels the profile says this of."""
    code = _numbers(work, own, field, -1)
    found = work.context.trace.strings.matches(np.maximum(code, 0).astype(np.int32), pattern.search)
    return found & (code >= 0)


def _read(work: Work, own: NDArray[np.int64]) -> int | NotMeasured:
    """Bytes of the tensors that kernels take."""
    rows, text = (
        group(*(_numbers(work, own, f"kernel_{field}", -1) for field in ("shapes", "dtypes"))),
        work.context.trace.strings.text,
    )
    size = 0
    for first, count in zip(rows.first.tolist(), rows.count().tolist(), strict=True):
        codes = [int(_numbers(work, own[[first]], f"kernel_{field}", -1)[0]) for field in ("shapes", "dtypes")]
        each = tensor_bytes(listed_shapes(text(codes[0])), text(codes[1])) if min(codes) >= 0 else None
        if each is None:
            return NotMeasured("no_shapes")
        size += each * count
    return size


def _described(old: Work, new: Work, other: NDArray[np.int64], own: NDArray[np.int64]) -> dict[str, Value]:
    """The candidate's kernels, and tensors of its longest call and of the base's longest with the same, if any has."""
    calls = len(own) / new.each(own)
    kernels = ", ".join(f"{text} ×{count / calls:.3g}" for text, count, _ in _texts(new, own, "op_type")[:4])
    found: dict[str, Any] = {
        "kernels": kernels or None,
        "core": ", ".join(text for text, _, _ in _texts(new, own, "core")) or None,
        "frame": frames_of_longest(new.context, np.zeros(len(own), np.int64), new.event[own], new.time[own])[0],
    }
    ours = _tensors(new, own)
    theirs = _tensors(old, other)
    # Of calls that take as long on one side, the one that the other shows.
    alike = next((each for each in theirs if tensors(*each) == tensors(*ours[0])), theirs[0])
    for side, pair in (("base", alike), ("candidate", ours[0])):
        found |= {f"{side}_shapes": pair[0], f"{side}_dtypes": pair[1]}
    return found


def _tensors(work: Work, own: NDArray[np.int64]) -> list[tuple[str | None, str | None]]:
    """Shapes and types of calls, each once, the longest first; profiles of Ascend may have those of kernels alone."""
    launched = own[work.op[own] >= 0]
    called = work.op[launched[np.argsort(-work.time[launched], kind="stable")]]
    row = work.context.op_nest.row[called]
    kinds = group(*(work.context.trace.events.numbers(field, row) for field in _FIELDS))
    each = row[np.sort(kinds.first)]
    found = list(zip(*(described(work.context, field, each) for field in _FIELDS), strict=True))
    of_kernel = [next((text for text, _, _ in _texts(work, own, f"kernel_{field}")), None) for field in _FIELDS]
    return [(shapes or of_kernel[0], dtypes or of_kernel[1]) for shapes, dtypes in found or [(None, None)]]


_FIELDS = ("shapes", "dtypes")
_CUBE = regex(r"^(AI_CORE|AIC|MIX_AIC)$")
"""Cores of kernels that take a cube core for each block."""


def _cores(work: Work, own: NDArray[np.int64]) -> int | NotMeasured:
    """Most blocks that one kernel of the profile runs at once, on the cores of the longest of these.

    Kernels on cube cores have at most one for each; those on vector cores may have more: of these there are two to a
    cube core.
    """
    blocks, cubes = work.context.once(_most_blocks)
    if not cubes:
        return NotMeasured("no_core_counters")
    longest = own[[int(np.argmax(work.time[own]))]]
    if _numbers(work, longest, "core", -1)[0] < 0:
        return _UNTYPED
    return cubes if _named(work, longest, "core", _CUBE)[0] else max(min(blocks, 2 * cubes), cubes)


def _most_blocks(context: Context) -> tuple[int, int]:
    """Of one kernel, and of one on cube cores; 0 where the profile does not tell."""
    events = context.trace.events
    blocks, core = events.fields.get("block_dim"), events.fields.get("core")
    if blocks is None or core is None:
        return 0, 0
    code = events.numbers("core", blocks.row.astype(np.int64), 0).astype(np.int32)
    of_cube = context.trace.strings.matches(np.maximum(code, 0), _CUBE.search)
    return int(blocks.value.max(initial=0)), int(blocks.value[of_cube].max(initial=0))


def _blocks(work: Work, own: NDArray[np.int64]) -> float | NotMeasured:
    found = _numbers(work, own[[int(np.argmax(work.time[own]))]], "block_dim", 0)
    return float(found[0]) if found[0] > 0 else NotMeasured("no_core_counters")


def dynamic_share(work: Work, own: NDArray[np.int64]) -> float | NotMeasured:
    """Share of kernels whose shapes are known only when they run."""
    told = own[_numbers(work, own, "op_state", -1) >= 0]
    return float(_named(work, told, "op_state", DYNAMIC).mean()) if len(told) else NotMeasured("vendor_does_not_say")


def _clock(work: Work, own: NDArray[np.int64]) -> float | NotMeasured:
    clock = ratio_argument(work.context, "core_clock", work.context.device.row[work.event[own]])
    told = ~np.isnan(clock) & (work.time[own] > 0)
    return (
        float(np.average(clock[told], weights=work.time[own][told])) if told.any() else NotMeasured("no_core_counters")
    )


_FASTER = ("fp64", "fp32", "fp32/tf32 fp32/hf32", "tf32 hf32", "fp16 bf16", "fp8", "int8")
"""Types of products by rate; of one text are as fast as each other."""


def _advice(
    name: str,
    old: Work,
    new: Work,
    other: NDArray[np.int64],
    own: NDArray[np.int64],
    cells: dict[str, Any],
    per: PerStep,
) -> Iterator[Message]:
    """What to do, the surest first; nothing where nothing is to win."""
    whole, layout = int(new.time[own].sum()), cells["layout"]
    left = cells["win_ns"] * per.candidate_steps
    if left < WORTH * whole:
        return
    on_host = int(new.time[own[_named(new, own, "core", _AI_CPU)]].sum())
    if on_host >= WORTH * whole:
        yield said(_SAY["to_cores"], time=(Kind.DURATION, per.candidate(on_host)))
        left -= on_host
    numbers = old.each(other), new.each(own)
    api = _API.get(name.removesuffix(BACKWARD_SUFFIX))
    yield from (_of_type(cells) if len(other) else (said(_SAY[cells["only"]]),))
    if (
        api is not None
        and numbers[1] > max(numbers[0], 1)
        and 2 * int(new.time[own[_by_others(new, own)]].sum()) > whole
    ):
        yield said(_SAY["to_fused"], api=(Kind.NAME, api))
        left = 0
    changed = int(new.time[layout].sum())
    if changed >= WORTH * whole:
        yield said(_SAY["to_layout"], time=(Kind.DURATION, per.candidate(changed)))
        left -= changed
    if len(other) and numbers[1] - numbers[1] * len(layout) / len(own) >= 2 * numbers[0]:
        yield said(_SAY["to_split"], candidate=(Kind.NUMBER, numbers[1]), base=(Kind.NUMBER, numbers[0]))
    calls = old.calls_of(other) / per.base_steps, new.calls_of(own) / per.candidate_steps
    if (oftener := min(_by_number(calls, whole), left)) >= WORTH * whole:
        values = {"base": (Kind.NUMBER, calls[0]), "candidate": (Kind.NUMBER, calls[1])}
        yield said(_SAY["to_often"], **values, time=(Kind.DURATION, per.candidate(oftener)))
        left -= oftener
    blocks, cores = cells["blocks"], cells["cores"]
    if isinstance(blocks, float) and isinstance(cores, int) and blocks <= cores / 2 and not on_host:
        yield said(_SAY["to_fill"], blocks=(Kind.COUNT, round(blocks)), cores=(Kind.COUNT, cores))
    if left >= WORTH * whole:
        yield from _of_kernels(cells, round(left / per.candidate_steps) if len(other) else None)


def _of_type(cells: dict[str, Any]) -> Iterator[Message]:
    """Where the other side computes in a faster type."""
    before, after = cells["base_precision"], cells["candidate_precision"]
    if faster := _faster_type(before, after):
        yield said(_SAY[faster], base=(Kind.TEXT, before), candidate=(Kind.TEXT, after))


def _by_number(calls: tuple[float, float], whole: int) -> int:
    """How much of the candidate's time is by its calling the operator more often a step than the base."""
    return round(whole * (1 - calls[0] / calls[1])) if 0 < calls[0] < calls[1] else 0


def _by_others(work: Work, own: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which kernels of a fused operator other operators launch: those that do its work, or those inside it."""
    ops, launched = work.calls.ops, work.op[own]
    found: NDArray[np.bool_] = work.calls.grouped[work.unit[own]] | (ops.own[launched] != ops.code[launched])
    return found


def _of_kernels(cells: dict[str, Any], left: int | None) -> Iterator[Message]:
    """What binds the kernels, in which so much is left to win, if the other side has any for the same work."""
    bound, time = cells["bound"], {} if left is None else {"time": (Kind.DURATION, left)}
    if not isinstance(bound, NotMeasured):
        clock = f" ({cells['clock']:.0f} MHz)" if isinstance(cells["clock"], float) else ""
        values = {"unit": (Kind.TERM, bound), "share": (Kind.SHARE, cells["bound_share"]), "clock": (Kind.TEXT, clock)}
        yield said(_SAY["to_bound" if left is None else "to_kernel"], **time, **values)
    elif time:
        yield said(_SAY["to_record"], **time)


def _faster_type(before: str | None, after: str | None) -> str | None:
    """What to say where products in the type before are faster by their nature, and how to get it.

    Autocast knows 16 bits and no fewer; HF32 is of no use where the other side computes in these.
    """
    place = {name: place for place, names in enumerate(_FASTER) for name in names.split()}
    if before not in place or after not in place or place[after] >= place[before]:
        return None
    if place[before] >= place["bf16"] > place[after]:
        return "to_autocast"
    return "to_hf32" if before.endswith(("tf32", "hf32")) else "to_precision"


def said(sentence: str, **values: tuple[Kind, Value]) -> Message:
    """A sentence with its values."""
    return Message(sentence, tuple((name, *value) for name, value in values.items()))
