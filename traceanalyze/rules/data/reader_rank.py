from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.collectives import TYPES
from traceanalyze.rules.rule import (
    Confidence,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster, MatchedGroup

_BROADCAST = TYPES.index("broadcast")


@rule(
    "DAT106",
    "reader-rank",
    title="one rank reads for the others",
    sentence={
        "": (
            "Rank {rank} waits for its data loader {time} {per}, and the others wait for it in a broadcast at the "
            "start of the step ({wait})."
        ),
        "all": (
            "All {ranks} ranks wait for their data loaders, {least} to {most} {per}: they may share slow storage or "
            "read the same data."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="ORC",
    advice=("prefetch_on_reader",),
    advice_texts={
        "prefetch_on_reader": (
            "Read the next batch in a thread of the reading rank while the step runs; one reader a node; or give every "
            "rank data of its own (DistributedSampler)."
        ),
        "read_apart": (
            "Let every rank read data of its own from local disks; where the ranks of a tensor parallel group need the "
            "same data, read it once a group and broadcast it."
        ),
    },
    options={
        "share": (0.05, "TensorBoard plugin: a loader above 5 % of the step is a bottleneck"),
        "equal": (0.5, "own: of the reader's loading that the others spend in the broadcast"),
    },
    order=-1,
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """One rank reads for the others, which wait for it; or all ranks wait for their loaders.

    What it finds
        A rank that waits for its data loader for 5 % of its step or more, while the others, which do not, wait in a
        broadcast at the start of the step; or all ranks waiting for their loaders.
    Why it costs time
        While one rank reads, the devices of all others are idle. Where all read at the same time, they may share the
        storage that slows them down, or read the same data.
    How it is measured
        Idle time in data loading of every rank; duration of the first collective of the step, if it is a broadcast,
        beyond its shortest on any rank. The saving is as much of the loading as the others spend in it with no compute
        beside it; at most, all loading of the reader. Broadcasts of the first step alone (those of parameters) are
        left out. What all ranks spend in their loaders is told by DAT101 of each.
    What to do
        Prefetch on the reading rank in a thread, so that the next batch is there when the step begins; one reader a
        node. Where the ranks of a tensor parallel group need the same data, read it once a group and broadcast it;
        else give every rank data of its own.

    References
        Ascend foundation-model tuning guide; torch.distributed; torch.utils.data.
    """
    loading = ranks.part("data_loading")
    if loading is None or not loading.size:
        raise UnmeasuredError("no_device_events" if ranks.part("compute") is None else "no_host_ops")
    time = ranks.step_time.sum(axis=1)
    share = loading.sum(axis=1) / np.maximum(time, 1)
    reads = share >= options.number("share")
    if reads.all():
        per_step = loading.sum(axis=1) // loading.shape[1]
        yield Finding(
            sentence="all",
            evidence=measured(ranks=len(reads), least=int(per_step.min()), most=int(per_step.max())),
            advice=("read_apart",),
            count=loading.shape[1],
            severity=Severity.LOW,
        )
        return
    for one in ranks.groups:
        members = np.array(one.members)
        reader = int(share[members].argmax())
        others = np.arange(len(members)) != reader
        if not reads[members[reader]] or reads[members[others]].any():
            continue
        wait, shown, steps = _first_broadcasts(one)
        waited = int(wait[:, others].sum(axis=0).mean()) // loading.shape[1]
        read = int(loading[members[reader]].sum()) // loading.shape[1]
        if 2 * len(steps) < loading.shape[1] or waited < options.number("equal") * read:
            continue
        label = ranks.ranks[int(members[reader])].label
        number = ranks.ranks[int(members[reader])].rank
        yield Finding(
            saving=min(read, int(shown[:, others].sum(axis=0).mean()) // loading.shape[1]),
            bound=read,
            draws="comm_exposed",
            evidence=measured(rank=label, time=read, wait=waited),
            scope=Scope(ranks=() if number is None else (number,), ops=(f"rank {label}",)),
            count=len(steps),
        )


def _first_broadcasts(one: "MatchedGroup") -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Broadcasts that are the first collective of the group in their step.

    Waiting by member, of it what is exposed, and the steps.
    """
    steps, first = np.unique(one.step, return_index=True)
    chosen = one.kind[first] == _BROADCAST
    rows = first[chosen]
    wait = one.end[rows] - one.start[rows] - one.transfer[rows, None]
    return wait, np.minimum(wait, one.exposed[rows]), steps[chosen]
