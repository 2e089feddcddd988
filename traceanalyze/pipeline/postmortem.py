"""The post-mortem of a run directory: everything that is there, put together and told in one report."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Unpack

from traceanalyze import plugins
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.steps.window import step_labels, window_of
from traceanalyze.causes.causes import host_loading
from traceanalyze.causes.results import CommonSteps, RankPart, RecordingPart, Trouble
from traceanalyze.causes.synthesize import cost_of, needs_of, synthesize
from traceanalyze.errors import Apart, InputError, Phrase, UsageError
from traceanalyze.incident import read_evidence
from traceanalyze.incident.judge import judge
from traceanalyze.incident.tables import told
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Run
from traceanalyze.model.vocabulary import Mode
from traceanalyze.pipeline import memory_files
from traceanalyze.pipeline.choices import Choices, Filters, checked, path_texts
from traceanalyze.pipeline.gather import ReadProgress, ReadRecordings
from traceanalyze.pipeline.memory import parse_capacity
from traceanalyze.pipeline.recordings import AnalysedRank
from traceanalyze.pipeline.results import ALONE, Work, analysed_files, chosen_ranks
from traceanalyze.pipeline.run_files import Job, Unused, jobs_of, run_files
from traceanalyze.pipeline.run_report import SideBySide, ranks_of, run_report, side_by_side
from traceanalyze.pipeline.selection import Chosen
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Cluster
from traceanalyze.readers.remote import is_remote, shown
from traceanalyze.readers.runs import group_runs
from traceanalyze.readers.sources import expand
from traceanalyze.report.contents.postmortem import IncidentParts, JobParts, build_postmortem
from traceanalyze.report.contents.ranks import rank_label, whole_recordings
from traceanalyze.report.contents.snapshot import MemoryFile
from traceanalyze.report.model import Report
from traceanalyze.report.view import common_folder
from traceanalyze.rules.finding import Outcome
from traceanalyze.version import __version__

Path = str | os.PathLike[str]

WHOLE = ("whole trace",)
"""Name of the window of a trace without step marks."""
LOADER_WAIT = "DAT101"
"""Tells what the host waits for its loader, where that costs the step time."""


def recording_part(found: SideBySide) -> RecordingPart:
    """Ranks with their findings, and those about all of them."""
    cluster = found.cluster
    whole = all(one.analysis.trace.read.whole for one in found.ranks)
    if len(found.ranks) == 1:
        (one,) = found.ranks
        part = _rank(one, found.outcomes[0], 0, None)
        # What a single rank saves, the run gains.
        alone = replace(part, own=part.step_time)
        # Some profiles tell how long a rank waited for others that were not recorded.
        return RecordingPart((alone,), whole=whole, waits_known=_known(compare_ranks([one.summary])))
    known = ((), ()) if cluster is None else (cluster.own_time, needs_of(cluster))
    own, needs = map(found.by_rank, known)
    full = whole_recordings([one.analysis for one in found.ranks])
    ranks = tuple(
        replace(_rank(one, outcome, index, own[index]), needs=needs[index], whole=full[index])
        for index, (one, outcome) in enumerate(zip(found.ranks, found.outcomes, strict=True))
    )
    across = found.across or Outcome()
    about = across.findings
    return RecordingPart(
        ranks,
        about,
        across.not_applicable,
        () if cluster is None else tuple(cost_of(one, cluster) for one in about),
        None if cluster is None or not cluster.steps else _common(cluster),
        whole=whole,
        waits_known=cluster is not None and _known(cluster),
    )


def _common(cluster: Cluster) -> CommonSteps:
    return CommonSteps(step_labels(cluster.steps), cluster.step_time.sum(axis=0) // len(cluster.ranks))


def _known(cluster: Cluster) -> bool:
    """Whether it is measured, and no bound, how long ranks wait for others in collectives."""
    return not isinstance(cluster.exposed_waits, NotMeasured) and not cluster.exposed_waits.bound


def _rank(one: AnalysedRank, outcome: Outcome, index: int, own: int | None) -> RankPart:
    steps = one.analysis.steps
    rows = list(window_of(steps).rows)
    labels = step_labels(steps.name)
    times = (steps.end - steps.start)[rows]
    # A program whose device was not recorded: no rule judges what its host waits for.
    host = one.analysis.host if one.analysis.mode == Mode.HOST_ONLY else None
    loading = host.data_loading[rows] if isinstance(host, HostSplit) else None
    not_evaluated = any(each.rule == LOADER_WAIT for each in outcome.not_applicable)
    alone = host_loading(loading, times) if loading is not None and not_evaluated else None
    return RankPart(
        label=rank_label(one.analysis.trace.origin, index),
        steps=tuple(labels[row] for row in rows),
        step_times=times,
        own=own,
        findings=(*outcome.findings, *(() if alone is None else (alone,))),
        costs=(*(one.costs.get(each.key) for each in outcome.findings), *(() if alone is None else (loading,))),
        not_evaluated=outcome.not_applicable,
        marked=one.summary.marked or (host is not None and steps.name != WHOLE),
        judged=one.why is not None,
    )


__all__ = ["postmortem", "postmortem_reports"]


def postmortem(
    paths: Path | Sequence[Path],
    *,
    steps: Chosen | None = None,
    ranks: Chosen | None = None,
    capacity: int | str | None = None,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    language: str = "en",
    **filters: Unpack[Filters],
) -> Report:
    """What limited a run, since when, on which ranks, what it cost and what to do first.

    Args:
        paths: The run's directory, or its files: traces of any ranks and steps, Ascend profiles, allocator snapshots,
            memory timelines, and what a dead job leaves: flight-recorder dumps, logs, kernel messages, states of
            devices, stacks.
        steps: Steps to look at: `5`, `0,3-5`, `2:`.
        ranks: Ranks to look at, written the same way.
        capacity: Memory of the device: bytes, or text such as `80GiB`; default: as the traces tell it.
        select: Rules to run, by id, slug or how ids begin; all when empty.
        ignore: Rules not to run, written the same way.
        language: Of verdict and tables: en or zh.
        filters: What is what in a recording, and what of it counts, as of `analyze`: `step_marker`, `data_regex`,
            `comm_regex`, `not_comm_regex`, `categories`, `device_peaks`, `streams`, `name_regex`, `time`.

    Returns:
        The report; `report.tables["run_causes"].to_pandas()` is the ranked list.

    Raises:
        InputError: Nothing there can be used.
        UsageError: The directory holds several jobs; name one of them.
    """
    choices = Choices(steps, ranks, select=select, ignore=ignore, **checked(filters, Filters))
    found = postmortem_reports(path_texts(paths), choices, capacity=capacity)
    if len(found) > 1:
        raise UsageError(
            "the input holds {count} jobs ({names}); name one of them", len(found), ", ".join(one.name for one in found)
        )
    return found[0].in_language(language)


def postmortem_reports(
    paths: Sequence[str],
    choices: Choices,
    *,
    capacity: int | str | None = None,
    progress: ReadProgress | None = None,
    work: Work = ALONE,
) -> tuple[Report, ...]:
    """A report for every job found under the paths; every file is read once."""
    for path in filter(is_remote, paths):
        raise UsageError("{path}: copy it to this machine: a post-mortem reads whatever lies there", shown(path))
    # As all readers name the files in them, so that each is named once.
    paths = [str(PurePath(path)) if path else path for path in paths]
    room = parse_capacity(capacity) or memory_files.expected_capacity(paths)
    memory, left_out = memory_files.memory_files(
        paths, memory_files.expected_ranks(paths), capacity=room, progress=progress
    )
    allocators = memory_files.allocators_of_traces(memory, paths)
    read, analysed = analysed_files(paths, choices, progress, work, allocators=allocators, required=False)
    memory = memory_files.placed_files(memory, tuple(analysed.values()), allocators)
    evidence = read_evidence(paths)
    recorded = {one.rank for one in memory} | {trace.origin.rank for trace in read.traces}
    incident = told(evidence, judge(evidence, _holders(memory), recorded))
    if not read.traces and not memory and not incident.verdict:
        raise _nothing(paths, read, left_out)
    runs = group_runs(read.traces, read.lost) if read.traces else ()
    wanted = _with_ranks(runs, choices)
    jobs = jobs_of(wanted, analysed) if wanted else (Job(()),)
    passed = tuple(run for run in runs if not any(run is one for one in wanted))
    shares = _memory_of_jobs(jobs, memory)
    # What belongs to no job goes with the first one.
    unused = [Unused(read, left_out, passed, memory, evidence.files), *[None] * (len(jobs) - 1)]
    incidents = [incident, *[IncidentParts()] * (len(jobs) - 1)]
    return tuple(
        _report(*each, read, analysed, choices)
        for each in zip(_names(paths, jobs), jobs, shares, unused, incidents, strict=True)
    )


def _holders(memory: Sequence[MemoryFile]) -> dict[int | None, tuple[str, int]]:
    """The line that holds most of each rank's device memory, where a request failed, else at the peak."""
    found: dict[int | None, tuple[str, int]] = {}
    for one in memory:
        for device in one.analyses:
            table = next((each for each in device.held if each.key == "memory_at_oom"), device.at_peak)
            for top in islice(table.records(), 1):
                if top.block_bytes > found.get(one.rank, ("", 0))[1]:
                    found[one.rank] = (top.source_line, top.block_bytes)
    return found


