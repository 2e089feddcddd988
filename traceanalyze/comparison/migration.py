"""What an engineer works through who moves a model from a GPU to an NPU: operators and other parts by time to win."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import collectives, description_rows, types
from traceanalyze.analyses.communication.parts import NETWORK, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct as distinct_keys
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED, counted_events
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.kernels.ascend import tensor_bytes
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.kernels import DYNAMIC, UNITS
from traceanalyze.analyses.kernels.op_work import device_peaks, precisions, roof_share
from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.comparison import columns
from traceanalyze.comparison.attribution import headline, to_check
from traceanalyze.comparison.calls import Calls, calls_of, described
from traceanalyze.comparison.canonical_ops import Fused, fused_names
from traceanalyze.comparison.collectives import link_rates, sent
from traceanalyze.comparison.names import BACKWARD_SUFFIX, canonical
from traceanalyze.comparison.operators import frames_of_longest
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import Reasons
from traceanalyze.comparison.results import Pair, Pairs, Part, Time
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import MISSING, distinct
from traceanalyze.model.device_peaks import Peaks
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.op_calls import listed_shapes
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, Word, declare, sentences
from traceanalyze.model.vocabulary import DeviceClass

_SAY = sentences(
    to_cores="{time} of it runs on the AI CPU, as no core has a kernel for its types: take other types or operators",
    to_fused="one fused operator does it: {api}",
    to_layout=(
        "{time} of it changes layouts or types (TransData, Cast): keep one format and type, with "
        "torch_npu.npu_format_cast once before the loop"
    ),
    to_precision=(
        "computes in {candidate}, the other side in {base}: bf16 and fp16 by torch.autocast('npu'), HF32 by "
        "torch.npu.matmul.allow_hf32 and torch.npu.conv.allow_hf32"
    ),
    to_split="{candidate} kernels a call, {base} on the other side",
    to_kernel=(
        "{time} more than the other side in kernels for the same work, in which the {unit} works {share} of the "
        "time{clock}"
    ),
    to_record=(
        "{time} more than the other side in kernels for the same work; what binds them tells a recording of level 1 "
        "with aic_metrics"
    ),
    to_only="the other side has no operator of this name",
    to_unused="the other side's device does nothing for this operator",
    to_across="for this operator the other side only copies between host and device (memory ops)",
    to_host="the host runs {ops}, the other side its device: take other types or operators",
    to_queue="TASK_QUEUE_ENABLE is {level}: 2 takes work off the thread that launches",
    to_bind="CPU_AFFINITY_CONF is off: 2 keeps each process on cores near its device",
    to_fill="{blocks} of {cores} cores are used: larger or batched tensors",
    to_wait="{time} of it waits for other ranks: find what makes them late",
    to_wait_for=(
        "{time} of it waits for other ranks, longest for rank {rank}: look in its recording for what makes it late"
    ),
    to_move="{time} of it moves data{links}: look at the links, or compute beside it",
    to_join="{time} of it moves data{links}, {size} at a time: fewer and larger messages, or compute beside it",
    to_resend=(
        "one sends by RDMA for {time}, which repeats after 4 s what is lost: look at the network between the machines "
        "(hccn_tool)"
    ),
    to_in="{time} of it in {op}",
    to_before="{time} of it before {op}",
    to_gaps=(
        "{count} pieces of queued work begin {time} after the one before them, as long as the device takes from one to "
        "the next while it is recorded: fewer and larger kernels, by fused operators and without changes of layout"
    ),
    to_check="{check}",
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
_AMOUNTS = ("base_time_ns", "candidate_time_ns", "ratio", "base_sum_ns", "candidate_sum_ns")
_WORTH = 0.05
"""Own: part of an operator's time, from which on something about it is said."""

_MOSTLY = 0.2
"""Own: part of what is to win in a part of the step, from which on an operator is named for it."""

