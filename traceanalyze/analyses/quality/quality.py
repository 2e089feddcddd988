"""Data-quality checks, printed with the numbers they touch (definitions §14). One function a group of checks."""

import re
from collections.abc import Iterator, Mapping
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.computes import host_computes
from traceanalyze.analyses.kernels.events import devices_not_told
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.quality.ascend import ascend_checks
from traceanalyze.analyses.results import Check
from traceanalyze.analyses.steps.window import Steps
from traceanalyze.errors import Lost
from traceanalyze.model.classifier import classifier_of_range
from traceanalyze.model.classify import NO_CATEGORY, is_data_loading
from traceanalyze.model.columns import MISSING, ascending, distinct, median, occurs
from traceanalyze.model.intervals import contains, coverage, merge
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import sentences
from traceanalyze.model.vocabulary import SKIPPED, DeviceClass, EventKind, Level, Mode

_SAY = sentences(
    stream_fault="The compressed file is damaged ({what}); what came before was read.",
    truncated="The file ends in the middle: {events} event(s) (was|were) read; steps at the cut are incomplete.",
    trailing="Ignored: {bytes} after the end of the JSON document.",
    note="{text}",
    skipped_malformed="Broken JSON in {count} place(s), first at byte {at}; reading went on at the next event.",
    skipped_not_object="Skipped: {count} member(s) of the event list that are not objects.",
    skipped_no_phase="Skipped: {count} event(s) without a phase.",
    skipped_no_ts="Skipped: {count} event(s) without a timestamp.",
    skipped_bad_ts="Skipped: {count} event(s) with an impossible timestamp.",
    skipped_no_dur="Skipped: {count} event(s) without a duration.",
    skipped_bad_dur="Skipped: {count} event(s) with an impossible duration.",
    skipped_negative_dur="Skipped: {count} event(s) with a negative duration.",
    skipped_bad_value="Left out: {count} argument value(s) that could not be read; their events are kept.",
    skipped_no_begin="Skipped: {count} end(s) of events that never begin.",
    no_end="Never ended: {count} event(s); each was closed with the event around it.",
    other_kinds="Not read, as neither ranges nor marks nor arrows, but such as counters: {count} event(s) ({phases}).",
    unknown_kinds="Not read: {count} event(s) of kinds that no profiler writes ({phases}).",
    misshapen="Kept, but perhaps misplaced: {count} event(s) without a name, process or thread that can be read.",
    twice="Counted twice, as in the file: {count} operator(s).",
    repaired="Cut: {count} device event(s) with impossible durations, {removed_ns} in all.",
    impossible_start="Left out, as of times never set, {before_ns} before all else: {count} event(s).",
    impossible_late="Left out, as of impossible times, {after_ns} after all else has ended: {count} event(s).",
    repeated="Left out, as in the file before: {count} device event(s).",
    unlinked=(
        "No launch record for {count} of {events} device event(s), {share} of device time; they count in all device "
        "times, but not in launch figures."
    ),
    unlinked_outside=(
        "No launch record for {count} of {events} device event(s), {share} of device time; none of them is in the "
        "analysed steps."
    ),
    kernel_before_launch=(
        "{count} event(s) ({share}) of device {device} (starts|start) up to {most_ns} before their "
        "launch call: its clock "
        "disagrees with that of the host, so launch delays, late launches and queue depths are not measured."
    ),
    clock_moved="Device {device}: clock moved {moved_ns}, as {count} event(s) ({share}) began before launch.",
    clock_ahead=(
        "Device {device}: clock moved {moved_ns}, as {count} call(s) ({share}) that (waits|wait) for it "
        "returned before what "
        "they wait for had ended."
    ),
    clock_drift=(
        "Device {device}: clock moved {first_ns} at first to {last_ns} at last, as {count} event(s) ({share}) began "
        "before launch."
    ),
    computes_on_host="No device events, and no sign of a device: the program computed on the host.",
    no_device_events="No device events: device times are not measured.",
    no_api="No runtime calls: sync points, launches and dispatch are not measured.",
    no_names="The names of operators, calls and tasks are lost: nobody knows copies, sync points, launches, loaders.",
    unknown_runtime=(
        "Nobody knows what the runtime's calls ({names}) do: sync points, launches and dispatch are not measured."
    ),
    no_wait_calls="Only calls that submit work were recorded, none that waits: sync points are not measured.",
    no_host_ops="No host operators: idle time cannot be laid to operators.",
    no_python="No Python stacks: source lines are not named.",
    no_memory="No memory events.",
    unknown_categories=(
        "Not counted: {count} of {events} event(s), whose categories are not known ({categories}); "
        "--category {first}=kernel maps them."
    ),
    no_steps="No step marker: the whole trace is one window; host time before and after it is outside.",
    no_steps_host="No step marker: the whole trace is one window.",
    steps_without_device_events="Without device work: {count} step(s), {steps}.",
    incomplete_steps=(
        "Incomplete, left out of the means: {count} step(s) with < 80 % of the usual device events, {steps}."
    ),
    empty_steps="Without time of their own, wholly inside the step before: {count} step(s), {steps}.",
    many_devices="The device events name {count} devices, more than one process can have; they count as of one device.",
    between_steps="Between step markers lie {time_ns} ({share} of the steps) that belong to no step.",
    lead_in="First step starts {time_ns} after its marker: the device did earlier work.",
    last_step_cut="The last step ({step}) was cut when recording stopped.",
    first_step_slow="The first step ({step}) takes {ratio} times the usual; recording may have started in it.",
    suspected_communication=(
        "{count} kernel(s), {time_ns}, look like communication by where they run, but count as compute: {names}. "
        "--comm-regex changes that."
    ),
    plugin_events="The plug-in {plugin} told the kind of work of {count} device event(s) by their names or operators.",
    plugin_ranges="The plug-in {plugin} took {count} host range(s) for data loading.",
    microsecond_clock=(
        "Times have a resolution of 1 µs (torch 2.2 or older), so {zero_length} device event(s) show no duration."
    ),
    microsecond_clock_only="Times have a resolution of 1 µs (torch 2.2 or older).",
    several_processes=(
        "Several ranks or recordings in one file: {count} process(es) launch work ({pids}); they are analysed as one."
    ),
    profiler_cost="Recording {options} made the host slower than it is without the profiler.",
    wait_without_record="{count} of {waits} stream wait(s) name an event that was not recorded.",
    collectives_without_metadata="No description of their collective: {count} of {of} communication kernel(s).",
)


