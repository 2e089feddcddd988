"""What makes a section of a comparison less comparable, or not comparable at all."""

from collections.abc import Iterator, Mapping
from math import prod
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.ranges import description_rows, sizes, types
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.op_work import precisions
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.quality.quality import SKIPPED, unknown_categories
from traceanalyze.analyses.steps.steady import settled
from traceanalyze.comparison.attribution import IDLE, OUTSIDE_CALLS, calls_of_one_level, idle_parts
from traceanalyze.comparison.names import canonical
from traceanalyze.comparison.results import Caveat
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Table, sentences
from traceanalyze.model.vocabulary import DeviceClass, EventKind

CAVEATS = sentences(
    work_shapes=(
        "Not the same work: the tensors of {share} of the time are of another size in the candidate, {ratio} times as "
        "large in all."
    ),
    work_grids=(
        "Not the same work: the launches of {share} of the kernels' time are of another size in the candidate, {ratio} "
        "times as large in all."
    ),
    work_unmatched=(
        "Not the same work: only {share} of the device time is of operators or kernels that both sides have."
    ),
    work_number="Not the same work: the candidate does what takes {share} of the time {ratio} times as often.",
    work_inputs=(
        "Not the same work: the candidate copies {ratio} times as much to the device, {candidate_bytes} a step instead "
        "of {base_bytes}."
    ),
    work_collectives=(
        "Not the same work: the collectives of the candidate move {ratio} times as much, {candidate_bytes} a step "
        "instead of {base_bytes}."
    ),
    precision_differs=(
        "Precision differs: base {base} ({base_share} of the time of matrix products, convolutions and attention), "
        "candidate {candidate} ({candidate_share})."
    ),
    no_device_on_either="No device was recorded: host time is compared.",
    no_device_on_one="The {side} has no device events: only the length of the step can be compared.",
    devices_differ="Different devices: base {base}, candidate {candidate}.",
    idle_as_one=(
        "The {side} has no runtime calls, so causes of idle time cannot be told apart: idle time is compared as one "
        "part, and runtime calls are not compared."
    ),
    outside_calls_as_one=(
        "The {side} has no host operators: idle time outside runtime calls (data loading, operators, waiting for "
        "peers, untraced) is compared as one part."
    ),
    levels_differ=(
        "Different profiler levels: base {base}, candidate {candidate}; what only the higher level records is not "
        "comparable."
    ),
    levels_differ_in_calls=(
        "Different profiler levels: base {base}, candidate {candidate}. Level0 leaves out most runtime calls and what "
        "collectives consist of: idle time in host operators, launches and waits is compared as one part; runtime "
        "calls and waiting for other ranks are not comparable."
    ),
    whole_trace_on_one=(
        "The {side} has no step marker: the whole of its device work counts as one step, so times per step are not "
        "comparable."
    ),
    device_steps_on_one=(
        "The {side} has nothing of the host: its step is the span of the device's work, without the time before and "
        "after it, so lengths of steps and idle time are not comparable."
    ),
    whole_traces=(
        "No step markers: from first to last device event counts as one step; compare only recordings of equal work."
    ),
    steps_differ="Steps are chosen in different ways: base {base}, candidate {candidate}.",
    world_sizes_differ="Runs of different size: base {base} rank(s), candidate {candidate}.",
    rank_counts_differ="Not as many ranks were recorded: base {base}, candidate {candidate}.",
    ranks_differ="Different ranks are compared: base rank {base}, candidate rank {candidate}.",
    coverage_differs=(
        "The operator is known for {base_share} of compute time in the base, {candidate_share} in the candidate: "
        "differences between operators are partly those of recording, so compute is compared by kind of kernel."
    ),
    clocks_differ=(
        "Different clocks: base {base_ns}, candidate {candidate_ns}; the coarse one shows short kernels too long or "
        "without duration."
    ),
    api_on_one="The {side} has no runtime calls: they are not compared.",
    host_ops_on_one="The {side} has no host operators: they are not compared.",
    shapes_on_one="The {side} has no shapes: nothing can be matched by shape.",
    modules_on_one="The {side} has no modules: they are not compared.",
    stacks_on_one="The {side} has no Python stacks: source lines are known for the other side only.",
    memory_on_one="The {side} has no memory records: memory is not compared.",
    options_differ=(
        "Recording options that slow the host down were on for one side only: base {base}, candidate {candidate}; host "
        "time is longer there for that reason too."
    ),
    side_truncated="The file of the {side} is cut short: later work is missing.",
    side_salvaged="Broken in the file of the {side} and left out: {count} event(s) or place(s).",
    side_unknown=(
        "Not counted in the {side}: {count} event(s), whose categories are not known ({categories}); --category "
        "{first}=kernel maps them."
    ),
    side_impossible="Cut or left out in the {side}: {count} device event(s) at impossible times, or there twice.",
    side_left_out="Incomplete in the {side} and left out: {steps} step(s).",
    side_start_left_out="Of the start of the {side} and left out: {steps} step(s), over twice as long as usual.",
    side_cycle_left_out="Left out in the {side}: {steps} step(s), so that long and short ones are whole cycles.",
)

