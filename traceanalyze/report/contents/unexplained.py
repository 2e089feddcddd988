"""What a verdict says of large parts of the step that nothing can save, and of files that lost data."""

from operator import itemgetter

from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.errors import Lost, Unmatched, joined
from traceanalyze.model.table import Kind, Message, sentences
from traceanalyze.model.vocabulary import SKIPPED
from traceanalyze.rules.finding import Outcome, Severity, Unexplained

_SAY = sentences(
    not_explained_communication=(
        "{share} of the time is not explained: communication that nothing hides; whether it moves data or waits for "
        "other ranks shows only beside their recordings."
    ),
    not_explained_moving=(
        "{share} of the time is not explained: communication that nothing hides, most of which moves data rather than "
        "waits for other ranks."
    ),
    not_explained_waiting=(
        "{share} of the time is not explained: communication that nothing hides, half or more of which waits for other "
        "ranks."
    ),
    not_explained_fusible=(
        "{share} of the time is not explained: element-wise kernels, reductions and normalization, in no chain that a "
        "rule knows; torch.compile may fuse them."
    ),
    not_explained_fusible_shapes=(
        "{share} of the time is not explained: element-wise kernels, reductions and normalization, which torch.compile "
        "may fuse; which of them follow each other on one tensor, record_shapes=True tells."
    ),
    not_explained_memory_ops=(
        "{share} of the time is not explained: copies and fills that nothing hides, in no pattern that a rule knows."
    ),
    not_explained_data_loading=(
        "{share} of the time is not explained: the host waits for data; what its loader does then was not recorded."
    ),
    not_explained_sync=(
        "{share} of the time is not explained: the device waits for new work after sync points, none of which stands "
        "out."
    ),
    not_explained_peer_wait=(
        "{share} of the time is not explained: the host waits for other processes, none of which is known to be late."
    ),
    not_explained_allocation=(
        "{share} of the time is not explained: the host allocates device memory; for what, profile_memory=True tells."
    ),
    not_explained_dispatch=(
        "{share} of the time is not explained: the host prepares and launches work; for which lines, with_stack=True "
        "tells."
    ),
    not_explained_dispatch_python=(
        "{share} of the time is not explained: the host prepares and launches work, and no operator or line stands out."
    ),
    not_explained_device_gap=(
        "{share} of the time is not explained: the device switches from kernel to kernel; what it does then is not "
        "recorded."
    ),
    not_explained_device_dependency=(
        "{share} of the time is not explained: work was queued but held back; the recording does not show by what."
    ),
    not_explained_in_graphs=(
        "{share} of the time is not explained: the device stands still between kernels of one graph; that every one of "
        "them is recorded may be the reason."
    ),
    not_explained_untraced=(
        "{share} of the time is not explained: the host does something that the trace does not show; with_stack=True "
        "tells what."
    ),
    not_explained_untraced_python=(
        "{share} of the time is not explained: the host does something outside of recorded Python functions and "
        "operators."
    ),
    not_explained_untraced_line=(
        "{share} of the time is not explained: the host does something outside of operators, above all in {line}."
    ),
    not_explained_idle=(
        "{share} of the time is not explained: the device is idle, and why is not measured in this recording."
    ),
    not_explained_host_operator="One operator takes {share} of the time: {line}.",
    not_explained_step="Nearly all of what is not explained is in step {step}.",
    not_explained_excerpt=(
        "The recording is an excerpt: it shows too little of what was launched to tell why the device is idle for "
        "{share} of the time."
    ),
    not_explained_begun_before=(
        "The recording begins in the middle: for {share} of the time what it shows first waits for work that was "
        "launched before, of which nothing is known."
    ),
    compute_hidden=(
        "Compute ({share} of the time) is hidden behind the host: faster kernels would save {most} at best."
    ),
    compute_hidden_communication=(
        "Compute ({share} of the time) is not what limits the step, but the host and communication: faster kernels "
        "would save {most} at best."
    ),
    compute_rated=(
        "Compute ({share} of the time) reaches {reached} of the device's limit in the operators whose limit is known "
        "({of} of it)."
    ),
    compute_few_blocks=(
        "Compute ({share} of the time) spends {of} of it in kernels with fewer blocks than the device has "
        "multiprocessors; larger batches would fill it."
    ),
    compute_graphs=(
        "Compute ({share} of the time) was launched as graphs, whose kernels have no shapes: the recording of their "
        "capture tells how near to the device's limit they are."
    ),
    compute_shapes=(
        "Compute ({share} of the time) cannot be judged without shapes: record_shapes=True tells how near to the "
        "device's limit it is."
    ),
    compute_peaks=(
        "Compute ({share} of the time) cannot be judged, as the peak rates of this device are not known; "
        "--device-peaks gives them."
    ),
    compute_formulas=(
        "Compute ({share} of the time) runs mostly in kernels of which no formula tells how near to the device's limit "
        "they are."
    ),
    done_once="{share} of the time goes into work that is done once, such as first use: later steps do without it.",
    last_end=(
        "After the last work of the last step nothing is recorded for {longest}, which is {share} of the mean step."
    ),
    lost_events="Numbers may be too small: {count} event(s) of the file could not be read.",
    unknown_work=(
        "Numbers may be too small: {count} event(s) (is|are) of categories that are not known ({categories}), but "
        "(stands|stand) on streams of the device; --category {first}=kernel counts them."
    ),
    unmatched="{text}.",
    lost_data="Data of the recording was lost, so numbers may be too small: {text}.",
)
_LOSSES_TOLD = 2
JUDGED = 0.05
"""Part of the step from which one that is only a bound keeps a report from saying that nothing was found."""
_RANK_RULES = "RNK"
_BY_OTHERS = {"communication", "peer_wait"}
"""Parts that findings about the ranks side by side explain."""
_OWN_WORK = {"compute", "host_op"}