_TABLE = declare(
    "migration",
    "From GPU to NPU: what there is to win (per step)",
    columns.PLACE,
    Column("op", Kind.NAME, "operator, kind of collective, or part of the step", heading="what"),
    *columns.both(time_ns=""),
    Column("win_ns", Kind.DURATION, "time above what the base takes, by the peaks of both devices", heading="to win"),
    columns.ratio(),
    Column("peak_ratio", Kind.RATIO, "candidate over base as the peaks of both devices allow", heading="peaks allow"),
    Column("bound", Kind.TERM, "unit of the cores that works longest", heading="bound by"),
    Column("bound_share", Kind.SHARE, "part of the time in which it works", heading="of the time"),
    Column("to_do", Kind.LIST, "what to do about it", heading="what to do"),
    *columns.minor(
        Column("kernels", Kind.NAME, "types of the candidate's kernels, and how many a call", heading="kernel types"),
        Column("core", Kind.TEXT, "cores they ran on"),
        Column("blocks", Kind.NUMBER, "blocks of its longest kernel"),
        Column(
            "cores",
            Kind.COUNT,
            "most blocks that one kernel of the profile runs at once on such cores as its longest",
        ),
        Column("layout_ns", Kind.DURATION, "time of kernels that only change layout or type"),
        Column("layout_bytes", Kind.BYTES, "what these read"),
        Column(
            "base_precision", Kind.TEXT, "base: type that its kernels, or its products if any, compute in", side="base"
        ),
        Column("candidate_precision", Kind.TEXT, "candidate: the same", side="candidate"),
        Column("base_shapes", Kind.NAME, "base: shapes of the tensors of the longest call", side="base"),
        Column("candidate_shapes", Kind.NAME, "candidate: the same", side="candidate"),
        Column("base_dtypes", Kind.TEXT, "base: their types", side="base"),
        Column("candidate_dtypes", Kind.TEXT, "candidate: their types", side="candidate"),
        *(
            Column(
                f"{side}_roof",
                Kind.SHARE,
                f"{side}: least time that its device needs over the time taken",
                heading=f"{side} of roofline",
                side=side,
            )
            for side in ("base", "candidate")
        ),
        Column(
            "dynamic",
            Kind.SHARE,
            "of the candidate's kernels those whose shapes are known only when they run",
            heading="dynamic shapes",
        ),
        Column("clock", Kind.NUMBER, "clock of its cores, MHz, mean weighted by time", heading="clock (MHz)"),
        *(
            Column(
                f"{side}_rate",
                Kind.NUMBER,
                f"{side}: bytes of collectives over their time, waiting included, 10⁹ a second",
                heading=f"{side} GB/s",
                side=side,
            )
            for side in ("base", "candidate")
        ),
        Column(
            "links",
            Kind.TEXT,
            "candidate: kinds of links of the collectives, and what all of a kind reach while any moves data",
        ),
        Column("frame", Kind.PLACE, "candidate: source line of the longest piece", heading="source line"),
    ),
    *columns.SUMS,
    ranked=True,
)


class _Place(NamedTuple):
    """Where a part of the step is longer in the candidate."""

    longer: int
    """By how much, ns a step."""
    message: str
    op: str
    frame: str | None


class _Moves(NamedTuple):
    """How collectives of a kind move data."""

    rates: str | NotMeasured
    """What each kind of link reaches."""
    size: int | None
    """Mean of what is sent at a time, bytes."""
    longest: int
    """How long the one takes that sends longest over a network (RDMA), ns."""


class _About(NamedTuple):
    """What else is known of the candidate's idle time."""

    environment: Mapping[str, str]
    on_host: Sequence[str]
    """Operators that the host runs instead."""
    between: NDArray[np.int64]
    """Gaps between queued work."""
    check: Mapping[str, str]
    """By part what to check."""
    waits: frozenset[str]
    """Operators in which the host waits for the device."""


class _Work(NamedTuple):
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


def _work(context: Context, options: CompareOptions, fused: Fused) -> _Work:
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
    return _Work(context, names, of, event, time, op, row, work.group[row], unit, calls, computes)


def _ran(work: _Work) -> dict[str, str]:
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


def migrated(base: Side, candidate: Side) -> bool:
    """Whether the candidate is of an NPU and the base of another vendor's device."""
    return candidate.info.vendor == "ascend" and base.info.vendor in {"cuda", "rocm"}