def plugin_checks(context: Context) -> Iterator[Check]:
    """By plug-in, how many device events of the analysed windows and how many host ranges it classified."""
    options = context.options.classify
    if not options.plugins:
        return
    work = context.once(device_work).plugin
    events = np.bincount(work[work >= 0], minlength=len(options.plugins)).tolist()
    builtin = options._replace(plugins=())

    def teller(text: str) -> int:
        return -1 if is_data_loading(text, builtin) else classifier_of_range(text, options.plugins)

    by = context.trace.strings.lookup(context.trace.events.name[context.host_rows], teller)
    ranges = np.bincount(by[by >= 0], minlength=len(options.plugins)).tolist()
    for one, device, host in zip(options.plugins, events, ranges, strict=True):
        if device:
            yield Check("Q08", Level.INFO, _SAY["plugin_events"], (("plugin", one.plugin), ("count", device)))
        if host:
            yield Check("Q08", Level.INFO, _SAY["plugin_ranges"], (("plugin", one.plugin), ("count", host)))


_READ = frozenset("XBEMiIstf")
"""Phases of events that are read."""
_KINDS = frozenset("CPNODMVvRcbnesSTpF(),")
"""Others that the trace format has."""
_MISSHAPEN = regex(r"[\[\]{}]*|null|true|false|.*\0.*", re.DOTALL)
"""Texts that are no name, process or thread: nothing, empty or other values of JSON, bytes that were never written."""


def quality(context: Context) -> tuple[Check, ...]:
    """Every check that has something to say, worst first."""
    checks = [
        *_reading(context),
        *_repairs(context),
        *_links(context),
        *_absent(context),
        *_steps(context),
        *_edges(context),
        *_classes(context),
        *plugin_checks(context),
        *_clock(context),
        *ascend_checks(context),
        *_processes(context),
        *_cost(context),
        *_records(context),
    ]
    return tuple(sorted(checks, key=lambda check: -check.level))


