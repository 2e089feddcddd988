from traceanalyze.model.columns import distinct
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    measured,
    rule,
)

_MODULE = regex(r"^DataParallel\.forward$|^nn\.Module: DataParallel(_\d+)?$|nn/parallel/data_parallel\.py")
_PARTS = regex(r"^(Broadcast|Gather|Scatter)(Backward)?$|^(comm\.)?broadcast_coalesced")


@rule(
    "COM113",
    "data-parallel-module",
    title="nn.DataParallel",
    sentence="One process drives {devices} devices by nn.DataParallel.",
    evidence={"devices": "devices"},
    confidence=Confidence.HIGH,
    needs="O",
    advice_texts={"use_ddp": "torch.nn.parallel.DistributedDataParallel with one process a device (torchrun)."},
    platforms=("cuda",),
    threshold=False,
)
def find(facts: Facts, options: Options) -> Findings:
    """One process drives several devices by nn.DataParallel.

    What it finds
        Programs in which one process launches work on several devices and copies the module to them in every step.
    Why it costs time
        All devices share one Python interpreter; the module is broadcast in every forward and the results are gathered
        on one device.
    How it is measured
        `DataParallel.forward`, or operators that broadcast, scatter and gather modules, in a process that launched work
        on more than one device. What it costs cannot be told from the recording.
    What to do
        `DistributedDataParallel`, one process a device.

    References
        DistributedDataParallel; PyTorch Performance Tuning Guide; TensorBoard profiler plugin.
    """
    device = facts.context.device.device
    devices = len(distinct(device[device >= 0]))
    if devices < 2:
        return
    count = len(facts.rows((*RANGES, EventKind.PYTHON), _MODULE)) or len(facts.rows(RANGES, _PARTS))
    if count:
        yield Finding(
            evidence=(Evidence("devices", devices, "COUNT"), *measured(count=count)),
            scope=Scope(ops=("torch.nn.DataParallel",)),
            count=count,
            severity=Severity.HIGH,
        )
