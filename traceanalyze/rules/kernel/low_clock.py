from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
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
    from traceanalyze.ranks.results import Cluster


@rule(
    "KRN118",
    "low-clock",
    title="one rank computes more slowly",
    sentence=(
        "On rank {rank} the same kernels ({kernels} of them) take {slower} longer than on the others, {lost} {per}: "
        "its clock is lower, or something else uses the device."
    ),
    evidence={"kernel": "kernel"},
    confidence=Confidence.MEDIUM,
    needs="RK",
    advice_texts={
        "check_clock.cuda": (
            "Look at clocks and reasons for throttling (nvidia-smi -q -d PERFORMANCE,CLOCK; rocm-smi), at cooling and "
            "power limits, and at other processes on the device."
        ),
        "check_clock.ascend": (
            "Look at frequency, temperature and power (npu-smi info -t common -i ID), at cooling, and at other "
            "processes on the device."
        ),
    },
    options={
        "slower": (0.10, "own: same kernel and shape on one rank"),
        "same": (0.5, "own: of the rank's recorded kernel time that other ranks have, too"),
    },
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """The same kernels take longer on one rank than on the others.

    What it finds
        A rank on which kernels of the same name, shapes and launch configuration take 10 % longer than on the others.
    Why it costs time
        The others wait for it in the next collective. Equal work that takes longer speaks for a lower clock (power,
        temperature) or for another process on the device, not for the program.
    How it is measured
        Median duration of each kernel on the rank over the median of the others' medians; of these ratios the median,
        weighted by time. Kernels below 5 µs, with fewer than three runs, or beside communication are left out. At
        most, all that these kernels take longer can be saved; what it costs the run is told by RNK101.
    What to do
        Look at clock rates and reasons for throttling (`nvidia-smi -q -d PERFORMANCE,CLOCK`, `rocm-smi`,
        `npu-smi info`), cooling and power limits, and at other processes on the device.

    References
        msprof-analyze advisor, AI Core frequency.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.overview import slower_kernels

    if any(not rank.kernels.names for rank in ranks.ranks):
        raise UnmeasuredError("no_kernel_shapes")
    kernels = slower_kernels(ranks.ranks)
    if kernels is None:
        return
    for position in np.flatnonzero(kernels.slower - 1 >= options.number("slower")).tolist():
        rank, weight, ratio = ranks.ranks[position], kernels.time[position], kernels.ratios[position]
        if int(weight.sum()) < options.number("same") * int(rank.kernels.time.sum()):
            continue
        slower = float(kernels.slower[position]) - 1
        # The kernels are those of all its steps that count, not only of those that all ranks have.
        steps = max(int(rank.counted.sum()), 1)
        lost = round(float((weight * np.clip(1 - 1 / np.maximum(ratio, 1), 0, 1)).sum())) // steps
        costliest = kernels.names[int(weight.argmax())]
        yield Finding(
            bound=lost,
            draws="compute",
            evidence=(
                *measured(rank=rank.label, slower=slower, lost=lost, kernels=len(kernels.names)),
                Evidence("kernel", costliest, "KERNEL"),
            ),
            scope=Scope(ranks=() if rank.rank is None else (rank.rank,), ops=(f"rank {rank.label}",)),
            count=len(kernels.names),
            severity=Severity.LOW,
        )