def _reading(context: Context) -> Iterator[Check]:
    read, origin = context.trace.read, context.trace.origin
    if read.stream_fault is not None:
        yield Check("Q01", Level.WARN, _SAY["stream_fault"], (("what", read.stream_fault),))
    if read.truncated:
        kept = (("events", len(context.trace.events)), ("bytes", origin.text_bytes))
        yield Check("Q01", Level.WARN, _SAY["truncated"], kept)
    trailing = read.counts.get("trailing_bytes", 0)
    if trailing:
        yield Check("Q01", Level.INFO, _SAY["trailing"], (("bytes", trailing),))
    for note in read.notes:
        level = Level.WARN if isinstance(note, Lost) else Level.INFO
        yield Check("Q01", level, _SAY["note"], (("text", note),))


def _repairs(context: Context) -> Iterator[Check]:
    counts = context.trace.read.counts
    for reason in SKIPPED:
        if counts.get(reason, 0):
            yield Check("Q02", Level.WARN, _SAY[f"skipped_{reason}"], (("count", counts[reason]), *_place(context)))
    if counts.get("no_end", 0):
        yield Check("Q02", Level.WARN, _SAY["no_end"], (("count", counts["no_end"]),))
    if context.trace.origin.format != "ascend":
        yield from _kinds(context.trace.read.phases)
        yield from _doubtful(context)
    if counts.get("bad_value", 0):
        yield Check("Q02", Level.WARN, _SAY["skipped_bad_value"], (("count", counts["bad_value"]),))
    device = context.device
    yield from _impossible(context)
    again = int((context.kind == EventKind.REPEATED).sum())
    if again:
        yield Check("Q02", Level.WARN, _SAY["repeated"], (("count", again),))
    # Where all are unknown, as the numbers may have been too many.
    named = devices_not_told(context.trace, device.row) if (device.device < 0).all() else 0
    if named:
        yield Check("Q02", Level.WARN, _SAY["many_devices"], (("count", named),))
    if device.repaired:
        window = int(context.steps.time.sum())
        level = Level.ERROR if device.removed > 0.01 * window else Level.WARN
        yield Check("Q02", level, _SAY["repaired"], (("count", device.repaired), ("removed_ns", device.removed)))


def _impossible(context: Context) -> Iterator[Check]:
    """Events at times that were never set."""
    events, impossible = context.trace.events, context.kind == EventKind.IMPOSSIBLE
    if not impossible.any():
        return
    early, late = (events.ts[impossible & side] for side in (events.ts < context.begin, events.ts >= context.begin))
    if len(early):
        before = context.begin - int(early.min())
        yield Check("Q02", Level.WARN, _SAY["impossible_start"], (("count", len(early)), ("before_ns", before)))
    if len(late):
        end = (events.ts + events.dur)[~impossible & (context.kind != EventKind.OVERHEAD)].max()
        after = int(late.min() - end)
        yield Check("Q02", Level.WARN, _SAY["impossible_late"], (("count", len(late)), ("after_ns", after)))


def _kinds(phases: Mapping[str, int]) -> Iterator[Check]:
    other = {phase: count for phase, count in phases.items() if phase not in _READ}
    known, unknown = ({phase: n for phase, n in other.items() if (phase in _KINDS) == each} for each in (True, False))
    if known:
        yield Check("Q02", Level.INFO, _SAY["other_kinds"], _told_kinds(known))
    if unknown:
        yield Check("Q02", Level.WARN, _SAY["unknown_kinds"], _told_kinds(unknown))


def _told_kinds(phases: Mapping[str, int]) -> tuple[tuple[str, int | str], ...]:
    return ("count", sum(phases.values())), ("phases", ", ".join(f"{phase} × {n}" for phase, n in phases.items()))


