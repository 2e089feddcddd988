"""What was read of a job, as the parts that the post-mortem is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import HostSplit
from traceanalyze.analyses.window import window_of
from traceanalyze.cluster.compare import compare_ranks
from traceanalyze.model.vocabulary import Mode
from traceanalyze.postmortem.costs import place_of
from traceanalyze.postmortem.host import host_loading
from traceanalyze.postmortem.parts import CommonSteps, RankPart, RecordingPart, Trouble
from traceanalyze.postmortem.waiting import cost_of, waiting
from traceanalyze.report.build.postmortem.parts import MemoryPart
from traceanalyze.report.build.ranks import rank_label
from traceanalyze.report.build.window import step_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.api.memory_files import MemoryFile
    from traceanalyze.api.ranks import Judged
    from traceanalyze.api.run_report import SideBySide
    from traceanalyze.rules.evaluate import Outcome, Plan

WHOLE = ("whole trace",)
"""Name of the window of a trace without step marks."""
RANKS = "RNK"
"""A family of rules; what the post-mortem itself finds belongs to it, too."""
LOADER_WAIT = "DAT101"
"""Tells what the host waits for its loader, where that costs the step time."""


def recording_part(found: SideBySide, rules: Plan) -> RecordingPart:
    """Ranks with their findings, and those about all of them."""
    cluster = found.cluster
    wanted = RANKS in {rule.family for rule, _ in rules.rules}
    if cluster is None:
        (one,) = found.ranks
        part = _rank(one, found.outcomes[0], 0, None)
        # Some profiles tell how long a rank waited for others that were not recorded.
        waited = waiting(compare_ranks([one.summary])) if wanted else None
        return RecordingPart((_alone(part),), () if waited is None else (waited,), whole=_whole(found))
    own = cluster.own_time
    ranks = tuple(
        _rank(one, outcome, index, own[index])
        for index, (one, outcome) in enumerate(zip(found.ranks, found.outcomes, strict=True))
    )
    told = () if found.of_run is None else found.of_run.findings
    waited = waiting(cluster, told) if wanted else None
    about = (*told, *(() if waited is None else (waited,)))
    common = cluster.step_time.sum(axis=0) // len(ranks) if cluster.steps else None
    return RecordingPart(
        ranks,
        about,
        () if found.of_run is None else found.of_run.not_applicable,
        tuple(cost_of(one, cluster) for one in about),
        None if common is None else CommonSteps(step_labels(cluster.steps), common),
        whole=_whole(found),
    )


def _whole(found: SideBySide) -> bool:
    reads = [one.analysis.trace.read for one in found.ranks]
    return not any(read.truncated or read.stream_fault for read in reads)


def _rank(one: Judged, outcome: Outcome, index: int, own: int | None) -> RankPart:
    steps = one.analysis.steps
    rows = list(window_of(steps).rows)
    labels = step_labels(steps.name)
    times = (steps.end - steps.start)[rows]
    # A program whose device was not recorded: no rule judges what its host waits for.
    host = one.analysis.host if one.analysis.mode == Mode.HOST_ONLY else None
    loading = host.data_loading[rows] if isinstance(host, HostSplit) else None
    unjudged = any(each.rule == LOADER_WAIT for each in outcome.not_applicable)
    alone = host_loading(loading, times) if loading is not None and unjudged else None
    return RankPart(
        label=rank_label(one.analysis.trace.origin, index),
        steps=tuple(labels[row] for row in rows),
        step_times=times,
        own=own,
        findings=(*outcome.findings, *(() if alone is None else (alone,))),
        costs=(
            *(one.costs.get(place_of(each)) for each in outcome.findings),
            *(() if alone is None else (loading,)),
        ),
        unjudged=outcome.not_applicable,
        marked=one.summary.marked or (host is not None and steps.name != WHOLE),
    )


def _alone(part: RankPart) -> RankPart:
    """A single rank: what it saves, the run gains."""
    return replace(part, own=part.step_time)


def memory_part(one: MemoryFile) -> MemoryPart:
    """A snapshot or timeline as the report needs it."""
    peak = max((device.moments[0].allocated for device in one.analyses), default=None)
    return MemoryPart(one.path, one.kind, one.rank, one.rank_source, one.report, one.findings, peak)


def troubles(memory: Sequence[MemoryPart]) -> tuple[Trouble, ...]:
    """All that the snapshots of a job tell."""
    return tuple(
        Trouble(
            each.key, each.severity, each.amount, each.line, "" if one.rank is None else str(one.rank), (file, finding)
        )
        for file, one in enumerate(memory)
        for finding, each in enumerate(one.findings)
    )
