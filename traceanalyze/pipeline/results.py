"""Results of many recordings: found in the cache, made here, or in processes of their own where that pays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from traceanalyze import plugins
from traceanalyze.errors import InputError, Phrase, UsageError
from traceanalyze.model.native import give_back, keep_freed
from traceanalyze.model.trace import Run, Trace
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, ReadRecordings, collected, disagreeing, progress_over
from traceanalyze.pipeline.recordings import (
    MOST_TOGETHER,
    NO_SNAPSHOTS,
    Allocators,
    AnalysedRank,
    Job,
    made,
    without_changes,
)
from traceanalyze.pipeline.selection import parse_numbers
from traceanalyze.ranks.results import MANY
from traceanalyze.readers.runs import group_runs
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import Selection, expand
from traceanalyze.readers.streams import cores

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from traceanalyze.pipeline.cache import Cache, Spool
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.replay.graph import Program
    from traceanalyze.replay.replay import Change
    from traceanalyze.rules.finding import Finding

_PACKED = 8
"""Text is about so many times as large as a compressed file of it."""
LARGE = 20_000_000
"""Bytes of all inputs from which on a second process is worth its start; every further one for half as many."""


_SEVERAL = 8
"""Summaries that are packed one after another: each alone finds the processor's caches full of what was read."""
_TRIMMED = 64
"""Results after which freed memory is given back."""


class Work(NamedTuple):
    """Who does the work, and what is kept of it; by default this process, and nothing."""

    workers: int | None = 1
    """Processes at most; None: as many as there are cores."""
    executor: Executor | None = None
    """Does it all, where the user has one."""
    cache: str | None = None
    """Folder in which results are kept from run to run; empty: that of the user."""
    tell: Callable[[Phrase], None] | None = None
    """Is told where that folder cannot be used."""
    own: bool = False
    """This process does nothing else."""


ALONE = Work()
Result: TypeAlias = AnalysedRank | InputError


def analysed_files(
    paths: Sequence[str],
    choices: Choices,
    progress: ReadProgress | None,
    work: Work = ALONE,
    *,
    allocators: Allocators = NO_SNAPSHOTS,
    required: bool = True,
    known: Collection[str] = (),
) -> tuple[ReadRecordings, dict[str, AnalysedRank]]:
    """Every recording under the paths, by path.

    `allocators` are what snapshots of the recordings' ranks tell. Where no recording is `required`, there may be none.
    `known` names files that are used for something else.
    """
    selection = expand(paths, required=required)
    jobs = jobs_of(selection.sources, choices, allocators, lenient=not required)
    found = dict(results(jobs, progress, work))
    return put_together(selection, found, jobs, progress, work, required=required, known=known)


def put_together(
    selection: Selection,
    by_place: Mapping[int, Result],
    jobs: Sequence[Job],
    progress: ReadProgress | None,
    work: Work,
    *,
    required: bool = True,
    known: Collection[str] = (),
) -> tuple[ReadRecordings, dict[str, AnalysedRank]]:
    """What became of each source, by its place; ranks of a run are about the steps that all of them count."""
    found: dict[str, AnalysedRank] = {}
    job_of: dict[str, Job] = {}

    def traces() -> Iterator[Trace | InputError]:
        for at, job in enumerate(jobs):
            one = by_place[at]
            if isinstance(one, InputError):
                yield one
            else:
                path = one.analysis.trace.origin.path
                found[path], job_of[path] = one, job
                yield one.analysis.trace

    read = collected(selection, traces(), required=required, known=known)
    analyses = {path: one.analysis for path, one in found.items()}
    # Those of other steps than the rest of their run are analysed over the steps that all ranks of it count. One that
    # cannot be read again, as from a pipe, stays as it is, and a note says why.
    unread: list[Phrase] = []
    for path, agreed in disagreeing(read.traces, analyses, read.lost).items():
        job_of[path] = job_of[path]._replace(agreed=agreed, lenient=True, together=True)
        ((_, one),) = results([job_of[path]], None, work)
        if isinstance(one, InputError):
            unread.append(one.phrase)
        else:
            found[path] = one
    if any(job.summary for job in jobs):
        choices = jobs[0].choices
        chosen, leads, compared = _worth_full(read, found, choices)
        every = choices.detail == Detail.VERBOSE or choices.ranks is not None
        read = read._replace(compared=compared)
        again = [
            job_of[path]._replace(summary=False, lenient=True, together=False, shown=every or path in leads)
            for path in chosen
        ]
        full = dict(results(again, progress, work))
        for at, (path, why) in enumerate(chosen.items()):
            one = full[at]
            if isinstance(one, InputError):
                unread.append(one.phrase)
            else:
                found[path] = one._replace(why=why)
    return read._replace(notes=(*read.notes, *unread)), found


