"""Columns that tables of two sides share, why a cell of theirs is empty, and what makes a number another one."""

from dataclasses import replace

from traceanalyze.model.table import Column, Kind, NotMeasured

PARTS_CANCEL = NotMeasured("parts_cancel")
OF_NUMBERS = frozenset(
    {"side_truncated", "side_salvaged", "side_unknown", "side_impossible", "whole_trace_on_one", "whole_traces"}
    | {"device_steps_on_one", "steps_differ", "idle_as_one", "outside_calls_as_one", "levels_differ_in_calls"}
    | {"coverage_differs", "clocks_differ", "options_differ"}
)
"""Caveats without whose reason a number that is shown would be another one: they come first, and have room."""

PART = Column("part", Kind.TERM, "what the time was spent on")
INDEX = replace(PART, key="index", heading="part", meaning=f"{PART.meaning}; rows further in lie inside the row above")
OP = Column("op", Kind.NAME, "innermost operator around the call", heading="operator")
SHAPES = Column("shapes", Kind.NAME, "shapes of its tensors")
MODULE = Column("module", Kind.NAME, "place in the model")
PLACE = Column("place", Kind.COUNT, "rank by absolute change", heading="#")
STEP_SHARE = Column(
    "step_change_share",
    Kind.SHARE,
    "share of the change of the step; negative where it goes the other way",
    heading="of change",
)
CHANGE_SHARE = Column(
    "change_share",
    Kind.SHARE,
    "share of the sum of all absolute changes in this table; negative for what got less",
    heading="of changes",
)
CHANCE = Column(
    "noise_ns", Kind.DURATION, "by how much it may differ by chance, as the steps vary", heading="by chance", minor=True
)
MATCH = Column("match", Kind.TERM, "which sides have it", heading="on", minor=True)
_D, _N, _T = Kind.DURATION, Kind.NUMBER, Kind.NAME
_EITHER = {
    column.key: column
    for column in (
        Column("time_ns", _D, "time per step", heading=""),
        Column("share", Kind.SHARE, "share of the step", heading="of step"),
        Column("number", _N, "device events per step; of idle time, intervals", heading="number"),
        Column("each_ns", _D, "mean of one event or interval", heading="each", scale="call"),
        Column("name", _T, "the name on this side", heading="name"),
        Column("op", _T, "what this side calls the operator", heading="operator"),
        Column("shapes", _T, "shapes of the inputs", heading="shapes"),
        Column("dtypes", _T, "types of the inputs", heading="types"),
        Column("kernels", _T, "kernels launched, each with its time", heading="kernels"),
        Column("kernel", Kind.KERNEL, "what this side calls the kernel", heading="kernel"),
        Column("frame", _T, "source line, when stacks were recorded", heading="frame"),
        Column("calls", _N, "calls per step", heading="calls"),
        Column("blocked_ns", _D, "time per step that the host waits in these calls", heading="waits"),
        Column("idle_ns", _D, "time per step that the device is idle because of them", heading="idle"),
        Column("total_ns", _D, "sum of durations per step", heading="total"),
        Column("self_ns", _D, "time per step without what is inside", heading="self"),
        Column("runtime_ns", _D, "time per step in runtime calls directly inside", heading="in runtime calls"),
        Column("api", _T, "what this side calls it", heading="call"),
        Column("avg_ns", _D, "mean of one call", heading="mean", scale="call"),
        Column("max_ns", _D, "longest call", heading="longest", scale="call"),
        Column("min_ns", _D, "shortest call", heading="shortest", scale="call"),
        Column("wait_ns", _D, "time per step spent waiting for other ranks", heading="wait"),
        Column("own_ns", _D, "step without waiting for other ranks", heading="own"),
        Column("transfer_ns", _D, "time per step spent moving data", heading="transfer"),
        Column("exposed_ns", _D, "time per step not hidden behind compute", heading="exposed"),
        Column("compute_ns", _D, "time per step in which the device computes", heading="compute"),
        Column("free_ns", _D, "time per step in which the device is idle", heading="idle"),
        Column("device_ns", _D, "device time of its own kernels", heading="device"),
        Column("start_ns", _D, "start of the call", heading="start", machine=True),
        Column("sum_ns", _D, "exact sum over the steps compared", heading="sum", machine=True),
        Column("peak_bytes", Kind.BYTES, "the peak", heading=""),
        Column("rate_gbs", _N, "bytes sent over the time in which any transfer ran", heading=""),
        Column("lifetime_ns", _D, "how long the allocations of a step lived, in sum", heading="lived"),
        Column("bytes", Kind.BYTES, "bytes per step", heading="bytes"),
        Column("details", _T, "allocations of the call: size, and how long it lived", heading="allocations"),
        Column("size_bytes", Kind.BYTES, "bytes allocated by the call", heading="size"),
    )
}
"""What tables tell of a side."""


def of_base(**aliases: str) -> tuple[Column, ...]:
    """Columns of the base, by key, each with what msprof-analyze calls it."""
    return tuple(_of_side("base", key, alias.format(side="Base")) for key, alias in aliases.items())


def of_candidate(**aliases: str) -> tuple[Column, ...]:
    """The same of the candidate."""
    return tuple(_of_side("candidate", key, alias.format(side="Comparison")) for key, alias in aliases.items())


def both(**aliases: str) -> tuple[Column, ...]:
    """The columns of the base, then the same of the candidate."""
    return (*of_base(**aliases), *of_candidate(**aliases))


def _of_side(side: str, key: str, alias: str) -> Column:
    own = _EITHER[key]
    return replace(
        own,
        key=f"{side}_{key}",
        heading=f"{side} {own.heading}".strip(),
        meaning=f"{side}: {own.meaning}",
        side=None if own.machine else side,
        alias=alias,
    )


def minor(*columns: Column) -> tuple[Column, ...]:
    """The same, left out where there is little room."""
    return tuple(replace(column, minor=True) for column in columns)


SUMS = both(sum_ns="")


def ratio(key: str = "ratio", alias: str = "Diff Ratio", heading: str = "", meaning: str = "") -> Column:
    """Candidate over base."""
    says = meaning or "candidate over base; empty where the base has none"
    return Column(key, Kind.RATIO, says, heading=heading, par=1.0, alias=alias)


def diff(key: str = "diff_ns", alias: str = "", heading: str = "", meaning: str = "") -> Column:
    """Candidate minus base."""
    kind = Kind.BYTES_CHANGE if key.endswith("_bytes") else Kind.CHANGE
    says = meaning or "candidate minus base" + ("; above 0 the candidate is slower" if kind == Kind.CHANGE else "")
    return Column(key, kind, says, heading=heading or "diff", par=0.0, alias=alias)


DIFF = diff()
TOTAL_RATIO = ratio("total_ratio", "Diff Total Ratio", meaning="candidate over base, sum per step")
AVG_RATIO = ratio("avg_ratio", "Diff Avg Ratio", "mean ratio", "candidate over base, one call")
TOTAL_DIFF = diff("total_diff_ns", heading="total diff", meaning="candidate minus base, with what is inside")
SELF_DIFF = diff("self_diff_ns", heading="self diff", meaning="candidate minus base, without what is inside")
