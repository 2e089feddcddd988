"""COM101: communication runs with no compute beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze import intervals
from traceanalyze.rules.common.communication import communicating
from traceanalyze.rules.common.computing import names_of
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope, intervals_of
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "COM101",
    "exposed-communication",
    confidence=Confidence.HIGH,
    needs="D",
    advice=("overlap_communication",),
    options={"share": (0.10, "TensorBoard plugin: exposed communication from a tenth of the step on")},
    order=1,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """Communication runs with no compute beside it.

    What it finds
        Steps that spend a tenth of their time or more in communication that nothing hides.
    Why it costs time
        The device only waits for data of other ranks.
    How it is measured
        Exposed communication of the partition (definitions §4). It can be hidden under compute that runs without
        communication now, so the saving is the lesser of the two; at most, all of it. The time includes waiting for
        ranks that come later, which no overlap removes: compare the ranks first.
    What to do
        Data parallel: the defaults of DDP (`bucket_cap_mb`, `static_graph`, `gradient_as_bucket_view`), prefetching in
        FSDP, larger batches. Tensor parallel all-reduces lie on the critical path and can hardly be hidden.

    References
        DistributedDataParallel; FSDP; TensorBoard profiler plugin.
    """
    exposed = facts.amount_of("comm_exposed") or 0
    if facts.share(exposed) < options.number("share"):
        return
    work = facts.once(communicating)
    total = facts.mean(intervals.total(intervals.intersect(facts.windows, intervals.merge(work.start, work.end))))
    hidden = max(0, total - exposed)
    room = max(0, (facts.amount_of("compute") or 0) - hidden)
    yield Finding(
        saving=min(exposed, room),
        bound=exposed,
        draws="comm_exposed",
        intervals=intervals_of(*work.free),
        evidence=(
            Evidence("exposed", exposed, "DURATION"),
            Evidence("share", facts.share(exposed), "SHARE"),
            Evidence("overlap", hidden / total if total else 0.0, "SHARE"),
            Evidence("count", len(work), "COUNT"),
        ),
        scope=Scope(ops=names_of(facts, facts.context.device.name[work.event], work.exposed)),
        count=len(work),
    )