def _worth_full(
    read: ReadRecordings, found: Mapping[str, AnalysedRank], choices: Choices
) -> tuple[dict[str, str], set[str], dict[str, Cluster]]:
    """Paths of the recordings that are analysed in full, and why; of a run with few wanted ranks all.

    Then those to look at first; and how those of the other runs compare, as in `ReadRecordings`.
    """
    from traceanalyze.ranks.compare import comparable, compare_ranks
    from traceanalyze.ranks.overview import worth_full
    from traceanalyze.report.contents.ranks import lead_of

    chosen: dict[str, str] = {}
    compared: dict[str, Cluster] = {}
    leads: set[str] = set()
    for run in group_runs(read.traces, read.lost):
        try:
            traces = chosen_ranks(run, choices)
        except UsageError:
            # Whoever makes the report says so.
            continue
        ranks = [found[trace.origin.path].with_trace(trace) for trace in traces]
        if len(ranks) <= MANY:
            few = [trace.origin.path for trace in traces]
            chosen |= dict.fromkeys(few, "")
            leads |= {*few}
            continue
        every = range(len(ranks))
        places = [*compress(every, comparable([one.analysis for one in ranks]))] or every
        cluster = compare_ranks([ranks[at].summary for at in places], places)
        chosen |= {traces[places[at]].origin.path: why for at, why in worth_full(cluster).items()}
        compared[traces[0].origin.path] = cluster
        whys = [chosen.get(trace.origin.path) for trace in traces]
        leads.add(traces[lead_of([one.analysis for one in ranks], cluster, whys)].origin.path)
    return chosen, leads, compared


def chosen_ranks(run: Run, choices: Choices) -> list[Trace]:
    """Traces of the ranks the user wants."""
    if choices.ranks is None:
        return list(run.traces)
    known = [trace for trace in run.traces if trace.origin.rank is not None]
    if not known:
        raise UsageError("--ranks {ranks}: the profile of {run} does not tell any rank", choices.ranks, run.name)
    numbers = [trace.origin.rank for trace in known if trace.origin.rank is not None]
    mask = parse_numbers(choices.ranks, "--ranks", Phrase("rank")).chosen(numbers)
    return [*compress(known, mask)]


def jobs_of(sources: Sequence[Source], choices: Choices, allocators: Allocators, *, lenient: bool) -> list[Job]:
    """What is to be made of each source."""
    count = len(sources)
    size = count == 1, count <= MOST_TOGETHER, count > MANY and choices.detail > Detail.QUIET
    return [Job(one, choices, {one.name: allocators.get(one.name, {})}, lenient, *size) for one in sources]


def results(
    jobs: Sequence[Job], progress: ReadProgress | None, work: Work, keep: Callable[[int, bytes], None] | None = None
) -> Iterator[tuple[int, Result]]:
    """Places of the jobs and what became of each, as they are done; `keep` is given each of them as a part."""
    many = bool(jobs) and not jobs[0].alone
    if (
        not (many and (work.cache is not None or len(jobs) > MOST_TOGETHER))
        and keep is None
        and _workers(jobs, work) == 1
    ):
        for at, tell in enumerate(progress_over(progress, [one.source for one in jobs])):
            yield at, made(jobs[at], tell)
        return
    # Imported here: with it come zipfile and hashlib, and of one recording nothing is packed.
    from traceanalyze.pipeline.cache import Spool

    cache = _opened(work) if many else None
    spool, left, keys = Spool(), dict(enumerate(jobs)), {} if cache is None else _keys(jobs)
    for at, part, one in () if cache is None else _hits(jobs, keys, cache, spool):
        del left[at]
        if keep is not None:
            keep(at, part)
        yield at, one
    for at, found in _trimmed(_made(left, progress, work)):
        one = _taken(found, spool)
        if isinstance(found, bytes):
            # Why something cannot be read may pass: it is tried again.
            if cache is not None and at in keys and isinstance(one, AnalysedRank):
                cache.keep(keys[at], found)
            if keep is not None:
                keep(at, found)
        yield at, one
    if cache is not None and left:
        cache.trim()


