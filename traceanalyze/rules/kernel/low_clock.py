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

_APART = 4
"""Ranks up to which each has a finding of its own."""


@rule(
    "KRN118",
    "low-clock",
    title="kernels slower than on other ranks",
    sentence={
        "": (
            "On rank {rank} the same kernels ({kernels} of them) take {slower} longer than on the others, {lost} "
            "{per}: its clock is lower, or something else uses the device."
        ),
        "many": (
            "On ranks {which} the same kernels ({kernels} of them) take longer than on the others; on rank "
            "{rank}, the slowest, {slower} longer, {lost} {per}: their clocks are lower, or something else uses the "
            "devices."
        ),
    },
    evidence={"kernel": "kernel", "which": "which ranks"},
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
        most, all that these kernels take longer can be saved; what it costs the run is told by RNK101. More than four
        such ranks are told together, by the slowest of them.
    What to do
        Look at clock rates and reasons for throttling (`nvidia-smi -q -d PERFORMANCE,CLOCK`, `rocm-smi`,
        `npu-smi info`), cooling and power limits, and at other processes on the device.

    References
        msprof-analyze advisor, AI Core frequency.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.overview import slower_kernels
    from traceanalyze.ranks.results import spans

    if any(not rank.kernels.names for rank in ranks.ranks):
        raise UnmeasuredError("no_kernel_shapes")
    kernels = slower_kernels(ranks.ranks)
    if kernels is None:
        return
    alike = kernels.time.sum(axis=1) >= options.number("same") * np.array(
        [int(rank.kernels.time.sum()) for rank in ranks.ranks]
    )
    found = np.flatnonzero((kernels.slower - 1 >= options.number("slower")) & alike)
    many = [ranks.ranks[at] for at in found.tolist()] if len(found) > _APART else []
    slowest = found[kernels.slower[found] == kernels.slower[found].max()][:1] if many else found
    for position in slowest.tolist():
        rank, weight, ratio = ranks.ranks[position], kernels.time[position], kernels.ratios[position]
        about = many or [rank]
        which = Evidence("which", spans([one.label for one in many]), "TEXT")
        slower = float(kernels.slower[position]) - 1
        # The kernels are those of all its steps that count, not only of those that all ranks have.
        steps = max(int(rank.counted.sum()), 1)
        lost = round(float((weight * np.clip(1 - 1 / np.maximum(ratio, 1), 0, 1)).sum())) // steps
        costliest = kernels.names[int(weight.argmax())]
        yield Finding(
            bound=lost,
            draws="compute",
            sentence="many" if many else "",
            evidence=(
                *((which,) if many else ()),
                *measured(rank=rank.label, slower=slower, lost=lost, kernels=len(kernels.names)),
                Evidence("kernel", costliest, "KERNEL"),
            ),
            scope=Scope(
                ranks=tuple(one.rank for one in about if one.rank is not None),
                ops=tuple(f"rank {one.label}" for one in sorted(about, key=lambda one: one is not rank)),
            ),
            count=len(kernels.names),
            severity=Severity.LOW,
        )