def migration_table(
    base: Side,
    candidate: Side,
    every: Sequence[Part],
    pairs: Pairs | None,
    idle: Mapping[str, Sequence[_Place]],
    options: CompareOptions,
    per: PerStep,
) -> Table:
    """Operators, collectives and other parts of the step by what the candidate would win at the base's pace.

    An operator of matrix products may take as much longer as the peak rates of both devices in the types they compute
    in differ, any other as their memory bandwidths; where a device is not known, as long as in the base. What only the
    candidate has is to win as a whole. Of communication counts what nothing hides. Copies and fills inside the base's
    memory count for operators for which the candidate has kernels instead, and not as copies.
    """
    fused = fused_names(base.context, candidate.context, options)
    old, new = (_work(side.context, options, fused) for side in (base, candidate))
    before, after = _paired(old, new)
    inside = np.concatenate([old.event[own[~old.computes[own]]] for own in before.values()] or [old.event[:0]])
    copied = int(base.exclusive[inside].sum())
    parts = [
        part._replace(base=part.base - copied) if part.key == "memory_ops" and isinstance(part.base, int) else part
        for part in headline(every)
    ]
    collectives = list(_collectives(candidate.context, pairs, per))
    about = _About(
        candidate.context.trace.environment or {},
        _on_host(old, new),
        _between(candidate.context),
        {part.key: to_check(every, part.key, per) for part in parts},
        frozenset(canonical(row.op, options) for row in sync_points(candidate.context).records() if row.op),
    )
    others = _others(parts, idle, about, per)
    others = (row for row in others if row["op"] != "communication" or not collectives)
    rows = [*_operators((old, before), (new, after), per), *collectives, *others]
    # What a side did not measure comes last, and says so.
    rows.sort(key=lambda row: (isinstance(row["win_ns"], NotMeasured) or -row["win_ns"], row["op"]))
    unknown = dict.fromkeys(_TABLE.keys)
    return _TABLE.fill_records({**unknown, "place": place, **row} for place, row in enumerate(rows, start=1))


def _paired(old: _Work, new: _Work) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.int64]]]:
    """By operator the kernels of both, and the base's copies and fills where the candidate has kernels for them."""
    after, copies, moved = new.rows(new.computes), new.rows(~new.computes), old.rows(~old.computes)
    before = old.rows(old.computes)
    for name in after.keys() & moved.keys() - copies.keys():
        before[name] = np.concatenate((before.get(name, moved[name][:0]), moved[name]))
    return before, after


def _operators(
    base: tuple[_Work, Mapping[str, NDArray[np.int64]]],
    candidate: tuple[_Work, Mapping[str, NDArray[np.int64]]],
    per: PerStep,
) -> Iterator[dict[str, Any]]:
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
        bound, share = _bound(new, np.setdiff1d(own, layout) if len(layout) < len(own) else own)
        # Work of unknown operators has its counterpart among that of the base's known ones.
        unknown = name == UNLINKED and not len(other)
        win = NotMeasured("operator_unknown") if unknown else _win(sums, peak, per)
        cells = {
            "op": Word("all_work") if name == "" else name,
            **_amounts(sums, per),
            "win_ns": win,
            "peak_ratio": NotMeasured("unknown_device") if peak is None else peak,
            "bound": bound,
            "bound_share": share,
            **_described(old, new, other, own),
        }
        cells |= {"blocks": _blocks(new, own), "dynamic": _dynamic(new, own), "clock": _clock(new, own)}
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


def _on_host(old: _Work, new: _Work) -> list[str]:
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


def _unmeasured(op: str, base: Time, candidate: Time, per: PerStep) -> dict[str, Any]:
    """A row of which a side is not measured."""
    amounts = per.amounts(base, candidate)
    why = base if isinstance(base, NotMeasured) else candidate
    return {"op": op, **{key: amounts[key] for key in _AMOUNTS}, "win_ns": why, "to_do": ()}


def _exposed(sides: Sequence[Any]) -> Time:
    """Exposed time of collectives of a side."""
    times = [side["exposed_ns"] for side in sides if side]
    return next((time for time in times if isinstance(time, NotMeasured)), None) or sum(times)


def _amounts(sums: tuple[int, int], per: PerStep) -> dict[str, Value]:
    found = per.amounts(*sums)
    return {key: found[key] for key in _AMOUNTS}


def _win(sums: tuple[int, int], peak: float | None, per: PerStep) -> int:
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