def _trimmed(found: Iterator[tuple[int, bytes | Result]]) -> Iterator[tuple[int, bytes | Result]]:
    """The same; between what is kept of many lies much that was freed, and is given back now and then."""
    for count, one in enumerate(found, 1):
        yield one
        if not count % _TRIMMED:
            give_back()


def _opened(work: Work) -> Cache | None:
    """The cache, unless it is not wanted or cannot be used."""
    from traceanalyze.pipeline.cache import Cache, open_cache

    found = None if work.cache is None else open_cache(work.cache)
    if isinstance(found, Cache):
        return found
    if found is not None and work.tell is not None:
        work.tell(found)
    return None


def _hits(
    jobs: Sequence[Job], keys: Mapping[int, str], cache: Cache, spool: Spool
) -> Iterator[tuple[int, bytes, Result]]:
    """What of the jobs is there already: places, parts, and what these hold."""
    for at, key in keys.items():
        part = cache.find(key)
        one = None if part is None else unpack(part, spool, jobs[at].source)
        if part is not None and one is not None:
            yield at, part, one


def _taken(part: bytes | Result, spool: Spool) -> Result:
    one = unpack(part, spool) if isinstance(part, bytes) else part
    if one is None:
        raise RuntimeError("what was packed cannot be unpacked")
    return one


def _workers(jobs: Collection[Job], work: Work) -> int:
    """How many processes the jobs are worth; 0 for those of the user's executor."""
    if work.executor is not None:
        return 0
    sizes = ((one.source.size or 0, one.source.name.endswith((".gz", ".zst"))) for one in jobs)
    return workers_for([size * (_PACKED if packed else 1) for size, packed in sizes], work.workers)


def _made(jobs: Mapping[int, Job], progress: ReadProgress | None, work: Work) -> Iterator[tuple[int, bytes | Result]]:
    """Parts of the jobs by their places, made by whoever does the work."""
    waiting, workers = [*jobs.values()], _workers(jobs.values(), work)
    if work.own and len(jobs) > MOST_TOGETHER:
        keep_freed()
    if workers == 1:
        told = [*zip(jobs.items(), progress_over(progress, [one.source for one in waiting]), strict=True)]
        several = _SEVERAL if waiting and waiting[0].summary else 1
        for first in range(0, len(told), several):
            for at, job, result in [(at, job, made(job, tell)) for (at, job), tell in told[first : first + several]]:
                yield at, pack(result, job.source) or result
        return
    # Imported here: most runs are of one recording.
    from traceanalyze.pipeline.processes import map_ranks

    # All are read and analysed at the same time: what is done is counted in bytes of all.
    done, total = 0, sum(one.source.size or 0 for one in waiting)
    for count, (place, (found, faults)) in enumerate(map_ranks(_elsewhere, waiting, workers, work.executor), 1):
        source = waiting[place].source
        done += source.size or 0
        if progress is not None:
            progress(f"{count}/{len(waiting)} {PurePath(source.name).name}", done, total)
        plugins.failed_elsewhere(faults)
        yield [*jobs][place], found


def _elsewhere(job: Job) -> tuple[bytes | Result, tuple[plugins.Fault, ...]]:
    """What became of it, as a part, and plug-ins that failed in the process that did it."""
    one = made(job)
    return pack(one, job.source) or one, plugins.faults()


