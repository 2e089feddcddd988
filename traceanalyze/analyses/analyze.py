"""All analyses of one rank, in the order they depend on each other."""

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.filtering import context_of
from traceanalyze.analyses.idle.host_state import host_split
from traceanalyze.analyses.idle.idle import idle_causes
from traceanalyze.analyses.idle.syncs import synced
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results import Check, RankAnalysis
from traceanalyze.analyses.steps.split import host_split_tables, partitions
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
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


def analyze_context(context: Context, detail: Detail = Detail.VERBOSE) -> RankAnalysis:
    """The same, for those who go on with the derived tables; with less `detail` only what such a view needs."""
    device = len(context.device) > 0
    checks: tuple[Check, ...] = ()
    if not (device and detail == Detail.QUIET):
        from traceanalyze.analyses.quality.quality import quality

        checks = context.once(quality)
    if detail == Detail.QUIET:
        tables = [] if device else host_split_tables(context)
    else:
        # Imported here: a verdict needs only a few of the analyses.
        from traceanalyze.analyses.tables import tables_of

        tables = tables_of(context, full=detail == Detail.VERBOSE)
    by_key = {table.key: table for table in tables}
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=context.steps,
        device=context.devices[0] if device else None,
        partitions=context.once(partitions) if device else (),
        idle=context.once(idle_causes) if device else NotMeasured("no_device_events"),
        host=context.once(host_split),
        checks=checks,
        tables=by_key,
        synced=context.once(synced) if device else {},
        backward=by_key["kernels"]["name"].backward if "kernels" in by_key else frozenset(),
    )