def _report(
    name: str,
    job: Job,
    memory: tuple[MemoryFile, ...],
    unused: Unused | None,
    incident: IncidentParts,
    read: ReadRecordings,
    analysed: Mapping[str, AnalysedRank],
    choices: Choices,
) -> Report:
    runs, rules = job.runs, choices.rules()
    sides = []
    for run in runs:
        ranks, known = ranks_of(run, read, analysed, choices)
        sides.append(side_by_side(ranks, rules, known, run.ranks))
    platform = "ascend" if runs and runs[0].traces[0].origin.format == "ascend" else "cuda"
    recordings = [recording_part(one) for one in sides]
    built = JobParts(
        name=name,
        platform=platform,
        recordings=tuple(run_report(run, one) for run, one in zip(runs, sides, strict=True)),
        memory=memory,
        files=run_files(runs, recordings, memory, unused),
        notes=(*(("", note) for note in plugins.notes()), *_notes(runs)),
        grouping=job.reasons,
        incident=incident,
        every_rank=choices.ranks is not None,
    )
    troubles = [
        Trouble(each, "" if one.rank is None else str(one.rank), file)
        for file, one in enumerate(memory)
        for each in one.findings
    ]
    count = sum(platform in rule.platforms for rule, _ in rules.rules)
    return build_postmortem(synthesize(recordings, troubles, rules=count), built, version=__version__)


