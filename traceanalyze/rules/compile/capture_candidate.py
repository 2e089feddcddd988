import numpy as np

from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Severity, measured, rule


@rule(
    "CGR104",
    "capture-candidate",
    title="steps that could be one graph",
    sentence=(
        "{steps} steps launch the same {kernels} kernels in the same order, and the device waits {idle} {per} for the "
        "launches."
    ),
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={
        "capture_graph": (
            'Capture the step: torch.compile(mode="reduce-overhead") or torch.cuda.make_graphed_callables.'
        ),
        "capture_graph.ascend": "Capture the step: graph mode by torchair, or an aclgraph.",
    },
    options={
        "share": (0.10, "as HST101"),
        "late": (0.20, "as HST101"),
        "least": (100.0, "own: kernels a step, below which there is little to capture"),
    },
    beside="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """Every step launches the same kernels, one by one, and the host is too slow.

    What it finds
        At least three steps with the same kernels in the same order, hardly any wait of the host for the device within
        them, while the host cannot keep the queue filled.
    Why it costs time
        The host pays for every launch again although nothing changes. A graph that was captured once is launched by a
        single call.
    How it is measured
        Names of the kernels of each complete step in order of launch; as HST101 otherwise, which tells what the idle
        time costs.
    What to do
        `torch.compile(mode="reduce-overhead")`, or `torch.cuda.make_graphed_callables`; on Ascend graph mode (torchair,
        aclgraph). Shapes must not change; what communicates may have to stay outside.

    References
        CUDA semantics, CUDA graphs; torch_npu environment variables.
    """
    if not facts.marked or facts.window.count < 3:
        return
    host = facts.once(launching)
    if not host.bound(options.number("share"), options.number("late")):
        return
    number = _same_kernels(facts)
    if number is None or number < options.number("least"):
        return
    if _waits(facts) > facts.window.count:
        return  # More than the one wait a step that the training loop may make at its end.
    yield Finding(
        evidence=measured(idle=facts.length(host.spans), kernels=number, steps=facts.window.count),
        count=facts.window.count,
        severity=Severity.LOW,
    )


def _same_kernels(facts: Facts) -> int | None:
    """Kernels of each of the steps, None where the steps differ."""
    context, device = facts.context, facts.context.device
    event = np.flatnonzero(
        (device.kind == EventKind.KERNEL)
        & (device.klass == DeviceClass.COMPUTE)
        & (device.device == context.devices[0])
        & (context.link >= 0)
    )
    event = event[np.argsort(context.launch_start[event], kind="stable")]
    t, name = context.launch_start[event], device.name[event]
    steps = facts.analysis.steps
    rows = np.array(facts.window.rows, np.int64)
    first, last = (np.searchsorted(t, edges[rows]) for edges in (steps.host_start, steps.host_end))
    number = int(last[0] - first[0])
    if (last - first != number).any():
        return None
    each = name[np.add.outer(first, np.arange(number))]
    return number if (each == each[0]).all() else None


def _waits(facts: Facts) -> int:
    """Sync calls of the steps."""
    start = facts.context.calls.start[facts.context.once(is_sync_call)]
    return int(facts.inside(start).sum())