def _keys(jobs: Sequence[Job]) -> dict[int, str]:
    """Keys in the cache, by the places of the jobs; what has a snapshot is not kept."""
    from traceanalyze.pipeline.cache import digest_of, key_of

    first, rules, about = jobs[0], jobs[0].choices.rules().rules, {}
    # A summary is the same however much of the report is wanted.
    detail = Detail.VERBOSE if first.summary else first.choices.detail
    asked = first.choices._replace(device_peaks=None, ranks=None, detail=detail), first.choices.options().peaks
    for shown in {job.shown for job in jobs}:
        about[shown] = digest_of(
            (asked, [(rule.id, dict(own)) for rule, own in rules], first.together, first.summary, first.agreed, shown)
        )
    kept = ((at, job) for at, job in enumerate(jobs) if not any(job.allocators.values()))
    found = {at: key_of(job.source, about[job.shown]) for at, job in kept}
    return {at: key for at, key in found.items() if key is not None}


_AT_HAND = frozenset({"split"})
"""Tables that are shown of all ranks side by side."""


def pack(one: Result, source: Source) -> bytes | None:
    """The result of a source as a part; None where a plug-in made something of it that has no place there."""
    from traceanalyze.pipeline import parts

    try:
        if isinstance(one, InputError):
            return parts.archive({"summary": parts.dumps((one, source.name))})
        tables, keys = dict(one.analysis.tables), (*one.analysis.tables,)
        at_hand = {key: tables[key] for key in keys if key in _AT_HAND}
        slim = one._replace(
            analysis=one.analysis._replace(tables=at_hand),
            outcome=without_changes(one.outcome),
            places={},
            costs={},
            program=None,
            timeline=None,
        )
        sections: dict[str, Any] = {"summary": (slim, (keys, (*one.places,), (*one.costs,)))}
        # Of one of many ranks there is no more.
        sections |= {"tables": tables} if len(at_hand) < len(tables) else {}
        sections |= {name: dict(each) for name, each in (("places", one.places), ("costs", one.costs)) if each}
        sections |= {} if one.timeline is None else {"timeline": one.timeline}
        if one.program is not None:
            from traceanalyze.replay.graph import folded

            changes = tuple(each.change for each in one.outcome.findings)
            sections["program"] = folded(one.program), changes, one.outcome.faint
        return parts.archive({name: parts.dumps(each) for name, each in sections.items()})
    except TypeError:
        return None


def unpack(part: bytes, spool: Spool, source: Source | None = None) -> Result | None:
    """A result from its part, None where that is damaged, or of another source, as a file copied over the right one.

    What is looked at of few ranks goes into the spool, and is read when it is.
    """
    from traceanalyze.pipeline import parts

    def late(name: str, keys: tuple[Any, ...], known: Mapping[Any, Any]) -> Mapping[Any, Any]:
        return known if len(keys) == len(known) else parts.Late(keys, spool.add(sections[name]), known)

    try:
        sections = parts.sections(part)
        one, keys = parts.loads(sections["summary"], spool.shared)
        name = keys if isinstance(one, InputError) else one.analysis.trace.origin.path
        if source is not None and source.name != name:
            return None
        if isinstance(one, InputError):
            return one
        names, at_hand = ("tables", "places", "costs"), (one.analysis.tables, one.places, one.costs)
        tables, places, costs = map(late, names, keys, at_hand)
        timeline = parts.loads(sections["timeline"]) if "timeline" in sections else None
        one = _together(one, *parts.loads(sections["program"])) if "program" in sections else one
    except (parts.DamagedError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    if not isinstance(one, AnalysedRank):
        return None
    return one._replace(analysis=one.analysis._replace(tables=tables), places=places, costs=costs, timeline=timeline)


def _together(
    one: AnalysedRank, program: Program, changes: Sequence[Change | None], faint: tuple[Finding, ...]
) -> AnalysedRank:
    """The same with what a replay of the ranks together needs."""
    from traceanalyze.replay.graph import unfolded

    found = (replace(each, change=change) for each, change in zip(one.outcome.findings, changes, strict=True))
    return one._replace(outcome=one.outcome._replace(findings=(*found,), faint=faint), program=unfolded(program))


def workers_for(sizes: Sequence[int | None], most: int | None = None) -> int:
    """How many processes inputs of these sizes (None: unknown) are worth; 1 means none beside this one."""
    worth = sum(size or 0 for size in sizes) // (LARGE // 2)
    return max(1, min(most or cores(), len(sizes), worth))