def not_explained(outcome: Outcome | None, across: Outcome | None = None) -> tuple[Message, ...]:
    """A sentence a part that nothing explains; `across` is what the rules say about the ranks side by side."""
    ranks = across is not None and any(
        one.rule.startswith(_RANK_RULES) and (one.severity or Severity.INFO) >= Severity.MEDIUM
        for one in across.findings
    )
    parts: tuple[Unexplained, ...] = () if outcome is None else outcome.unexplained
    told = [one for one in parts if not (ranks and one.part in _BY_OTHERS)]
    work = [one for one in told if one.part in _OWN_WORK]
    rest = [one for one in told if one.part not in _OWN_WORK]
    steps = {one.step for one in rest}
    step = steps.pop() if len(steps) == 1 else ""
    alone = (Message(_SAY["not_explained_step"], (("step", Kind.TEXT, step),)),) if step else ()
    return (*map(_sentence, rest), *alone, *map(_sentence, work))


def _sentence(one: Unexplained) -> Message:
    key = one.why if one.part == "compute" else f"not_explained_{one.why}"
    shares = ("share", one.share), ("most", one.most), ("of", one.of), ("reached", one.reached)
    values = tuple((name, Kind.SHARE, value) for name, value in shares if value is not None)
    return Message(_SAY[key], (*values, ("line", Kind.NAME, one.line)) if one.line else values)


def done_once(outcome: Outcome | None, step: int) -> tuple[Message, ...]:
    """Sentences where work that is done once, or the end of the last step, takes much of the mean step, ns."""
    found = () if outcome is None else outcome.findings
    ends = tuple(
        Message(
            _SAY["last_end"], (("longest", Kind.DURATION, each.value), ("share", Kind.SHARE, (one.cost or 0) / step))
        )
        for one in found
        if one.once and one.sentence == "end" and (one.cost or 0) >= JUDGED * step
        for each in one.evidence
        if each.label == "longest"
    )
    # Those without intervals are of first steps that no mean contains.
    cost = sum(one.cost or 0 for one in found if one.once and one.intervals is not None)
    if not cost:
        return ends
    # Imported here: a verdict alone has no findings, and needs none of the rules.
    from traceanalyze.rules.owners import LARGE

    if cost < LARGE * step:
        return ends
    return (*ends, Message(_SAY["done_once"], (("share", Kind.SHARE, min(cost / step, 1.0)),)))


def unjudged(analysis: RankAnalysis, *, waits_known: bool) -> tuple[str, float] | None:
    """Term and share of the largest part of 5 % or more of the step that is a bound or not measured; None without one.

    `waits_known`: how much of the communication is waiting for other ranks is measured.
    """
    window, parts = window_of(analysis.steps), analysis.partitions
    if not parts or not isinstance(analysis.idle, IdleCauses):
        return None
    found = {}
    if not waits_known:
        found["exposed_communication"] = window.share(window.sum(parts[0].comm_exposed))
    if analysis.idle.missing:
        found["idle_sum"] = window.share(window.sum(parts[0].idle))
    largest = max(found.items(), key=itemgetter(1), default=None)
    return largest if largest is not None and largest[1] >= JUDGED else None


def lost_data(analysis: RankAnalysis) -> tuple[Message, ...]:
    """Sentences when something is missing that numbers would count, or nothing is what the user named.

    A file cut short has its own.
    """
    read = analysis.trace.read
    count = sum(read.counts.get(reason, 0) for reason in SKIPPED)
    skipped = (Message(_SAY["lost_events"], (("count", Kind.COUNT, count),)),) if count else ()
    asked = [dict(check.values) for check in analysis.checks if check.message == "unknown_categories"]
    unknown = (
        Message(
            _SAY["unknown_work"],
            (
                ("count", Kind.COUNT, each["launched"]),
                ("categories", Kind.TEXT, each["categories"]),
                ("first", Kind.NAME, each["first"]),
            ),
        )
        for each in asked
        if each["launched"]
    )
    notes = [note for note in read.notes if isinstance(note, Lost)]
    told = joined("; ", notes[:_LOSSES_TOLD])
    lost = (Message(_SAY["lost_data"], (("text", Kind.TEXT, told),)),) if notes else ()
    unmatched = (note for note in read.notes if isinstance(note, Unmatched))
    named = (Message(_SAY["unmatched"], (("text", Kind.TEXT, note),)) for note in unmatched)
    return (*skipped, *unknown, *lost, *named)