def _doubtful(context: Context) -> Iterator[Check]:
    """Events whose members are no names or places, and operators that are their own parents."""
    events, strings = context.trace.events, context.trace.strings
    odd = strings.matches(events.name, _MISSHAPEN.fullmatch)
    for column in context.trace.tracks.T:
        place = strings.matches(np.ascontiguousarray(column), _MISSHAPEN.fullmatch)
        odd = odd | place[events.track] if place.any() else odd
    if odd.any():
        yield Check("Q02", Level.WARN, _SAY["misshapen"], (("count", int(odd.sum())),))
    nest = context.op_nest
    # One that stands there twice is the first inside the other.
    inner = 1 + np.flatnonzero((nest.start[1:] == nest.start[:-1]) & (nest.end[1:] == nest.end[:-1]))
    inner = inner[nest.parent[inner] == inner - 1]
    row, above = nest.row[inner], nest.row[inner - 1]
    number = events.numbers("external_id", row)
    same = (events.name[row] == events.name[above]) & (number == events.numbers("external_id", above))
    again = int((same & (number != MISSING)).sum())
    if again:
        yield Check("Q02", Level.WARN, _SAY["twice"], (("count", again),))


def _place(context: Context) -> tuple[tuple[str, int], ...]:
    fault = context.trace.read.fault
    return () if fault is None else (("at", fault),)


def _links(context: Context) -> Iterator[Check]:
    if len(context.calls) == 0 or len(context.device) == 0:
        return
    device, linked = context.device, context.link >= 0
    time = device.end - device.start
    unlinked = int((~linked).sum())
    if unlinked:
        share = int(time[~linked].sum()) / int(time.sum()) if time.any() else 0.0
        windows = merge(context.counted.start, context.counted.end)
        counted = bool(coverage(windows, device.start[~linked], device.end[~linked]).any())
        level = Level.WARN if counted and share > 0.05 else Level.INFO
        values = (("count", unlinked), ("events", len(device)), ("share", share))
        yield Check("Q03", level, _SAY[f"unlinked{'' if counted else '_outside'}"], values)
    for clock in context.trace.clocks or ():
        about = (("device", clock.device), ("count", clock.early), ("share", clock.share))
        if not clock.moved:
            most = ("most_ns", max(clock.first, clock.last))
            yield Check("Q04", Level.ERROR, _SAY["kernel_before_launch"], (*about, most))
        elif clock.first == clock.last:
            moved = (*about, ("moved_ns", clock.first))
            if clock.first > 0:
                yield Check("Q04", Level.WARN, _SAY["clock_moved"], moved)
            else:
                yield Check("Q04", Level.WARN, _SAY["clock_ahead"], moved)
        else:
            ends = (("first_ns", clock.first), ("last_ns", clock.last))
            yield Check("Q04", Level.WARN, _SAY["clock_drift"], (*about, *ends))


def _absent(context: Context) -> Iterator[Check]:
    kind = context.kind
    present = set(ascending(kind, len(EventKind)).tolist())
    if context.once(host_computes):
        yield Check("Q05", Level.INFO, _SAY["computes_on_host"])
    elif len(context.device) == 0:
        yield Check("Q05", Level.WARN, _SAY["no_device_events"])
    yield from _calls(context)
    if EventKind.HOST_OP not in present:
        yield Check("Q05", Level.INFO, _SAY["no_host_ops"])
    if EventKind.PYTHON not in present and "stack" not in context.trace.events.fields:
        yield Check("Q05", Level.INFO, _SAY["no_python"])
    if "bytes" not in context.trace.instants.fields:
        yield Check("Q05", Level.INFO, _SAY["no_memory"])
    unknown = unknown_categories(context)
    if unknown:
        yield Check("Q05", Level.WARN, _SAY["unknown_categories"], unknown)


def _calls(context: Context) -> Iterator[Check]:
    """What is not known of the runtime's calls."""
    if len(context.calls) == 0:
        yield Check("Q05", Level.WARN if len(context.device) else Level.INFO, _SAY["no_api"])
    elif context.doubt == "no_names":
        yield Check("Q05", Level.WARN, _SAY["no_names"])
    elif context.doubt == "unknown_runtime":
        told = _list(list(context.trace.strings.texts(distinct(context.calls.name))))
        yield Check("Q05", Level.WARN, _SAY["unknown_runtime"], (("names", told),))
    elif context.waits_lost == "no_wait_calls":
        yield Check("Q05", Level.WARN, _SAY["no_wait_calls"])


