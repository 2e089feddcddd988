from functools import partial

import numpy as np

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.launches import ended_late
from traceanalyze.model.columns import occurs
from traceanalyze.model.vocabulary import ApiClass, EventKind
from traceanalyze.rules.common.launching import at_least, launching
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, measured, picked, rule


@rule(
    "HST102",
    "short-kernels",
    title="kernels shorter than their launch",
    sentence=(
        "{share} of the kernels take less time than the calls that launch them; the device is idle for {idle} {per} "
        "right after these."
    ),
    confidence=Confidence.HIGH,
    needs="DLO",
    advice=("fewer_kernels", "graphs", "larger_batch"),
    options={
        "share": (0.30, "HTA: kernels shorter than their launch, of all launches"),
        "idle": (0.05, "own: share of the step idle right after them"),
    },
    order=2,
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels are shorter than the calls that launch them.

    What it finds
        Programs of which many kernels do so little that launching them takes longer.
    Why it costs time
        However fast the device is, it cannot do more kernels than the host launches.
    How it is measured
        Linked kernels with a launch call of their own that is longer than the kernel, from 30 % of the launches on, and
        idle time of the host's making that begins where such a kernel ends, from 5 % of the step on. Kernels of graphs
        share one launch and do not count.
    What to do
        Fuse them, do several small tensors in one (`_foreach_*`), replay CUDA graphs, enlarge the batch.

    References
        Holistic Trace Analysis; PyTorch Performance Tuning Guide.
    """
    context = facts.context
    device, calls = context.device, context.calls
    kernel = (device.kind == EventKind.KERNEL) & (context.link >= 0) & facts.inside(device.start)
    link = context.link.astype(np.intp)
    launch = (np.bincount(link[kernel], minlength=len(calls)) == 1) & (calls.klass == ApiClass.LAUNCH)
    linked = kernel & launch[link]
    short = linked & (device.end - device.start < (calls.end - calls.start)[link])
    share = int(short.sum()) / max(int(linked.sum()), 1)
    gaps = context.once(idle_gaps)
    late = context.once(ended_late)
    if late is None or share < options.number("share"):
        return
    after = late & occurs(gaps.start, device.end[short])
    host = facts.once(launching)
    spans = picked(host.spans[:, 0], host.spans[:, 1], after[host.gap])
    saving = facts.length(spans)
    if facts.share(saving) < options.number("idle"):
        return
    yield Finding(
        saving=saving,
        at_least=partial(at_least, facts, spans),
        bound=saving,
        draws="idle",
        intervals=spans,
        evidence=measured(share=share, count=int(short.sum()), idle=saving),
        count=int(short.sum()),
    )