def _numbers(work: _Work, own: NDArray[np.int64], field: str, missing: int = MISSING) -> NDArray[np.int64]:
    return work.context.trace.events.numbers(field, work.context.device.row[work.event[own]], missing)


def _bound(work: _Work, own: NDArray[np.int64]) -> tuple[str | NotMeasured, float | NotMeasured]:
    """The unit that works longest, and the part of the time of all kernels with counters in which it does."""
    untold = NotMeasured("no_core_counters")
    row = work.context.device.row[work.event[own]]
    busy = {}
    for unit, field in UNITS.items():
        worked = work.context.trace.events.numbers(field, row)
        told = worked != MISSING
        busy[unit] = int(worked[told].sum()) / max(int(work.context.trace.events.dur[row[told]].sum()), 1)
    unit = max(busy, key=lambda each: busy[each])
    return (f"unit_{unit}", busy[unit]) if busy[unit] else (untold, untold)


def _texts(work: _Work, own: NDArray[np.int64], field: str) -> list[tuple[str, int, int]]:
    """What a text of the profile says of kernels, with their number and time, most time first."""
    rows = group(_numbers(work, own, field, -1))
    codes = _numbers(work, own[rows.first], field, -1).tolist()
    text = work.context.trace.strings.text
    found = zip(codes, rows.count().tolist(), rows.sum(work.time[own]).tolist(), strict=True)
    return sorted(((text(code), count, time) for code, count, time in found if code >= 0), key=lambda each: -each[2])


def _named(work: _Work, own: NDArray[np.int64], field: str, pattern: Any) -> NDArray[np.bool_]:
    """Which kernels the profile says this of."""
    code = _numbers(work, own, field, -1)
    found = work.context.trace.strings.matches(np.maximum(code, 0).astype(np.int32), pattern.search)
    return found & (code >= 0)


def _read(work: _Work, own: NDArray[np.int64]) -> int | NotMeasured:
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


def _described(old: _Work, new: _Work, other: NDArray[np.int64], own: NDArray[np.int64]) -> dict[str, Value]:
    calls = len(own) / new.each(own)
    kernels = ", ".join(f"{text} ×{count / calls:.3g}" for text, count, _ in _texts(new, own, "op_type")[:4])
    found: dict[str, Value] = {
        "kernels": kernels or None,
        "core": ", ".join(text for text, _, _ in _texts(new, own, "core")) or None,
        "frame": frames_of_longest(new.context, np.zeros(len(own), np.int64), new.event[own], new.time[own])[0],
    }
    for side, work, rows in (("base", old, other), ("candidate", new, own)):
        launched = work.op[rows] >= 0
        longest = work.op[rows[launched]][np.argmax(work.time[rows[launched]])] if launched.any() else -1
        row = work.context.op_nest.row[[longest]] if longest >= 0 else None
        for field in ("shapes", "dtypes"):
            of_op = None if row is None else described(work.context, field, row)[0]
            # Profiles of Ascend have the tensors of kernels where those of operators were not recorded.
            of_kernel = (text for text, _, _ in _texts(work, rows, f"kernel_{field}")) if len(rows) else iter(())
            found[f"{side}_{field}"] = of_op or next(of_kernel, None)
    return found


_CUBE = regex(r"^(AI_CORE|AIC|MIX_AIC)$")
"""Cores of kernels that take a cube core for each block."""


def _cores(work: _Work, own: NDArray[np.int64]) -> int | NotMeasured:
    """Most blocks that one kernel of the profile runs at once, on the cores of the longest of these.

    Kernels on cube cores have at most one for each; those on vector cores may have more: of these there are two to a
    cube core.
    """
    blocks, cubes = work.context.once(_most_blocks)
    if not cubes:
        return NotMeasured("no_core_counters")
    longest = own[[int(np.argmax(work.time[own]))]]
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


def _blocks(work: _Work, own: NDArray[np.int64]) -> float | NotMeasured:
    found = _numbers(work, own[[int(np.argmax(work.time[own]))]], "block_dim", 0)
    return float(found[0]) if found[0] > 0 else NotMeasured("no_core_counters")


def _dynamic(work: _Work, own: NDArray[np.int64]) -> float | NotMeasured:
    told = own[_numbers(work, own, "op_state", -1) >= 0]
    return float(_named(work, told, "op_state", DYNAMIC).mean()) if len(told) else NotMeasured("vendor_does_not_say")