def unknown_categories(context: Context) -> tuple[tuple[str, int | str], ...]:
    """What is told of the events whose categories are not known, nothing where there is none."""
    rows = np.flatnonzero(context.kind == EventKind.UNKNOWN)
    if len(rows) == 0:
        return ()
    codes, count = np.unique(context.trace.events.cat[rows], return_counts=True)
    names = (context.trace.strings.text(code) or NO_CATEGORY for code in codes.tolist())
    counts = sorted(zip(names, count.tolist(), strict=True), key=lambda one: -one[1])
    text = ", ".join(f"{name} × {number}" for name, number in counts)
    call, stream = (context.trace.events.numbers(name, rows) for name in ("correlation", "stream"))
    launched = int(((call > 0) & (stream >= 0)).sum())
    told = (("count", len(rows)), ("events", len(context.kind)), ("categories", text), ("first", counts[0][0]))
    return *told, ("launched", launched)


def _named(steps: Steps, chosen: NDArray[np.bool_]) -> tuple[tuple[str, int], tuple[str, str]]:
    names = list(compress(steps.name, chosen.tolist()))
    return ("count", len(names)), ("steps", _list(names))


def _steps(context: Context) -> Iterator[Check]:
    steps = context.all_steps
    if context.mode == Mode.WHOLE_TRACE:
        yield Check("Q06", Level.WARN, _SAY["no_steps"])
        return
    if context.mode == Mode.HOST_ONLY and context.markers is None:
        yield Check("Q06", Level.INFO, _SAY["no_steps_host"])
        return
    if context.mode != Mode.STEPS:
        return
    idle, empty = steps.owned == 0, steps.time == 0
    if idle.any():
        level = Level.WARN if idle.all() else Level.ERROR
        yield Check("Q06", level, _SAY["steps_without_device_events"], _named(steps, idle))
    if not steps.complete.all():
        yield Check("Q06", Level.WARN, _SAY["incomplete_steps"], _named(steps, ~steps.complete))
    if empty.any():
        yield Check("Q06", Level.INFO, _SAY["empty_steps"], _named(steps, empty))
    total = int(steps.time.sum())
    if total and steps.between_steps > 0.01 * total:
        values = (("time_ns", steps.between_steps), ("share", steps.between_steps / total))
        yield Check("Q06", Level.WARN, _SAY["between_steps"], values)
    if len(steps) and steps.lead_in > 0.01 * steps.time[0]:
        # So much makes another step of it: what the host did for it lies before it, too.
        level = Level.WARN if steps.lead_in > 0.05 * steps.time[0] else Level.INFO
        yield Check("Q06", level, _SAY["lead_in"], (("time_ns", steps.lead_in),))


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f", … ({len(names)})" if len(names) > 5 else "")


def _edges(context: Context) -> Iterator[Check]:
    """First and last step: started or cut by the profiler."""
    steps, host_only = context.all_steps, context.mode == Mode.HOST_ONLY
    if context.mode != Mode.STEPS and not host_only:
        return
    if not steps.complete[-1] and (len(steps) > 2 or host_only):
        yield Check("Q07", Level.WARN, _SAY["last_step_cut"], (("step", steps.name[-1]),))
    if len(steps) < 3 or host_only:
        return
    first, rest = int(steps.time[0]), median(steps.time[1:])
    first_counts = bool(occurs(steps.start[:1], context.counted.start)[0])
    if first > 1.3 * rest and first_counts and steps.iterations is None:
        values = (("step", steps.name[0]), ("ratio", first / rest if rest else 0.0))
        yield Check("Q07", Level.WARN, _SAY["first_step_slow"], values)


_COLLECTIVE_OPS = ("record_param_comms", "nccl:", "c10d::")