COVERAGE_POINTS = 5
"""Shares of compute time with a known operator that differ by more percentage points make operators incomparable."""
_OPTIONS = ("with_stack", "record_shapes", "profile_memory")
"""Recording options that make the host slower (check Q11)."""
_IDLE_CAVEATS = {"idle_as_one": "api", "outside_calls_as_one": "host_ops"}


def caveats(base: Side, candidate: Side) -> tuple[Caveat, ...]:
    """Everything that is to be said before the sides are compared, what touches most first."""
    return tuple(
        caveat
        for check in (
            *(_work, _precision, _device, _idle, _levels, _steps, _ranks, _coverage, _clocks, _recorded, _options),
            _damage,
        )
        for caveat in check(base, candidate)
    )


def coverage(side: Side) -> tuple[int, int]:
    """Compute time of known operators, and all compute time, ns; sums of durations."""
    work = side.context.once(device_work)
    compute = side.context.device.klass[work.event] == DeviceClass.COMPUTE
    return int(work.time[compute & (work.op >= 0)].sum()), int(work.time[compute].sum())


def coverage_differs(base: Side, candidate: Side) -> bool:
    """Whether so much more compute time of one side has a known operator that operators cannot be compared (M5)."""
    (known, time), (other_known, other_time) = coverage(base), coverage(candidate)
    if not time or not other_time:
        return False
    return 100 * abs(known * other_time - other_known * time) > COVERAGE_POINTS * time * other_time


OTHER_WORK = ("work_unmatched", "work_number", "work_shapes", "work_grids")
"""Caveats that make percentages of the two sides meaningless."""
SAID_FIRST = ("work_inputs", "work_collectives", "device_steps_on_one")
"""Caveats that belong before any percentage, though the work is mostly the same."""
MATCHED = 0.5
"""Share of the device time of both sides that must have a partner for them to do the same work."""
_ALIKE = 1.25
"""Up to how much larger work of one name may be on one side and still be called the same."""
_DIMENSIONS = regex(r"\[(\d+(?:,\s*\d+)*)\]")
_OTHER = 1.5
"""From how much more bytes on one side they are told."""