def _clock(work: _Work, own: NDArray[np.int64]) -> float | NotMeasured:
    clock = ratio_argument(work.context, "core_clock", work.context.device.row[work.event[own]])
    told = ~np.isnan(clock) & (work.time[own] > 0)
    return (
        float(np.average(clock[told], weights=work.time[own][told])) if told.any() else NotMeasured("no_core_counters")
    )


_FASTER = ("fp64", "fp32", "fp32/tf32", "tf32", "fp16", "bf16", "fp8", "int8")
"""Types of products by rate; bf16 and fp16 are as fast as each other."""


def _advice(
    name: str,
    old: _Work,
    new: _Work,
    other: NDArray[np.int64],
    own: NDArray[np.int64],
    cells: dict[str, Any],
    per: PerStep,
) -> Iterator[Message]:
    """What to do, the surest first; nothing where nothing is to win."""
    whole, layout = int(new.time[own].sum()), cells["layout"]
    left = cells["win_ns"] * per.candidate_steps
    if left < _WORTH * whole:
        return
    on_host = int(new.time[own[_named(new, own, "core", _AI_CPU)]].sum())
    if on_host >= _WORTH * whole:
        yield _said("to_cores", time=(Kind.DURATION, per.candidate(on_host)))
        left -= on_host
    if not len(other):
        yield _said(cells["only"])
        return
    before, after = cells["base_precision"], cells["candidate_precision"]
    if _slower_type(before, after):
        yield _said("to_precision", base=(Kind.TEXT, before), candidate=(Kind.TEXT, after))
    numbers = old.each(other), new.each(own)
    api = _API.get(name.removesuffix(BACKWARD_SUFFIX))
    if api is not None and numbers[1] > numbers[0]:
        yield _said("to_fused", api=(Kind.NAME, api))
        left = 0
    changed = int(new.time[layout].sum())
    if changed >= _WORTH * whole:
        yield _said("to_layout", time=(Kind.DURATION, per.candidate(changed)))
        left -= changed
    if numbers[1] - numbers[1] * len(layout) / len(own) >= 2 * numbers[0]:
        yield _said("to_split", candidate=(Kind.NUMBER, numbers[1]), base=(Kind.NUMBER, numbers[0]))
    blocks, cores = cells["blocks"], cells["cores"]
    if isinstance(blocks, float) and isinstance(cores, int) and blocks <= cores / 2 and not on_host:
        yield _said("to_fill", blocks=(Kind.COUNT, round(blocks)), cores=(Kind.COUNT, cores))
    if left >= _WORTH * whole:
        yield _slower(cells, round(left / per.candidate_steps))


def _slower(cells: dict[str, Any], left: int) -> Message:
    """What is left to win is in kernels for the same work, and what binds these."""
    time, bound, share = (Kind.DURATION, left), cells["bound"], cells["bound_share"]
    if isinstance(bound, NotMeasured):
        return _said("to_record", time=time)
    clock = f" ({cells['clock']:.0f} MHz)" if isinstance(cells["clock"], float) else ""
    return _said("to_kernel", time=time, unit=(Kind.TERM, bound), share=(Kind.SHARE, share), clock=(Kind.TEXT, clock))


def _slower_type(before: str | None, after: str | None) -> bool:
    """Whether products in the type after are slower by their nature."""
    if before not in _FASTER or after not in _FASTER or {before, after} == {"fp16", "bf16"}:
        return False
    return _FASTER.index(after) < _FASTER.index(before)


def _said(key: str, **values: tuple[Kind, Value]) -> Message:
    return Message(_SAY[key], tuple((name, *value) for name, value in values.items()))


def _collectives(candidate: Context, pairs: Pairs | None, per: PerStep) -> Iterator[dict[str, Any]]:
    """Kinds of collectives, by what of them nothing hides."""
    found: dict[str, list[Pair]] = {}
    for pair in () if pairs is None or isinstance(pairs, NotMeasured) else pairs:
        found.setdefault(str(pair.shared["collective"]), []).append(pair)
    links, waits = (_links(candidate), _waits(candidate)) if found else ({}, {})
    for kind, each in found.items():
        old, new = (_exposed(sides) for sides in _sides(each))
        if isinstance(old, NotMeasured) or isinstance(new, NotMeasured):
            yield _unmeasured(kind, old, new, per)
        elif new:
            cells, moves = _plain(kind, (old, new), "communication", per), links.get(kind)
            if cells["to_do"] and kind in waits:
                cells["to_do"] = tuple(_of_collective(new, waits[kind], moves, per)) or cells["to_do"]
            rates = {f"{side}_rate": _rate(each, side) for side in ("base", "candidate")}
            yield {**cells, **rates, "links": None if moves is None else moves.rates}


