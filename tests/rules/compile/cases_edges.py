"""Rules about compilation and graphs just at their thresholds: id → programs."""

from __future__ import annotations

from tests.rules.comm.cases import compute, reduce
from tests.rules.compile.cases import regions
from tests.rules.host.cases_edges import bursts, loading
from tests.rules.make import Fires, Silent, crowded, program, waited


def compiled(graphs):
    """A compiled region in each of twenty steps, and so many launches of graphs in all."""

    def body(b, at, number):
        b.annotation("Torch-Compiled Region: 0/0", at, 1950)
        if number < graphs:
            b.api("cudaGraphLaunch", at + 1, 2)
        bursts(b, at, number)

    return program(body, steps=20)


def backward(first, count=8):
    """A compiled backward from 100 to 400 µs, and so many reductions in all, asked for from some µs on."""

    def body(b, at, number):
        b.annotation("DistributedDataParallel.forward", at, 50)
        b.op("CompiledFunctionBackward", at + 100, 300, tid=2)
        compute(b, at + 110, at + 130, 1500, tid=2)
        for part in range(count // 4 + (number < count % 4)):
            reduce(b, at + first + 20 * part, at + 1650 + 500 * part, 480, tid=2)

    return waited(body, length=4000)


def waiting(count):
    """So many waits of the host in all."""

    def body(b, at, number):
        crowded(b, at, number)
        for part in range(count // 4 + (number < count % 4)):
            b.api("cudaStreamSynchronize", at + 17 + 20 * part, 1)

    return program(body)


FIRES = {
    "CGR106": [
        Fires(
            loading(40_000),
            cost=10003.75,
            once=True,
            evidence={"idle": 10003.75, "share": 0.100038, "longest": 40015},
            look=(100000, 140015),
            each=(0, 40015, 0, 0),
            first=(100000, 140015),
            options={"least": (0.01, 0.1000375, 0.101)},
        ),
        Fires(
            loading(20_000, 50_000),
            cost=17505,
            once=True,
            count=2,
            evidence={"idle": 17505, "share": 0.17505, "longest": 50005},
            look=(120520, 170525),
            each=(0, 70020, 0, 0),
            first=(100000, 120015),
        ),
    ],
    "CGR101": [
        Fires(
            program(regions("0/0", "1/0", "2/0")),
            saving=750,
            severity="HIGH",
            count=12,
            evidence={"graphs": 3, "regions": 3, "eager": 16.5},
            ops=("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 1/0", "Torch-Compiled Region: 2/0"),
            draws="idle",
            each=750,
            first=(150, 195),
            look=(450, 600),
            options={"frames": (2, 3, 4), "between": (5, 16.5, 17)},
        ),
        Fires(
            program(regions("0/0", "1/0", eager=3)),
            saving=420,
            severity="HIGH",
            count=8,
            evidence={"graphs": 2, "regions": 2, "eager": 5.25},
            ops=("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 1/0"),
            draws="idle",
            each=420,
            first=(150, 195),
            look=(270, 600),
            options={"frames": (2, 2, 2.02), "between": (5, 5.25, 5.3)},
        ),
    ],
    "CGR103": [
        Fires(
            compiled(1),
            saving=1259.775,
            severity="HIGH",
            count=20,
            evidence={"idle": 1260, "regions": 20},
            ops=("Torch-Compiled Region: 0/0",),
            draws="idle",
            each=1260,
            first=(0, 10),
            look=(1849, 1950),
            options={
                "share": (0.1, 0.545, 0.55),
                "late": (0.2, 26049 / 26200, 0.9943),
                "graphs": (0.05, 0.05, 0.0495),
            },
        )
    ],
    "CGR104": [
        Fires(
            program(crowded, steps=3),
            severity="LOW",
            count=3,
            evidence={"idle": 1700, "kernels": 100, "steps": 3},
            options={"share": (0.1, 0.8, 0.81), "least": (100, 100, 101)},
        ),
        Fires(
            waiting(4),
            severity="LOW",
            count=4,
            evidence={"idle": 1700, "kernels": 100, "steps": 4},
            options={"share": (0.1, 0.8, 0.81), "least": (100, 100, 101)},
        ),
        Fires(
            program(bursts),
            severity="LOW",
            count=4,
            evidence={"idle": 1310, "kernels": 90, "steps": 4},
            options={"share": (0.1, 0.545, 0.55), "late": (0.2, 5089 / 5240, 0.9712), "least": (100, 90, 91)},
            given={"least": 90},
        ),
    ],
    "CGR105": [
        Fires(
            backward(398),
            saving=960,
            severity="HIGH",
            count=8,
            evidence={"exposed": 960, "count": 8},
            ops=("CompiledFunctionBackward",),
            draws="comm_exposed",
            each=960,
            first=(1650, 2130),
            look=(1650, 2130),
        ),
        Fires(
            backward(398, count=2),
            saving=480,
            severity="MEDIUM",
            count=2,
            evidence={"exposed": 480, "count": 2},
            ops=("CompiledFunctionBackward",),
            draws="comm_exposed",
            each=480,
            first=(1650, 2130),
            look=(1650, 2130),
        ),
    ],
}
SILENT = {
    "CGR106": [loading(8_977)],
    "CGR101": [program(regions("0/0", "1/0", eager=2))],
    "CGR103": [compiled(2), Silent(compiled(1), late=1.0)],
    "CGR104": [program(crowded, steps=2), waiting(5)],
    "CGR105": [backward(397), backward(398, count=1)],
}
