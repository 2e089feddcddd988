"""All analyses of one rank, in the order they depend on each other, of its recording or of a part of that."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.host_state import host_split
from traceanalyze.analyses.idle.idle import idle_causes
from traceanalyze.analyses.idle.syncs import worth_naming
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.analyses.results import Check, RankAnalysis
from traceanalyze.analyses.steps.phases import backward_only
from traceanalyze.analyses.steps.split import host_split_tables, partitions
from traceanalyze.errors import Phrase, Unmatched, UsageError
from traceanalyze.model.columns import Sparse
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Events, Instants, Trace
from traceanalyze.model.vocabulary import Detail


def analyze_trace(trace: Trace, options: Options | None = None) -> RankAnalysis:
    """Where one rank's step time went.

    Args:
        trace: a trace as a reader returns it.
        options: user's classification rules and selections.

    Returns:
        Tables and checks; what the profile cannot give is `NotMeasured` with its reason.
    """
    return analyze_context(context_of(trace, options or Options()))


def analyze_context(
    context: Context, detail: Detail = Detail.VERBOSE, *, summary: bool = False, shown: bool = True
) -> RankAnalysis:
    """The same, for those who go on with the derived tables; with less `detail` only what such a view needs.

    Of a `summary`, whose rank gets no verdict, that is neither what its sync points cost nor, with a device, what its
    host did. Of a rank that is not `shown` there are the tables that rules read.
    """
    device = len(context.device) > 0
    checks: tuple[Check, ...] = ()
    if not (device and detail == Detail.QUIET):
        from traceanalyze.analyses.quality.quality import quality

        checks = context.once(quality)
    if detail == Detail.QUIET:
        tables = [] if device else host_split_tables(context)
        if context.steps.iterations is not None:
            # Imported here, as below; of a server the verdict is in tokens.
            from traceanalyze.analyses.steps.inference import inference

            tables += inference(context)
    else:
        # Imported here: a verdict needs only a few of the analyses.
        from traceanalyze.analyses.tables import rule_tables, tables_of

        tables = tables_of(context, full=detail == Detail.VERBOSE) if shown else rule_tables(context)
    by_key = {table.key: table for table in tables}
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=context.steps,
        device=context.devices[0] if device else None,
        partitions=context.once(partitions) if device else (),
        idle=context.once(idle_causes) if device else NotMeasured("no_device_events"),
        host=None if device and summary else context.once(host_split),
        checks=checks,
        tables=by_key,
        synced=context.once(worth_naming) if device and not summary else {},
        backward=context.once(backward_only) if "op_rates" in by_key else frozenset(),
    )


def context_of(trace: Trace, options: Options) -> Context:
    """What is derived from a trace, or from the part of it that the user wants."""
    context = Context(trace, options)
    unmatched = tuple(_unmatched(context, options))
    kept = trace if options.keep is None else _filtered(context, options.keep)
    if unmatched:
        kept = replace(kept, read=kept.read._replace(notes=(*kept.read.notes, *unmatched)))
    return context if kept is trace else Context(kept, options)


def _unmatched(context: Context, options: Options) -> Iterator[Unmatched]:
    """Patterns of the user that fit no name: of kernels those of the device's work, of ranges any."""
    given, events = options.classify, context.trace.events
    patterns = {
        "--name-regex": None if options.keep is None else options.keep.name,
        "--comm-regex": given.comm,
        "--not-comm-regex": given.not_comm,
        "--data-regex": given.data,
        "--step-marker": given.step_marker,
    }
    for option, pattern in patterns.items():
        if pattern is not None:
            names = events.name if option in {"--data-regex", "--step-marker"} else context.device.name
            if not context.trace.strings.matches(names, pattern.search).any():
                yield Unmatched("{option} {pattern} matches nothing", option, pattern.pattern)


def _filtered(context: Context, chosen: Filter) -> Trace:
    """The trace with what is to be kept, and a remark on how much that is not."""
    trace, device = context.trace, context.device
    keep = np.ones(len(trace.events), np.bool_)
    if chosen.streams is not None:
        keep[device.row[~chosen.streams(device.stream)]] = False
    if chosen.name is not None:
        pattern = chosen.name
        fits = trace.strings.matches(device.name, pattern.search)
        keep[device.row[~fits]] = False
    if chosen.time is not None and len(trace.events):
        _check_begun(context, chosen.time[0])
        start = trace.events.ts - context.begin
        keep &= (start < chosen.time[1]) & (start + trace.events.dur >= chosen.time[0])
    records = np.ones(len(trace.instants.ts), np.bool_)
    if chosen.time is not None and len(trace.events):
        since = trace.instants.ts - context.begin
        records = (since < chosen.time[1]) & (since >= chosen.time[0])
    left_out = int((~keep).sum()) + int((~records).sum())
    whole = len(keep) + len(records)
    note = Phrase(
        "filtered: {count:,} of {all:,} events are left out; what they did counts as not recorded", left_out, whole
    )
    read = trace.read._replace(notes=(*trace.read.notes, note))
    events, instants = _taken(trace.events, keep), _taken_instants(trace.instants, records)
    return replace(trace, events=events, instants=instants, read=read)


def _check_begun(context: Context, since: int) -> None:
    """Times after the end are an error, as steps are that were not recorded."""
    events, name = context.trace.events, context.trace.origin.path
    length = int((events.ts + events.dur).max()) - context.begin
    if since > length:
        ends = (f"{each / 1e9:.6g}" for each in (length, since))
        raise UsageError("--time: {path} is {length} s long; nothing of it is left from {since} s on", name, *ends)


def _taken_instants(instants: Instants, keep: NDArray[np.bool_]) -> Instants:
    rows = {name: getattr(instants, name)[keep] for name in ("ts", "name", "cat", "track")}
    return instants._replace(**rows, fields=_taken_fields(instants.fields, keep))


def _taken(events: Events, keep: NDArray[np.bool_]) -> Events:
    rows = {name: getattr(events, name)[keep] for name in ("ts", "dur", "name", "cat", "track")}
    fields = _taken_fields(events.fields, keep)
    if "part_of" in fields:
        # Refers to rows: what it refers to may be gone.
        row, value = fields["part_of"].row, fields["part_of"].value
        there = (value >= 0) & keep[np.maximum(value, 0)]
        fields["part_of"] = Sparse(row, np.where(there, (np.cumsum(keep) - 1)[np.maximum(value, 0)], -1))
    return replace(events, **rows, fields=fields)


def _taken_fields(fields: Mapping[str, Sparse], keep: NDArray[np.bool_]) -> dict[str, Sparse]:
    """Columns of the rows to keep, with their new numbers; without those that none of them has."""
    place = np.cumsum(keep) - 1
    kept = {name: (column, keep[column.row]) for name, column in fields.items()}
    return {
        name: Sparse(place[column.row[some]].astype(np.uint32), column.value[some])
        for name, (column, some) in kept.items()
        if some.any()
    }
