import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, picked, rule

_LIST = regex(r"^c10d::(allgather_|reduce_scatter_)$")
_CAT = regex(r"^aten::cat$")
_NEAR_NS = 1_000_000
"""A `cat` that begins so soon after the call joins what was gathered."""


@rule(
    "COM106",
    "list-allgather",
    title="all_gather into a list",
    sentence="all_gather into lists of tensors ({count} call(s) and {copies} copies in all) costs {time} {per}.",
    evidence={"copies": "copies"},
    confidence=Confidence.HIGH,
    needs="DLO",
    advice_texts={
        "gather_into_tensor": (
            "torch.distributed.all_gather_into_tensor and reduce_scatter_tensor with one tensor, without torch.cat."
        )
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """all_gather fills a list of tensors, which costs copies.

    What it finds
        `all_gather` (and `reduce_scatter`) called with a list of tensors.
    Why it costs time
        The library gathers into one buffer and then copies each part into its tensor; often `torch.cat` joins them
        again. The buffers also take twice the memory.
    How it is measured
        Device time of what the operator launches beside the collective, and of an `aten::cat` that begins within 1 ms
        after it on the same thread.
    What to do
        `torch.distributed.all_gather_into_tensor` and `reduce_scatter_tensor`, without `cat`. Tensors of different
        sizes need the list.

    References
        torch.distributed; pytorch issue 33924 (4.6 times as fast); DeepSpeed pull request 4705.
    """
    rows = facts.rows(EventKind.HOST_OP, _LIST)
    if len(rows) == 0:
        return
    context = facts.context
    device = context.device
    known = np.flatnonzero((context.event_op >= 0) & (device.klass != DeviceClass.COMM))
    known = known[facts.inside(device.start[known])]
    copies = known[names_under(facts, context.event_op[known], _LIST.pattern)]
    cats = _cats_after(facts, rows)
    joined = known[np.isin(context.op_nest.row[context.event_op[known]], cats)]
    event = distinct(np.concatenate((copies, joined)))
    time = facts.per_step((device.end - device.start)[event])
    yield Finding(
        saving=time,
        change=without(facts, event),
        bound=time,
        draws="compute" if len(joined) or (device.klass[copies] == DeviceClass.COMPUTE).any() else "mem_exposed",
        intervals=picked(device.start, device.end, event),
        evidence=(
            Evidence("time", time, "DURATION"),
            Evidence("copies", len(event), "COUNT"),
            Evidence("count", len(rows), "COUNT"),
        ),
        scope=Scope(ops=(facts.name(int(rows[0])),)),
        count=len(rows),
    )


def _cats_after(facts: Facts, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the first `aten::cat` soon after each call, on its thread."""
    events = facts.context.trace.events
    cats = facts.rows(EventKind.HOST_OP, _CAT)
    found = []
    for track in distinct(events.track[rows]).tolist():
        row, own = rows[events.track[rows] == track], cats[events.track[cats] == track]
        end = events.ts[row] + events.dur[row]
        at = np.searchsorted(events.ts[own], end)
        inside = at < len(own)
        near = own[at[inside]]
        found.append(near[events.ts[near] - end[inside] <= _NEAR_NS])
    return np.concatenate(found) if found else np.empty(0, np.int64)
