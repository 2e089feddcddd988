import numpy as np

from traceanalyze.model.columns import quantile
from traceanalyze.model.vocabulary import ApiClass
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Severity, rule


@rule(
    "HST108",
    "far-cpu",
    title="launch calls of uneven speed",
    sentence="Half of the launch calls take up to {median}, but a tenth {slow} or more.",
    evidence={"slow": "90th percentile"},
    confidence=Confidence.LOW,
    needs="DLO",
    advice_texts={
        "bind_cores.cuda": (
            "Bind each process to the socket of its device: torchrun --numa-binding=node, or numactl --cpunodebind "
            "--membind."
        ),
        "bind_cores.ascend": "Bind cores: CPU_AFFINITY_CONF=1 (or 2); npu-smi info -t topo shows which are near.",
    },
    options={
        "ratio": (4.0, "own: 90th percentile of launch calls over their median"),
        "share": (0.10, "as HST101"),
        "late": (0.20, "as HST101"),
    },
    rare=True,
    beside="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """Launch calls take very different times.

    What it finds
        Programs whose host cannot keep up and whose launch calls are now fast, now slow.
    Why it costs time
        On a machine with several sockets a process that runs on the far one, or moves between cores, launches more
        slowly.
    How it is measured
        As HST101, and the 90th percentile of the launch calls is 4 times their median or more. Whether cores are bound
        is not in the recording, so this is a hint only.
    What to do
        Bind each process to the socket of its device.

    References
        torch elastic NUMA binding; PyTorch Performance Tuning Guide.
    """
    if not facts.once(launching).bound(options.number("share"), options.number("late")):
        return
    calls = facts.context.calls
    rows = np.flatnonzero((calls.klass == ApiClass.LAUNCH) & calls.outermost & facts.inside(calls.start))
    if len(rows) < 100:
        return
    time = (calls.end - calls.start)[rows]
    middle, slow = (int(quantile(time, part)) for part in (0.5, 0.9))
    if slow < options.number("ratio") * max(middle, 1):
        return
    yield Finding(
        evidence=(Evidence("median", middle, "DURATION"), Evidence("slow", slow, "DURATION")),
        count=len(rows),
        severity=Severity.INFO,
    )
