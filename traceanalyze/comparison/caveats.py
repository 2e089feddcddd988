"""What makes a section of a comparison less comparable, or not comparable at all."""

from collections.abc import Iterator

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.quality.quality import unknown_categories
from traceanalyze.analyses.steps.window import settled
from traceanalyze.comparison.attribution import IDLE, OUTSIDE_CALLS, calls_of_one_level, idle_parts
from traceanalyze.comparison.columns import OF_NUMBERS
from traceanalyze.comparison.results import Caveat
from traceanalyze.comparison.same_work import precision, work
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.table import sentences
from traceanalyze.model.vocabulary import SKIPPED, DeviceClass, EventKind

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
        "Not the same work: {base_share} of the base's device time and {candidate_share} of the candidate's is of "
        "operators or kernels that both have."
    ),
    work_modules=(
        "Not the same work: the modules are those of other models, {base} in the base and {candidate} in the candidate."
    ),
    launches_lost=(
        "Not to be compared: the {side} shows no work of the device for {share} of its launches, the other side for "
        "{other_share}: events are lost."
    ),
    work_backward=(
        "Not the same work: only the {side} has a backward pass: it and the optimizer take {share} of the time there."
    ),
    recomputes=(
        "Only the {side} runs forward operators again in the backward pass (activation checkpointing): {time_ns} a "
        "step."
    ),
    work_number=(
        "Not the same work: what takes {share} of the time runs {base} times a step in the base, {candidate} times in "
        "the candidate."
    ),
    work_inputs=(
        "Not the same work: the candidate copies {ratio} times as much to the device, {candidate_bytes} a step instead "
        "of {base_bytes}."
    ),
    work_collectives=(
        "Not the same work: the collectives of the candidate move {ratio} times as much, {candidate_bytes} a step "
        "instead of {base_bytes}."
    ),
    typed_collectives=(
        "The collectives of the candidate move {ratio} times as many bytes, {candidate_bytes} a step instead of "
        "{base_bytes}: about as many elements, of another type."
    ),
    precision_differs=(
        "Precision differs: base {base} ({base_share} of the time of matrix products, convolutions and attention), "
        "candidate {candidate} ({candidate_share})."
    ),
    no_device_on_either="No device was recorded: host time is compared.",
    no_device_on_one="The {side} has no device events: only the length of the step can be compared.",
    devices_differ="Different devices: base {base}, candidate {candidate}.",
    devices_turned=(
        "Different devices: base {base}, candidate {candidate}; with the GPU as the base the report tells what there "
        "is to win on the NPU."
    ),
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
        "comparable (--step-marker says which ranges are steps)."
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


def caveats(base: Side, candidate: Side, options: CompareOptions | None = None) -> tuple[Caveat, ...]:
    """Everything that is to be said before the sides are compared, what touches numbers first."""
    checks = precision, _device, _idle, _levels, _steps, _ranks, _coverage, _clocks, _recorded, _options, _damage
    found = (caveat for check in checks for caveat in check(base, candidate))
    others = sorted(found, key=lambda caveat: caveat.key not in OF_NUMBERS)
    return *work(base, candidate, options or CompareOptions()), *others


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


SAID_FIRST = ("recomputes", "work_inputs", "work_collectives", "typed_collectives", "device_steps_on_one")
"""Caveats that belong before any percentage, though the work is mostly the same."""


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
            turned = base.info.vendor == "ascend" and candidate.info.vendor in {"cuda", "rocm"}
            both = ("base", names[0]), ("candidate", names[1])
            yield Caveat("devices_turned", both) if turned else Caveat("devices_differ", both)


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
    sizes = [side.context.trace.origin.world_size for side in (base, candidate)]
    if sizes[0] and sizes[1] and sizes[0] != sizes[1]:
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
