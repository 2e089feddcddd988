import numpy as np
from numpy.typing import NDArray

from traceanalyze.ranks.results import Cluster
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
def find(ranks: Cluster, options: Options) -> Findings:
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
    times = [rank.kernels for rank in ranks.ranks]
    if any(not each.names for each in times):
        raise UnmeasuredError("no_kernel_shapes")
    places = [{key: at for at, key in enumerate(zip(each.names, each.what, strict=True))} for each in times]
    same = [key for key in places[0] if all(key in other for other in places)]
    if len(times) < 2 or not same:
        return
    rows = np.array([[own[key] for key in same] for own in places], np.int64)
    medians = np.stack([each.median[own] for each, own in zip(times, rows, strict=True)])
    ratios = medians / np.maximum(_medians_of_others(medians), 1)
    for position, own in enumerate(times):
        weight = own.time[rows[position]]
        if int(weight.sum()) < options.number("same") * int(own.time.sum()):
            continue
        ratio = ratios[position]
        slower = _weighted_median(ratio, weight) - 1
        if slower < options.number("slower"):
            continue
        rank = ranks.ranks[position]
        # The kernels are those of all its steps that count, not only of those that all ranks have.
        steps = max(int(rank.counted.sum()), 1)
        lost = round(float((weight * np.clip(1 - 1 / np.maximum(ratio, 1), 0, 1)).sum())) // steps
        costliest = same[int(weight.argmax())]
        yield Finding(
            bound=lost,
            draws="compute",
            evidence=(
                *measured(rank=rank.label, slower=slower, lost=lost, kernels=len(same)),
                Evidence("kernel", costliest[0], "KERNEL"),
            ),
            scope=Scope(ranks=() if rank.rank is None else (rank.rank,), ops=(f"rank {rank.label}",)),
            count=len(same),
            severity=Severity.LOW,
        )


def _medians_of_others(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each value the median of the others of its column; columns are sorted once."""
    order = np.argsort(values, axis=0, kind="stable")
    place = np.argsort(order, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    middle = [at + (at >= place) for at in ((len(values) - 2) // 2, (len(values) - 1) // 2)]
    return np.asarray(sum(np.take_along_axis(ordered, at, axis=0) for at in middle) / 2)


def _weighted_median(values: NDArray[np.float64], weight: NDArray[np.int64]) -> float:
    order = np.argsort(values, kind="stable")
    reach = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(reach, reach[-1] / 2)])