def _work(base: Side, candidate: Side) -> Iterator[Caveat]:
    """Whether both sides do the same work: how often, sizes of what both do as often, and bytes that are moved."""
    for key, sized in (("work_shapes", _tensors), ("work_grids", _launches)):
        old, new = sized(base), sized(candidate)
        if old and new:
            steps = base.info.count, candidate.info.count
            often = [*_of_another_number(old, new, *steps)]
            yield from often or _of_another_size(key, old, new, *steps)
            break
    for key, moved in (("work_inputs", _inputs), ("work_collectives", _collectives)):
        old_bytes, new_bytes = (moved(side) // max(side.info.count, 1) for side in (base, candidate))
        if old_bytes and new_bytes and not 1 / _OTHER < new_bytes / old_bytes < _OTHER:
            values = (("base_bytes", old_bytes), ("candidate_bytes", new_bytes))
            yield Caveat(key, (("ratio", new_bytes / old_bytes), *values))


def _precision(base: Side, candidate: Side) -> Iterator[Caveat]:
    """What most of the time of products is computed in, where that is another type on the other side."""
    found = [precisions(side.context) for side in (base, candidate)]
    (old, old_share), (new, new_share) = (
        max(
            ((name, time / sum(each.values())) for name, time in each.items() if time),
            key=itemgetter(1),
            default=("", 0.0),
        )
        for each in found
    )
    # Float that may or may not have been multiplied as TF32 is not known to differ from either.
    if old and new and min(old_share, new_share) > MATCHED and old not in new and new not in old:
        values = (("base", old), ("base_share", old_share), ("candidate", new), ("candidate_share", new_share))
        yield Caveat("precision_differs", values)


def unmatched_work(base: Side, candidate: Side, unmatched: Table | None, options: CompareOptions) -> Iterator[Caveat]:
    """Whether most of the time has no partner (table `unmatched`), not even within operators that both sides have."""
    times: dict[str, list[int]] = {}
    for row in unmatched.records() if unmatched is not None else ():
        alone, every = times.setdefault(row.section, [0, 0])
        times[row.section] = [alone + row.unmatched_ns, every + row.of_ns]
    comparable = "section_operators" in times or base.info.vendor == candidate.info.vendor
    shares = [1 - alone / every for alone, every in times.values() if every]
    if comparable and shares and max(shares) < MATCHED:
        share = max(*shares, _within_common_operators((base.context, candidate.context), options))
        if share < MATCHED:
            yield Caveat("work_unmatched", (("share", share),))


def _within_common_operators(contexts: tuple[Context, Context], options: CompareOptions) -> float:
    """Share of the device time that operators of names which both sides have launch, by themselves or further in."""
    base, candidate = (context.trace.strings.texts(np.unique(context.op_names)) for context in contexts)
    common = {canonical(name, options) for name in base} & {canonical(name, options) for name in candidate}
    inside = whole = 0
    for context in contexts:
        work, nest = context.once(device_work), context.op_nest
        shared = context.trace.strings.matches(context.op_names, lambda name: canonical(name, options) in common)
        for _ in range(int(nest.depth.max(initial=0))):
            shared |= (nest.parent >= 0) & shared[nest.parent]
        place = context.event_op[work.event]
        inside += int(work.time[place >= 0][shared[place[place >= 0]]].sum())
        whole += int(work.time.sum())
    return inside / whole if whole else 0.0


class _Sizes(NamedTuple):
    """Of calls of one name, over the steps that count."""

    number: int
    size: int
    time: int


def _of_another_number(
    old: Mapping[str, _Sizes], new: Mapping[str, _Sizes], steps: int, new_steps: int
) -> Iterator[Caveat]:
    """Most names, and of the time, of which one side does more in more calls: layers, micro-batches, unmarked steps."""
    both = [(old[name], new[name]) for name in old.keys() & new.keys()]
    whole = sum(one.time for side in (old, new) for one in side.values())
    for one, other in ((0, 1), (1, 0)):
        per = (new_steps, steps)
        more = [
            pair
            for pair in both
            if pair[other].number * per[other] > _ALIKE * pair[one].number * per[one]
            and pair[other].size * per[other] >= _ALIKE * pair[one].size * per[one]
        ]
        share = sum(base.time + new_one.time for base, new_one in more) / whole if whole else 0.0
        if share > MATCHED and 2 * len(more) > len(both):
            numbers = [sum(pair[at].number for pair in more) * per[at] for at in (0, 1)]
            yield Caveat("work_number", (("share", share), ("ratio", numbers[1] / numbers[0])))


def _of_another_size(
    key: str, old: Mapping[str, _Sizes], new: Mapping[str, _Sizes], steps: int, new_steps: int
) -> Iterator[Caveat]:
    """What both sides do equally often a step, if most of its time is of another size on one of them."""
    both = [
        (old[name], new[name])
        for name in old.keys() & new.keys()
        if old[name].number * new_steps == new[name].number * steps and old[name].size and new[name].size
    ]
    ratios = [one.size * steps / (base.size * new_steps) for base, one in both]
    times = [base.time + one.time for base, one in both]
    other = sum(time for time, ratio in zip(times, ratios, strict=True) if not 1 / _ALIKE <= ratio <= _ALIKE)
    if 2 * other > sum(times):
        whole = sum(one.size for _, one in both) * steps / (sum(base.size for base, _ in both) * new_steps)
        yield Caveat(key, (("share", other / sum(times)), ("ratio", whole)))


def _tensors(side: Side) -> dict[str, _Sizes]:
    """Elements of the inputs of operators with device work, by name; nothing where shapes were not recorded."""
    context, work = side.context, side.context.once(device_work)
    if "shapes" not in context.trace.events.fields:
        return {}
    strings = context.trace.strings
    rows = np.unique(work.op[work.op >= 0])
    time = np.bincount(np.searchsorted(rows, work.op[work.op >= 0]), work.time[work.op >= 0], len(rows))
    codes = context.trace.events.numbers("shapes", rows)
    elements = np.zeros(len(rows), np.int64)
    known = codes >= 0
    elements[known] = strings.lookup(codes[known].astype(np.int32), _elements)
    return _by_name(context, context.trace.events.name[rows], elements, time)


def _launches(side: Side) -> dict[str, _Sizes]:
    """Threads of kernels, by name; nothing where launch configurations were not recorded."""
    context, work = side.context, side.context.once(device_work)
    row, strings = context.device.row[work.event], context.trace.strings
    threads = np.ones(len(row), np.int64)
    for field in ("grid", "block"):
        codes = context.trace.events.numbers(field, row)
        if not (codes >= 0).any():
            return {}
        threads[codes < 0] = 0
        threads[codes >= 0] *= strings.lookup(codes[codes >= 0].astype(np.int32), _elements)
    return _by_name(context, context.device.name[work.event], threads, work.time)


def _by_name(
    context: Context, name: NDArray[np.int32], size: NDArray[np.int64], time: NDArray[np.int64]
) -> dict[str, _Sizes]:
    rows = group(name.astype(np.int64))
    sums = rows.count().tolist(), rows.sum(size).tolist(), rows.sum(time.astype(np.int64)).tolist()
    names = context.trace.strings.texts(name[rows.first])
    return {text: _Sizes(*each) for text, *each in zip(names, *sums, strict=True)}


def _elements(text: str) -> int:
    """Elements of all tensors of a list of shapes, or what a grid multiplies to; at most 2³¹ - 1."""
    return min(sum(prod(map(int, found.split(","))) for found in _DIMENSIONS.findall(text)), 2**31 - 1)


def _inputs(side: Side) -> int:
    """Bytes copied to the device."""
    event = side.context.once(device_work).event
    event = event[side.context.device.klass[event] == DeviceClass.MEM]
    event = event[directions(side.context, event) == DIRECTIONS.index("h2d")]
    return _bytes(side.context.trace.events.numbers("bytes", side.context.device.row[event]))


def _collectives(side: Side) -> int:
    """Bytes of its collectives."""
    event = side.context.once(device_work).event
    event = event[side.context.device.klass[event] == DeviceClass.COMM]
    rows = description_rows(side.context, event)
    return _bytes(sizes(side.context, rows, types(side.context, event, rows)))


def _bytes(size: NDArray[np.int64]) -> int:
    return int(size[size > 0].sum())


def _device(base: Side, candidate: Side) -> Iterator[Caveat]:
    if base.partition is None and candidate.partition is None:
        yield Caveat("no_device_on_either")
    elif base.partition is None or candidate.partition is None:
        yield Caveat("no_device_on_one", _which(base.partition is None))
    elif base.info.vendor != candidate.info.vendor or base.info.device_name != candidate.info.device_name:
        names = [side.info.device_name or side.info.vendor for side in (base, candidate)]
        # The text form of an Ascend profile does not name its device: of one vendor that may be the same.
        maybe_equal = base.info.vendor == candidate.info.vendor and not (
            base.info.device_name and candidate.info.device_name
        )
        if names[0] != names[1] and not maybe_equal:
            yield Caveat("devices_differ", (("base", names[0]), ("candidate", names[1])))


def _which(is_base: bool) -> tuple[tuple[str, str], ...]:
    return (("side", "base" if is_base else "candidate"),)


def _idle(base: Side, candidate: Side) -> Iterator[Caveat]:
    """Causes that only one side can show are compared as one part."""
    if base.partition is None or candidate.partition is None:
        return
    keys = set(idle_parts(base, candidate).values())
    if IDLE in keys:
        yield Caveat("idle_as_one", _which(len(base.context.calls) == 0))
    elif OUTSIDE_CALLS in keys:
        yield Caveat("outside_calls_as_one", _which(len(base.context.host_rows) == 0))


def _levels(base: Side, candidate: Side) -> Iterator[Caveat]:
    """Only Ascend profiles have levels; what a GPU's trace lacks is said by what it is."""
    levels = base.info.level, candidate.info.level
    if levels[0] != levels[1] and {base.info.vendor, candidate.info.vendor} <= {"ascend"}:
        key = "levels_differ_in_calls" if calls_of_one_level(base, candidate) else "levels_differ"
        yield Caveat(key, (("base", levels[0] or "–"), ("candidate", levels[1] or "–")))


def _steps(base: Side, candidate: Side) -> Iterator[Caveat]:
    choices = base.info.step_choice, candidate.info.step_choice
    if choices.count("whole_trace") == 1:
        yield Caveat("whole_trace_on_one", _which(choices[0] == "whole_trace"))
    elif choices[0] != choices[1]:
        yield Caveat("steps_differ", (("base", choices[0]), ("candidate", choices[1])))
    elif "whole_trace" in choices:
        yield Caveat("whole_traces")
    hostless = [not (side.context.host_recorded or len(side.context.calls)) for side in (base, candidate)]
    if hostless[0] != hostless[1] and "whole_trace" not in choices:
        yield Caveat("device_steps_on_one", _which(hostless[0]))


def _ranks(base: Side, candidate: Side) -> Iterator[Caveat]:
    sizes = [side.context.trace.origin.world_size or side.info.ranks for side in (base, candidate)]
    if sizes[0] != sizes[1]:
        yield Caveat("world_sizes_differ", (("base", sizes[0]), ("candidate", sizes[1])))
    elif base.info.ranks != candidate.info.ranks:
        yield Caveat("rank_counts_differ", (("base", base.info.ranks), ("candidate", candidate.info.ranks)))
    ranks = base.info.rank, candidate.info.rank
    if ranks[0] is not None and ranks[1] is not None and ranks[0] != ranks[1]:
        yield Caveat("ranks_differ", (("base", ranks[0]), ("candidate", ranks[1])))


def _coverage(base: Side, candidate: Side) -> Iterator[Caveat]:
    if coverage_differs(base, candidate):
        shares = [known / time for known, time in (coverage(base), coverage(candidate))]
        yield Caveat("coverage_differs", (("base_share", shares[0]), ("candidate_share", shares[1])))


def _clocks(base: Side, candidate: Side) -> Iterator[Caveat]:
    clocks = base.info.resolution_ns, candidate.info.resolution_ns
    if clocks[0] != clocks[1]:
        yield Caveat("clocks_differ", (("base_ns", clocks[0]), ("candidate_ns", clocks[1])))


def recorded(context: Context) -> dict[str, bool]:
    """What a profile has, by what it is needed for."""
    trace, kind = context.trace, context.kind
    python = bool((kind == EventKind.PYTHON).any())
    names = trace.strings.matches(trace.events.name, lambda text: text.startswith("nn.Module: "))
    return {
        "api": len(context.calls) > 0,
        "host_ops": context.host_recorded,
        "shapes": "shapes" in trace.events.fields,
        "modules": "module" in trace.events.fields or bool((names & (kind == EventKind.PYTHON)).any()),
        "stacks": python or "stack" in trace.events.fields,
        "memory": "bytes" in trace.instants.fields,
    }


def _recorded(base: Side, candidate: Side) -> Iterator[Caveat]:
    """What only one side recorded, unless the caveat on idle time implies it."""
    has = recorded(base.context), recorded(candidate.context)
    known = {_IDLE_CAVEATS.get(caveat.key) for caveat in _idle(base, candidate)}
    for what in has[0]:
        if has[0][what] != has[1][what] and what not in known:
            yield Caveat(f"{what}_on_one", _which(not has[0][what]))


def _options(base: Side, candidate: Side) -> Iterator[Caveat]:
    """Options that slow the host down, switched on on one side: the host's own time differs because of them."""
    chosen = [_chosen(side.context) for side in (base, candidate)]
    differ = [name for name in _OPTIONS if (name in chosen[0]) != (name in chosen[1])]
    if differ:
        names = [", ".join(name for name in differ if name in side) or "–" for side in chosen]
        yield Caveat("options_differ", (("base", names[0]), ("candidate", names[1])))


def _chosen(context: Context) -> set[str]:
    """Recording options that were on: as stated, else as what was recorded shows."""
    options, has = context.trace.options, recorded(context)
    shown = {"with_stack": has["stacks"], "record_shapes": has["shapes"], "profile_memory": has["memory"]}
    return {name for name in _OPTIONS if options.get(name, False) or shown[name]}


def lacking(context: Context) -> Iterator[tuple[str, tuple[tuple[str, int | str], ...]]]:
    """What of a recording is not in its numbers, and how much of it."""
    read = context.trace.read
    if not read.whole:
        yield "truncated", ()
    lost = sum(read.counts.get(reason, 0) for reason in SKIPPED)
    if lost:
        yield "salvaged", (("count", lost),)
    unknown = unknown_categories(context)
    if unknown:
        yield "unknown", tuple((key, value) for key, value in unknown if key in {"count", "categories", "first"})
    wrong = int(np.isin(context.kind, (EventKind.IMPOSSIBLE, EventKind.REPEATED)).sum()) + context.device.repaired
    if wrong:
        yield "impossible", (("count", wrong),)


def _damage(base: Side, candidate: Side) -> Iterator[Caveat]:
    for side, name in ((base, "base"), (candidate, "candidate")):
        for key, values in lacking(side.context):
            yield Caveat(f"side_{key}", (("side", name), *values))
        if side.info.left_out and side.info.step_choice == "complete":
            every = settled(side.context.all_steps)
            incomplete, start = (int((~every.counted & (every.complete == start)).sum()) for start in (False, True))
            why = {"": incomplete, "_start": start, "_cycle": side.info.left_out - incomplete - start}
            for key, steps in why.items():
                if steps:
                    yield Caveat(f"side{key}_left_out", (("side", name), ("steps", steps)))
