"""Reading every recording under some paths, one after another, keeping of each only what is needed.

And which steps count on all ranks of a run: the numbers of its ranks are about the same steps (definitions §18).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from traceanalyze import plugins
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import StepKey, step_keys
from traceanalyze.errors import InputError, Phrase, some
from traceanalyze.model.columns import strings_of
from traceanalyze.model.trace import Bulk, Events, Flows, Instants, Trace
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.runs import group_runs
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import Selection, Skipped, expand
from traceanalyze.whole_file import whole_file

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.report.folder import Label

ReadProgress = Callable[[str, int, int | None], None]

Columns = TypeVar("Columns", Events, Instants, Flows)


class ReadRecordings(NamedTuple):
    """What became of each recording, and remarks on those that were left out."""

    traces: tuple[Trace, ...]
    notes: tuple[str, ...]
    failed: tuple[tuple[str, str], ...] = ()
    """Name of each recording that cannot be read, and why."""
    skipped: tuple[Skipped, ...] = ()
    """Other files of searched folders."""
    compared: Mapping[str, "Cluster"] = {}
    """How many ranks of a run compare, where that has told which to analyse in full; by the path of the first."""

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of files that may be recordings but cannot be read."""
        return (*(name for name, _ in self.failed), *(one.name for one in self.skipped if one.reason))


def gather(paths: Sequence[str], use: Callable[[Trace], Trace], *, progress: ReadProgress | None) -> ReadRecordings:
    """Read every recording and use it. One that cannot be read is left out with a note, if it is not the only one."""
    selection = expand(paths)

    def results() -> Iterator[Trace | InputError]:
        for source, tell in zip(selection.sources, progress_over(progress, selection.sources), strict=True):
            try:
                trace = read_trace(source, tell)
            except InputError as error:
                yield error
                continue
            yield use(trace)
            del trace

    return collected(selection, results())


def collected(
    selection: Selection, results: Iterable[Trace | InputError], *, required: bool = True, known: Collection[str] = ()
) -> ReadRecordings:
    """What became of each source, from its trace or the reason why there is none; an InputError where all are missing.

    No note says of files that are `known` for something else, by their names, that they were passed over.
    """
    traces, failures, failed = [], [], []
    for source, one in zip(selection.sources, results, strict=True):
        if isinstance(one, InputError):
            failures.append(one)
            failed.append((source.name, one.phrase))
        else:
            traces.append(one)
    if not traces and required:
        raise failures[0]
    notes = [*plugins.notes(), *(Phrase("left out: {error}", error) for error in failures)]
    doubtful = [one.text for one in selection.skipped if one.reason and one.name not in known]
    if doubtful:
        notes.append(Phrase("files passed over: {files}", f"{len(doubtful)} ({some(doubtful)})"))
    return ReadRecordings(tuple(traces), tuple(notes), tuple(failed), selection.skipped)


def progress_of(progress: ReadProgress | None, source: Source, number: str = "") -> Callable[[int], None] | None:
    """How far the reading of one source is, for whom it may concern."""
    if progress is None:
        return None
    name = f"{number}{PurePath(source.name).name}"
    return lambda done: progress(name, done, source.size)


def progress_over(progress: ReadProgress | None, sources: Sequence[Source]) -> list[Callable[[int], None] | None]:
    """The same of each of several, which says how many there are: `2/8 rank1.json`."""
    whole = len(sources)
    numbers = [f"{at}/{whole} " if whole > 1 else "" for at in range(1, whole + 1)]
    return [progress_of(progress, source, number) for source, number in zip(sources, numbers, strict=True)]


def without_events(trace: Trace) -> Trace:
    """The trace without its bulk: what it says of itself, its begin and end, and what tells recordings apart."""
    start, end = trace.span
    return replace(
        trace,
        bulk=Bulk(trace.content, start - trace.base_ns, end - trace.base_ns),
        strings=strings_of([b""]),
        tracks=trace.tracks[:0].copy(),
        events=_none(trace.events),
        instants=_none(trace.instants),
        flows=_none(trace.flows),
        process_names={},
        thread_names={},
    )


def _none(columns: Columns) -> Columns:
    """No rows, and no arguments."""
    few = {name: getattr(columns, name) for name in type(columns).__annotations__}
    return type(columns)(**{name: {} if name == "fields" else column[:0].copy() for name, column in few.items()})


def write_events(
    paths: Sequence[str], output: str, *, overwrite: bool = False, progress: ReadProgress | None = None
) -> tuple[str, ...]:
    """Write every event of the recordings under the paths into one Parquet file; one recording at a time is in memory.

    Returns remarks on recordings that were left out.

    Raises:
        InputError: There is no recording.
        UsageError: The file cannot be written, or is none of this tool's.
    """
    # Imported here: only this writes events.
    from traceanalyze.readers.header import ASCEND_FIELDS, DTYPES, EVENT_FIELDS
    from traceanalyze.report.folder import events, label_of, needs_pyarrow
    from traceanalyze.report.output import refuse_input, refuse_other

    needs_pyarrow("--parquet")
    target, sources = Path(output), {source.name: source for source in expand(paths).sources}
    refuse_input(target, (source.path for source in sources.values()))
    if not overwrite:
        refuse_other(target)
    types = {field.name: DTYPES[field.name] for field in EVENT_FIELDS}

    def seen(trace: Trace) -> Trace:
        types.update({name: str(column.value.dtype) for name, column in trace.events.fields.items()})
        return without_events(trace)

    read = gather(paths, seen, progress=progress)

    def labelled() -> Iterator[tuple["Label", Trace]]:
        for run in group_runs(read.traces, read.lost):
            label = label_of(run.name, run.traces)
            for one in run.traces:
                origin = one.origin
                yield label._replace(rank=origin.rank, host=origin.host), read_trace(sources[origin.path])

    with whole_file(target) as file:
        events(file, labelled(), types, {field.name: field.keys[0] for field in (*ASCEND_FIELDS, *EVENT_FIELDS)})
    return read.notes


_FEWEST = 2
"""Where fewer steps would be left for all, each rank keeps its own."""


def disagreeing(
    traces: Sequence[Trace], analyses: Mapping[str, RankAnalysis], lost: Collection[str] = ()
) -> dict[str, frozenset[StepKey]]:
    """Recordings that count steps which another rank of their run leaves out, by path, and what their run counts.

    A step counts if it does on every whole recording that has it. `lost` is as for `group_runs`.
    """
    if len(traces) < 2 or len({(one.steps.name, one.steps.counted.tobytes()) for one in analyses.values()}) < 2:
        return {}
    found: dict[str, frozenset[StepKey]] = {}
    for run in group_runs([trace for trace in traces if trace.origin.path in analyses], lost):
        ranks = {trace.origin.path: analyses[trace.origin.path] for trace in run.traces}
        whole = [one for one in ranks.values() if one.trace.read.whole]
        shown = frozenset().union(*(step_keys(one.steps.name) for one in whole))
        left_out = frozenset().union(*({*step_keys(one.steps.name)} - _counted(one) for one in whole))
        agreed = shown - left_out
        for path, one in ranks.items():
            own = _counted(one)
            if own & left_out and len(own & agreed) >= _FEWEST:
                found[path] = agreed
    return found


def _counted(one: RankAnalysis) -> frozenset[StepKey]:
    return frozenset(compress(step_keys(one.steps.name), one.steps.counted.tolist()))