def _waits(context: Context) -> dict[str, tuple[int, int | None]]:
    """By kind of collective the exposed time in which it waits for other ranks, where tasks tell, and for which most.

    The rank is one inside the group unless the group's ranks are known.
    """
    found: dict[str, list[Any]] = {}
    table = context.once(collectives)
    for row in table.records() if "exposed_wait_ns" in table.keys else ():
        found.setdefault(row.collective, []).append(row)
    return {
        kind: (sum(row.exposed_wait_ns for row in rows), _longest_for(rows))
        for kind, rows in found.items()
        if all(isinstance(row.exposed_wait_ns, int) for row in rows)
    }


def _longest_for(rows: Sequence[Any]) -> int | None:
    rank = max(rows, key=lambda row: row.exposed_wait_ns).waited_for
    return rank if isinstance(rank, int) else None


def _of_collective(time: int, waits: tuple[int, int | None], moves: _Moves | None, per: PerStep) -> Iterator[Message]:
    """Of exposed communication what is waiting, and what is not."""
    (wait, rank), worth, links = waits, _WORTH * time, "" if moves is None else moves.rates
    if moves is not None and moves.longest >= _RESENT:
        yield _said("to_resend", time=(Kind.DURATION, moves.longest))
    if wait >= worth:
        whom = {} if rank is None else {"rank": (Kind.COUNT, rank)}
        yield _said("to_wait_for" if whom else "to_wait", time=(Kind.DURATION, per.candidate(wait)), **whom)
    if time - wait >= worth:
        over, size = f" ({links})" if links and isinstance(links, str) else "", moves.size if moves else None
        values: dict[str, tuple[Kind, Value]] = {"time": (Kind.DURATION, per.candidate(time - wait))}
        values["links"] = Kind.TEXT, over
        small = size is not None and size < _SMALL
        yield _said("to_join", **values, size=(Kind.BYTES, size)) if small else _said("to_move", **values)


def _sides(each: Sequence[Pair]) -> tuple[list[Any], list[Any]]:
    return [pair.base for pair in each], [pair.candidate for pair in each]


def _rate(each: Sequence[Pair], side: str) -> float | NotMeasured | None:
    """10⁹ bytes a second of a side's collectives."""
    own = [cells for pair in each if (cells := getattr(pair, side))]
    amounts = [cells[key] for cells in own for key in ("bytes", "total_ns")]
    if lost := next((amount for amount in amounts if isinstance(amount, NotMeasured)), None):
        return lost
    time = sum(cells["total_ns"] for cells in own)
    return sum(cells["bytes"] for cells in own) / time if time else None


_RESENT = 4_000_000_000
"""msprof-analyze advisor: RDMA waits as long, ns, before it sends again."""
_SMALL = 1 << 20
"""msprof-analyze advisor: what is small between machines, bytes; HCCL cuts messages, so that inside one less is too."""


def _links(context: Context) -> dict[str, _Moves]:
    """By kind of collective how it moves data."""
    event = context.once(device_work).event
    event = event[context.device.klass[event] == DeviceClass.COMM]
    kind = types(context, event, description_rows(context, event))
    found = dict[str, _Moves]()
    for each in np.unique(kind).tolist():
        own = event[kind == each]
        rates, (task, sizes) = (one(context, context.device.row[own]) for one in (link_rates, sent))
        text = ", ".join(f"{link} {rate / 1e9:.3g} GB/s" for link, rate in sorted((rates or {}).items()))
        found[TYPES[each]] = _Moves(
            NotMeasured("no_collective_tasks") if rates is None else text,
            int(sizes.mean()) if len(sizes) else None,
            _longest_far(context, task[went_over(context, task, NETWORK)]),
        )
    return found


