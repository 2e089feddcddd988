from dataclasses import replace

from traceanalyze.model.patterns import regex
from traceanalyze.rules.common.launching import idle_during
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_GLOO = regex(r"^gloo:(?!barrier|monitored_barrier)")


@rule(
    "COM114",
    "cpu-backend",
    title="collectives of gloo",
    sentence="Collectives of gloo ({count} in all) leave the device without work {idle} {per}.",
    confidence=Confidence.HIGH,
    needs="DO",
    advice_texts={
        "device_backend.cuda": 'init_process_group("nccl") for tensors on devices.',
        "device_backend.ascend": 'init_process_group("hccl") for tensors on devices.',
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are sent by a backend of the CPU.

    What it finds
        Collectives of gloo, other than barriers, during which the device is idle.
    Why it costs time
        Gloo sends from host memory: the tensors are copied there and back, and no fast link is used.
    How it is measured
        Idle time of the device during ranges named `gloo:…`; at most, all time of these ranges.
    What to do
        `init_process_group("nccl")` (`hccl` on Ascend) for tensors on devices; gloo is right for objects on the host.

    References
        torch.distributed.
    """
    rows = facts.rows(RANGES, _GLOO)
    if len(rows):
        found = idle_during(facts, rows, facts.names(rows[:1]))
        yield replace(found, evidence=tuple(one for one in found.evidence if one.label != "host"))
