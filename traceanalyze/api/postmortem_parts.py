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
from traceanalyze.postmortem.waiting import cost_of, own_times, waiting
from traceanalyze.report.build.postmortem.parts import MemoryPart
from traceanalyze.report.build.ranks import rank_label
from traceanalyze.report.build.window import step_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.api.memory_files import MemoryFile
    from traceanalyze.api.ranks import Judged
    from traceanalyze.api.run_report import SideBySide
    from traceanalyze.model.run import Run
    from traceanalyze.rules.evaluate import Outcome, Plan

WHOLE = ("whole trace",)
"""Name of the window of a trace without step marks."""
RANKS, DATA = "RNK", "DAT"
"""Families of rules; what the post-mortem itself finds belongs to them, too."""


def job_of(runs: Sequence[Run]) -> tuple[tuple[Run, ...], ...]:
    """Recordings of one job together, in the order of time: alike in format, number of ranks and device.

    Jobs are in the order in which they were found.
    """
    jobs: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        first = run.traces[0]
        device = first.devices[0].name if first.devices else ""
        jobs.setdefault((first.origin.format, first.origin.world_size, device), []).append(run)
    return tuple(tuple(sorted(found, key=begin)) for found in jobs.values())


def begin(run: Run) -> int:
    """When its first event began, ns of absolute time."""
    return min(trace.base_ns + (int(trace.events.ts.min()) if len(trace.events) else 0) for trace in run.traces)


def recording_part(found: SideBySide, rules: Plan) -> RecordingPart:
    """Ranks with their findings, and those about all of them."""
    cluster = found.cluster
    kinds = {rule.family for rule, _ in rules.rules}
    wanted = RANKS in kinds
    if cluster is None:
        (one,) = found.ranks
        part = _rank(one, found.outcomes[0], 0, None, kinds)
        # Some profiles tell how long a rank waited for others that were not recorded.
        waited = waiting(compare_ranks([one.summary])) if wanted else None
        return RecordingPart((_alone(part),), () if waited is None else (waited,), whole=_whole(found))
    own = own_times(cluster)
    ranks = tuple(
        _rank(one, outcome, index, own[index], kinds)
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


def _rank(one: Judged, outcome: Outcome, index: int, own: int | None, kinds: set[str]) -> RankPart:
    steps = one.analysis.steps
    rows = list(window_of(steps).rows)
    labels = step_labels(steps.name)
    times = (steps.end - steps.start)[rows]
    # A program without a device: no rule judges it.
    host = one.analysis.host if one.analysis.mode == Mode.HOST_ONLY else None
    loading = host.data_loading[rows] if isinstance(host, HostSplit) else None
    alone = host_loading(loading, times) if loading is not None and DATA in kinds else None
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