def _longest_far(context: Context, task: NDArray[np.int64]) -> int:
    """Time in which the collective sends something that does so longest, of these tasks."""
    of, busy = context.trace.events.numbers("part_of", task), context.trace.events.active
    return max((intervals.total(busy(task[of == each])) for each in distinct(of).tolist()), default=0)


def idle_places(found: tuple[Reasons, Reasons], keys: Mapping[str, str], per: PerStep) -> dict[str, list[_Place]]:
    """By part of the step (`keys`) operators and calls in or before which the device idles longer, the most first."""
    places: dict[str, list[_Place]] = {}
    said = {"in_op": "to_in", "next_op": "to_before"}
    for (part, what, name), after in found[1].items():
        before = found[0].get((part, what, name))
        longer = per.diff(before.time if before else 0, after.time)
        if what in said and longer > 0:
            places.setdefault(keys[part], []).append(_Place(longer, said[what], name, after.frame))
    return {part: sorted(each, key=lambda place: -place.longer) for part, each in places.items()}


def _others(
    parts: Sequence[Part],
    idle: Mapping[str, Sequence[_Place]],
    about: _About,
    per: PerStep,
) -> Iterator[dict[str, Any]]:
    """Idle time by cause, and copies."""
    between = about.between
    for part in parts:
        if isinstance(part.base, NotMeasured) or isinstance(part.candidate, NotMeasured):
            yield _unmeasured(Word(part.key), part.base, part.candidate, per)
        elif part.candidate and part.key not in {"compute", "communication"}:
            check = about.check[part.key]
            cells = _plain(Word(part.key), (part.base, part.candidate), check, per)
            if part.key == "device_side" and 2 * int(between.sum()) >= part.candidate:
                each = _said(
                    "to_gaps",
                    count=(Kind.COUNT, per.candidate(len(between))),
                    time=(Kind.DURATION, int(np.median(between))),
                )
                yield cells | {"to_do": (each,) if cells["to_do"] else ()}
                continue
            longest = [place for place in idle.get(part.key, ())[:2] if place.longer >= _MOSTLY * cells["win_ns"]]
            if cells["to_do"] and longest:
                where = (_said(at.message, time=(Kind.DURATION, at.longer), op=(Kind.NAME, at.op)) for at in longest)
                # What the device does without after the host has waited for it comes of the waiting.
                after_wait = longest[0].message == "to_in" and longest[0].op in about.waits
                told = (_checked("sync"),) if after_wait and part.key == "untraced" else cells["to_do"]
                cells |= {"to_do": (*where, *told), "frame": longest[0].frame}
            if cells["to_do"] and check in {"dispatch", "host_op"}:
                cells["to_do"] += tuple(_queue(about.environment))
            if cells["to_do"] and about.on_host and part.key in {"sync", "memory_ops", "host_op"}:
                cells["to_do"] += (_said("to_host", ops=(Kind.NAME, ", ".join(about.on_host[:4]))),)
            yield cells


def _between(context: Context) -> NDArray[np.int64]:
    """Idle time, ns, before each piece of work that was launched while other work ran."""
    if not context.devices:
        return np.zeros(0, np.int64)
    gaps, steps = context.once(idle_gaps), context.steps
    inside = intervals.contains(intervals.merge(steps.start, steps.end), gaps.start)
    queued = inside & (gaps.call >= 0) & (gaps.launch_end <= gaps.start)
    found: NDArray[np.int64] = (gaps.end - gaps.start)[queued]
    return found


def _queue(environment: Mapping[str, str]) -> Iterator[Message]:
    """What the environment, where the profile states it, leaves off."""
    level = environment.get("TASK_QUEUE_ENABLE", "2")
    if level != "2":
        yield _said("to_queue", level=(Kind.TEXT, level or "1"))
    if environment.get("CPU_AFFINITY_CONF") in {"", "0"}:
        yield _said("to_bind")


def _plain(name: str, sums: tuple[int, int], check: str, per: PerStep) -> dict[str, Any]:
    win = _win(sums, None, per)
    return {"op": name, **_amounts(sums, per), "win_ns": win, "to_do": (_checked(check),) if win else ()}


def _checked(check: str) -> Message:
    return _said("to_check", check=(Kind.TERM, f"check_{check}"))
