"""All analyses of one rank, in the order they depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.filtering import context_of
from traceanalyze.analyses.host.split import host_split
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.idle.syncs import sync_points
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results import Check, HostSplit, IdleCauses, RankAnalysis
from traceanalyze.analyses.steps.partition import partition
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import NEED_CALLS, NEED_HOST_OPS, NEED_RUNTIME, Cause, Mode

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.model.table import Table
    from traceanalyze.model.trace import Trace


def analyze_trace(trace: Trace, options: Options | None = None) -> RankAnalysis:
    """Where one rank's step time went.

    Args:
        trace: a trace as a reader returns it.
        options: user's classification rules and selections.

    Returns:
        Tables and checks; what the profile cannot give is `NotMeasured` with its reason.
    """
    return analyze_context(context_of(trace, options or Options()))


def analyze_context(context: Context, *, verdict_only: bool = False) -> RankAnalysis:
    """The same, for those who go on with the derived tables; with `verdict_only` what a verdict needs, and no more."""
    host_alone = context.mode in {Mode.HOST_ONLY, Mode.EMPTY}
    checks: tuple[Check, ...] = ()
    tables = _tables_of_verdict(context) if verdict_only else _tables(context)
    if host_alone or not verdict_only:
        from traceanalyze.analyses.quality.quality import quality

        checks = quality(context)
    if host_alone:
        return _without_device(context, checks, tables)
    steps = context.steps
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=steps,
        device=context.devices[0],
        partitions=tuple(
            partition(context.device, d, context.class_sets(d), steps.start, steps.end) for d in context.devices
        ),
        idle=idle_causes(context),
        host=_host(context),
        checks=checks,
        tables=tables,
    )


def _tables(context: Context) -> dict[str, Table]:
    # Imported here: a verdict needs only a few of the analyses.
    from traceanalyze.analyses.tables import tables_of

    return tables_of(context)


def _tables_of_verdict(context: Context) -> dict[str, Table]:
    return {table.key: table for table in ([sync_points(context)] if len(context.device) else [])}


def _without_device(context: Context, checks: tuple[Check, ...], tables: dict[str, Table]) -> RankAnalysis:
    return RankAnalysis(
        trace=context.trace,
        mode=context.mode,
        steps=context.steps,
        device=None,
        partitions=(),
        idle=NotMeasured("no_device_events"),
        host=_host(context),
        checks=checks,
        tables=tables,
    )


def _host(context: Context) -> HostSplit | NotMeasured:
    if context.step_track < 0:
        return NotMeasured("no_host_events")
    return host_split(context.once(host_states, context.step_track, True), context.steps.start, context.steps.end)


def idle_causes(context: Context) -> IdleCauses:
    """Idle time of the headline device by step and cause."""
    steps = context.steps
    cut, step = idle.clipped(context.once(idle_pieces), steps.start, steps.end)
    return IdleCauses(idle.by_step(cut, step, len(steps)), _unseen_causes(context))


def _unseen_causes(context: Context) -> dict[Cause, NotMeasured]:
    """Causes of idle time that need what was not recorded."""
    missing: dict[Cause, NotMeasured] = {}
    if len(context.calls) == 0:
        missing |= dict.fromkeys(NEED_CALLS, NotMeasured("no_api"))
    elif context.queue_only:
        missing |= dict.fromkeys(NEED_RUNTIME, NotMeasured("no_cann_calls"))
    if len(context.host_rows) == 0:
        missing |= dict.fromkeys(NEED_HOST_OPS, NotMeasured("no_host_ops"))
    return missing