def _with_ranks(runs: Sequence[Run], choices: Choices) -> tuple[Run, ...]:
    """The recordings that have the ranks the user chose."""
    found, errors = [], []
    for run in runs:
        try:
            chosen_ranks(run, choices)
        except UsageError as error:
            errors.append(error)
        else:
            found.append(run)
    if errors and not found:
        raise errors[0]
    return tuple(found)


def _notes(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Remarks on the recordings; of several each with its name."""
    notes = [(run.name, note) for run in runs for note in run.notes if not isinstance(note, Apart)]
    return tuple(dict.fromkeys((name if len(runs) > 1 else "", note) for name, note in notes))


def _names(paths: Sequence[str], jobs: Sequence[Job]) -> list[str]:
    """What each job is called: its only run's own name, else its folder; the only job as the user named it.

    Equal names are numbered.
    """
    whole = ", ".join(os.path.normpath(path) for path in paths)
    names = [job.runs[0].name if len(job.runs) == 1 else (len(jobs) > 1 and _folder(job)) or whole for job in jobs]
    return [f"{name} (job {at})" if names.count(name) > 1 else name for at, name in enumerate(names, 1)]


def _folder(job: Job) -> str:
    """The folder that a job's recordings all lie in, without a mark at its end; empty where there is none."""
    return common_folder([trace.origin.path for run in job.runs for trace in run.traces]).rstrip("/")


def _nothing(paths: Sequence[str], read: ReadRecordings, left_out: tuple[Phrase, ...]) -> InputError:
    """Why nothing can be used."""
    if left_out:
        return InputError("{error}", left_out[0].values["error"])
    if read.failed:
        return InputError("{error}", read.failed[0][1])
    try:
        expand(paths)
    except InputError as error:
        return error
    return InputError("{path}: no recording and no snapshot", paths[0])


def _memory_of_jobs(jobs: Sequence[Job], memory: Sequence[MemoryFile]) -> tuple[tuple[MemoryFile, ...], ...]:
    """Each snapshot and timeline with the job whose recordings lie nearest to it, the first of equals."""
    shares: list[list[MemoryFile]] = [[] for _ in jobs]
    for one in memory:
        shares[max(range(len(jobs)), key=lambda at: _nearness(one.path, jobs[at].runs))].append(one)
    return tuple(map(tuple, shares))


def _nearness(path: str, runs: Sequence[Run]) -> int:
    return max((memory_files.nearness(path, trace.origin.path) for run in runs for trace in run.traces), default=0)
