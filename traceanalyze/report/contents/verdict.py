"""The sentences a report opens with: first the number, then the cause."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

import numpy as np

from traceanalyze.analyses.host.computes import HOST_COMPUTES
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.idle.syncs import WORTH_NAMING
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.partition import Partition
from traceanalyze.analyses.steps.window import Steps, Window, median, span_of, step_labels, window_of
from traceanalyze.errors import Lost, Unmatched
from traceanalyze.model.table import Kind, Message, NotMeasured, sentences
from traceanalyze.model.vocabulary import IDLE_GROUPS, Cause, Mode
from traceanalyze.report.contents.quality import start_left_out
from traceanalyze.report.contents.unexplained import lost_data

_SPAN = "From first to last device event {time}"
_SAY = sentences(
    **{
        f"{form}_{key}": f"{span}: the device is {text}"
        for form, span, of in (
            ("step", "Step {time}", " of the step"),
            ("iteration", "Iteration {time}", " of the iteration"),
            ("trace", _SPAN, ""),
        )
        for key, text in (
            ("idle", "idle {idle} of it."),
            ("idle_mostly", f"idle {{idle}} of it, mostly {{cause}} ({{share}}{of})."),
            ("idle_partly", f"idle {{idle}} of it, above all {{cause}} ({{share}}{of})."),
            ("busy_1", "busy {busy} of it; {part1} is {share1}."),
            ("busy_2", "busy {busy} of it; {part1} is {share1}, {part2} {share2}."),
            ("busy_3", "busy {busy} of it; {part1} is {share1}, {part2} {share2}, {part3} {share3}."),
        )
    },
    served="{count} iteration(s) of {phase}, {time} each.",
    served_tokens="{count} iteration(s) of {phase}, {time} each: {tokens} tokens/s.",
    served_at_least="{count} iteration(s) of {phase}, {time} each: at least {tokens} tokens/s.",
    between_iterations=(
        "Between iterations {time} pass on average, {share} of the whole time, of which the other numbers have no part."
    ),
    work_lost=(
        "Of {time} neither {part} nor idle time is measured: the recording lacks what the profile's own numbers tell."
    ),
    cut_short="The file is cut short: what came later in it is missing here.",
    host_computes="No device was used. Of {time} on the host the largest part is {part} ({share}).",
    host_cut=(
        "What is left of the recording has no device event: compute is not measured. Of {time} on the host the largest "
        "part is {part} ({share})."
    ),
    host_only="No device was recorded. Of {time} on the host the largest part is {part} ({share}).",
    host_left="No device work is left. Of {time} on the host the largest part is {part} ({share}).",
    nothing_to_analyse="There is nothing to analyse: no event with a duration is of a known category.",
    slow_step="Step {step} took {time}, {factor} times the median ({median}).",
    slow_steps=(
        "{slow} of {steps} steps took more than 1.3 times the median ({median}); the slowest, step {step}, took {time}."
    ),
    steps_lengthen="Later steps are longer: {first} on average in the first third of them, {last} in the last.",
    steps_slow_down=(
        "Later steps are longer, though they have as many device events: {first} on average in the first third of "
        "them, {last} in the last; what grows is mostly {part}."
    ),
    steps_grow=(
        "Later steps are longer: {first} on average in the first third of them, {last} in the last, with {more} more "
        "device events; what grows is mostly {part}."
    ),
    sync_cost="Sync points leave the device without work for {share} of the time, above all {where}.",
    sync_follows=(
        "Sync points leave the device without work for {share} of the time, above all {where}: {within} while the host "
        "waits in them, the rest until it has launched what comes next."
    ),
)
NOTHING = Message(_SAY["nothing_to_analyse"])

IDLE_WORTH_NAMING = 0.1
"""Idle share of the step from which it may be the headline."""
MOSTLY = 0.5
"""Share of idle time from which one cause is most of it."""
PART_WORTH_NAMING = 0.01
OUTLIER = 1.3
"""A step longer than this many medians is worth a sentence."""
LENGTHENS, THIRDS = 1.2, 6
"""Steps of the last third longer by this than those of the first; so many steps at least."""
AS_MANY = 0.02
"""Own: counts of device events that differ by less are as many."""


def verdict(analysis: RankAnalysis) -> tuple[Message, ...]:
    """What there is to say about one rank, most important first."""
    window = window_of(analysis.steps)
    if analysis.mode == Mode.EMPTY or window.total == 0:
        return (NOTHING,)
    if isinstance(analysis.idle, NotMeasured):
        first: tuple[Message, ...] = (_host_sentence(analysis, window),)
    else:
        lost = NotMeasured("work_lost")
        part = next((row.part for row in analysis.records("split") if row.sum_ns == lost), None)
        first = (
            _device_sentence(_form(analysis), analysis.partitions[0], analysis.idle, window, part),
            *_sync_cost(analysis.synced, analysis.steps, analysis.idle, window),
        )
    return (*_served(analysis), *first, *start_left_out(analysis), *_uneven(analysis, window), *damage(analysis))


def _form(analysis: RankAnalysis) -> str:
    if analysis.mode != Mode.STEPS:
        return "trace"
    return "step" if analysis.steps.iterations is None else "iteration"


def _served(analysis: RankAnalysis) -> Iterator[Message]:
    """What an inference server did: iterations by phase, and tokens where their names tell."""
    if analysis.steps.iterations is None:
        return
    for row in analysis.records("inference_phases"):
        count, phase = ("count", Kind.COUNT, row.iterations), ("phase", Kind.TERM, row.phase)
        values, rate = (count, phase, ("time", Kind.DURATION, row.iteration_mean_ns)), row.tokens_per_second
        if isinstance(rate, NotMeasured):
            yield Message(_SAY["served"], values)
        else:
            key = "served_at_least" if row.tokens_at_least else "served_tokens"
            yield Message(_SAY[key], (*values, ("tokens", Kind.NUMBER, rate)))
    between, every = analysis.steps.between_steps, int(analysis.steps.time.sum())
    if between >= IDLE_WORTH_NAMING * (between + every):
        mean = between // max(1, len(analysis.steps.name) - 1)
        share = between / (between + every)
        yield Message(_SAY["between_iterations"], (("time", Kind.DURATION, mean), ("share", Kind.SHARE, share)))


def _device_sentence(
    form: str, partition: Partition, idle: IdleCauses, window: Window, lost: str | None = None
) -> Message:
    spans = {
        "compute": window.sum(partition.compute),
        "exposed_communication": window.sum(partition.comm_exposed),
        "exposed_memory_ops": window.sum(partition.mem_exposed),
    }
    idle_ns = window.sum(partition.idle)
    time = ("time", Kind.DURATION, window.mean(window.total))
    if lost is not None:
        return Message(_SAY["work_lost"], (time, ("part", Kind.TERM, lost)))
    others = max(spans["exposed_communication"], spans["exposed_memory_ops"])
    if window.share(idle_ns) >= IDLE_WORTH_NAMING and idle_ns >= others:
        return _idle_sentence(form, time, idle_ns, idle, window)
    named = ["compute", *(key for key in spans if key != "compute" and window.share(spans[key]) >= PART_WORTH_NAMING)]
    return Message(
        _SAY[f"{form}_busy_{len(named)}"],
        (
            time,
            ("busy", Kind.SHARE, window.share(window.total - idle_ns)),
            *(
                value
                for index, key in enumerate(named, start=1)
                for value in ((f"part{index}", Kind.TERM, key), (f"share{index}", Kind.SHARE, window.share(spans[key])))
            ),
        ),
    )


def _idle_sentence(form: str, time: tuple[str, Kind, int], idle_ns: int, idle: IdleCauses, window: Window) -> Message:
    idle_share = ("idle", Kind.SHARE, window.share(idle_ns))
    if idle.missing:
        return Message(_SAY[f"{form}_idle"], (time, idle_share))
    causes = {key: sum(window.sum(idle.by_step[:, cause]) for cause in group) for key, group in IDLE_GROUPS.items()}
    largest = max(causes, key=lambda key: causes[key])
    weight = "mostly" if causes[largest] >= MOSTLY * idle_ns else "partly"
    cause = ("cause", Kind.TERM, f"because_{largest}")
    share = ("share", Kind.SHARE, window.share(causes[largest]))
    return Message(_SAY[f"{form}_idle_{weight}"], (time, idle_share, cause, share))


def _sync_cost(synced: Mapping[str, int], steps: Steps, idle: IdleCauses, window: Window) -> tuple[Message, ...]:
    """A sentence when sync points cost much: what the host does after them is then not the root of the idle time.

    The split calls sync only what the host waits in them.
    """
    # What a sync costs may lie between the steps, too.
    time = span_of(steps) if synced else 0
    share = sum(synced.values()) / time if time else 0.0
    if share < WORTH_NAMING:
        return ()
    worst = max(synced, key=lambda place: synced[place])
    within = share if idle.missing else window.share(window.sum(idle.by_step[:, Cause.SYNC]))
    key = "sync_follows" if share - within >= PART_WORTH_NAMING else "sync_cost"
    values = ("share", Kind.SHARE, share), ("where", Kind.NAME, worst), ("within", Kind.SHARE, within)
    return (Message(_SAY[key], values),)


def _host_sentence(analysis: RankAnalysis, window: Window) -> Message:
    parts = analysis.tables["split"]
    known = [row for row in parts.records() if not isinstance(row.sum_ns, NotMeasured)]
    largest = max(known, key=attrgetter("sum_ns"))
    alone = any(check.message == HOST_COMPUTES for check in analysis.checks)
    notes = analysis.trace.read.notes
    gone = any(isinstance(note, Unmatched) and "--name-regex" in note for note in notes)
    less = not analysis.trace.read.whole or any(isinstance(note, Lost) for note in notes)
    key = "host_left" if gone else "host_computes" if alone else "host_cut" if less else "host_only"
    return Message(
        _SAY[key],
        (
            ("time", Kind.DURATION, window.mean(window.total)),
            ("part", Kind.TERM, largest.part),
            ("share", Kind.SHARE, largest.share),
        ),
    )


def damage(analysis: RankAnalysis) -> tuple[Message, ...]:
    """Sentences when part of the file is missing, as device events often come last in it, or was lost."""
    return (*(() if analysis.trace.read.whole else (Message(_SAY["cut_short"]),)), *lost_data(analysis))


def _lengthens(analysis: RankAnalysis, window: Window) -> tuple[Message, ...]:
    """A sentence when every step of the last third is longer than any of the first, and whether these do more."""
    steps = analysis.steps
    if window.count < THIRDS or steps.iterations is not None:
        return ()
    rows, third = np.array(window.rows, np.int64), window.count // 3
    first, last = rows[:third], rows[-third:]
    time = steps.time
    if time[last].min() <= time[first].max() or time[last].mean() < LENGTHENS * time[first].mean():
        return ()
    found = ("first", Kind.DURATION, int(time[first].mean())), ("last", Kind.DURATION, int(time[last].mean()))
    if not analysis.partitions or not steps.owned[first].any():
        return (Message(_SAY["steps_lengthen"], found),)
    one = analysis.partitions[0]
    parts = {
        "compute": one.compute,
        "exposed_communication": one.comm_exposed,
        "exposed_memory_ops": one.mem_exposed,
        "idle_sum": one.idle,
    }
    part = max(parts, key=lambda key: float(parts[key][last].mean() - parts[key][first].mean()))
    more = float(steps.owned[last].mean() / steps.owned[first].mean()) - 1
    values = (*found, ("more", Kind.SHARE, more), ("part", Kind.TERM, part))
    return (Message(_SAY["steps_slow_down" if more < AS_MANY else "steps_grow"], values),)


def _uneven(analysis: RankAnalysis, window: Window) -> tuple[Message, ...]:
    return _lengthens(analysis, window) or _outlier(analysis.steps, window)


def _outlier(steps: Steps, window: Window) -> tuple[Message, ...]:
    """A sentence when single steps are much longer than the usual one; iterations of a server differ by their work."""
    if window.count < 3 or steps.iterations is not None:
        return ()
    times = dict(zip(window.rows, steps.time[[*window.rows]].tolist(), strict=True))
    middle = median(tuple(times.values()))
    slow = [row for row, time in times.items() if time > OUTLIER * middle]
    if not slow or middle == 0:
        return ()
    worst = max(slow, key=lambda row: times[row])
    return (
        Message(
            _SAY["slow_step" if len(slow) == 1 else "slow_steps"],
            (
                ("slow", Kind.COUNT, len(slow)),
                ("steps", Kind.COUNT, window.count),
                ("step", Kind.TEXT, step_labels(steps.name)[worst]),
                ("time", Kind.DURATION, times[worst]),
                ("factor", Kind.RATIO, times[worst] / middle),
                ("median", Kind.DURATION, middle),
            ),
        ),
    )
