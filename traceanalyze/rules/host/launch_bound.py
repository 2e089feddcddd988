from traceanalyze.model.vocabulary import DISPATCH, Cause
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, rule


@rule(
    "HST101",
    "launch-bound",
    title="the host launches too slowly",
    sentence=(
        "The device waits {idle} {per} for the host to prepare and launch work; {late} of its idle time ends with "
        "work that was launched too late."
    ),
    evidence={"late": "idle time ended by late launches", "depth": "median queue depth"},
    confidence=Confidence.HIGH,
    needs="DLO",
    advice=("fewer_kernels", "graphs", "larger_batch", "host_light_run"),
    advice_texts={
        "host_light_run": (
            "Stacks and shapes slow the host down while recording: confirm with a recording without them."
        ),
    },
    options={
        "share": (0.10, "own: dispatch and host operators from 10 % of the step on"),
        "late": (0.20, "HTA: a fifth ends with work that was launched too late"),
    },
    order=2,
)
def find(facts: Facts, options: Options) -> Findings:
    """The device is idle because the host launches too slowly.

    What it finds
        Steps in which the queue runs empty: the next kernel is launched only after the device has become idle.
    Why it costs time
        Each operator costs the host some microseconds in Python, in torch and in the runtime. Where kernels are shorter
        than that, the device waits for the host, and a faster device would not help.
    How it is measured
        Idle time of the device in dispatch and host operators (definitions §5) from 10 % of the step on, while a fifth
        of the idle time ends with work launched meanwhile, or the median queue depth is 1 or less. The saving is that
        idle time with the Python between operators (stretches below 1 ms), less what other findings explain, and
        without work that is done once (CGR106).
    What to do
        Fewer and larger kernels: fusion, `torch.compile`, a fused optimizer; CUDA graphs; a larger batch; less Python
        in the loop. Python stacks and shapes make the host slower while recording: confirm with a light recording.

    References
        PyTorch Performance Tuning Guide; Holistic Trace Analysis; MindStudio general performance issues.
    """
    host = facts.once(launching)
    if not host.bound(options.number("share"), options.number("late")):
        return
    saving = facts.length(host.spans)
    yield Finding(
        saving=saving,
        bound=facts.idle_mean(*DISPATCH, Cause.UNTRACED),
        draws="idle",
        intervals=host.spans,
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("late", host.late, "SHARE"),
            *(() if host.depth is None else (Evidence("depth", host.depth, "NUMBER"),)),
        ),
        count=len(host.spans),
    )