def _classes(context: Context) -> Iterator[Check]:
    """Kernels that look like communication by where they were launched, or by the stream they ran on."""
    suspects = _launched_under_collectives(context) | _on_comm_streams(context)
    device = context.device
    suspects &= (device.klass == DeviceClass.COMPUTE) & (device.kind == EventKind.KERNEL)
    if not suspects.any():
        return
    time = (device.end - device.start)[suspects].sum()
    total = (device.end - device.start).sum()
    names = [context.trace.strings.text(c) for c in distinct(device.name[suspects]).tolist()]
    level = Level.WARN if time > 0.05 * total else Level.INFO
    values = (("count", int(suspects.sum())), ("time_ns", int(time)), ("names", _list([n[:60] for n in names])))
    yield Check("Q08", level, _SAY["suspected_communication"], values)


def _launched_under_collectives(context: Context) -> NDArray[np.bool_]:
    trace = context.trace
    names = trace.events.name[context.host_rows]
    hit = trace.strings.matches(names, lambda text: text.startswith(_COLLECTIVE_OPS))
    rows = context.host_rows[hit]
    out = np.zeros(len(context.device), np.bool_)
    linked = np.flatnonzero(context.link >= 0)
    for track in distinct(trace.events.track[rows]).tolist():
        here = rows[trace.events.track[rows] == track]
        launched = linked[context.calls.track[context.link[linked]] == track]
        out[launched] = contains(trace.events.active(here), context.launch_start[launched])
    return out


def _on_comm_streams(context: Context) -> NDArray[np.bool_]:
    device = context.device
    kernels = device.kind == EventKind.KERNEL
    lane = group(device.device, device.stream).of
    total = np.bincount(lane, weights=kernels)
    comm = np.bincount(lane, weights=kernels & (device.klass == DeviceClass.COMM))
    mostly = comm >= 0.9 * np.maximum(total, 1)
    return np.asarray(mostly[lane], np.bool_)


def _clock(context: Context) -> Iterator[Check]:
    if context.trace.resolution_ns >= 1000 and len(context.trace.events):
        zero = int((context.device.end == context.device.start).sum())
        if zero:
            yield Check("Q09", Level.INFO, _SAY["microsecond_clock"], (("zero_length", zero),))
        else:
            yield Check("Q09", Level.INFO, _SAY["microsecond_clock_only"])


def _processes(context: Context) -> Iterator[Check]:
    """Several processes that launch work in one file: ranks or recordings were merged."""
    launching = distinct(context.calls.track[context.link[context.link >= 0]])
    tracks = context.trace.tracks[launching]
    processes = {context.trace.strings.text(int(code)) for code in tracks[:, 0]} if len(tracks) else set()
    if len(processes) > 1:
        values = (("count", len(processes)), ("pids", _list(sorted(processes))))
        yield Check("Q10", Level.WARN, _SAY["several_processes"], values)


def _cost(context: Context) -> Iterator[Check]:
    """Recording options that inflate host time."""
    recorded = {
        "with_stack": (context.kind == EventKind.PYTHON).any(),
        "record_shapes": "shapes" in context.trace.events.fields,
        "profile_memory": "bytes" in context.trace.instants.fields,
    }
    on = [name for name, there in recorded.items() if there or context.trace.options.get(name, False)]
    if on:
        yield Check("Q11", Level.INFO, _SAY["profiler_cost"], (("options", ", ".join(on)),))


def _records(context: Context) -> Iterator[Check]:
    """Records that point nowhere."""
    trace, device = context.trace, context.device
    waits = trace.events.fields.get("wait_record")
    if waits is not None and len(waits.row):
        correlation = trace.events.fields.get("correlation")
        known = correlation.value if correlation is not None else np.empty(0, np.int64)
        missing = int((~occurs(waits.value, known)).sum())
        if missing:
            yield Check("Q13", Level.INFO, _SAY["wait_without_record"], (("count", missing), ("waits", len(waits.row))))
    comm = device.row[device.klass == DeviceClass.COMM]
    collective = trace.events.fields.get("collective")
    described = occurs(comm, collective.row).sum() if collective is not None else 0
    if len(comm) > described:
        values = (("count", int(len(comm) - described)), ("of", len(comm)))
        yield Check("Q13", Level.INFO, _SAY["collectives_without_metadata"], values)
