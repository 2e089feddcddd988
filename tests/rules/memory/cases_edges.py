"""Rules about memory just at their thresholds: id → programs."""

from __future__ import annotations

from tests.rules.make import Fires, WithSnapshot, busy, program
from tests.rules.memory.cases import (
    GIB,
    HEALTHY,
    RESERVED,
    allocates,
    peak_inside,
    peak_of,
    peaks_in,
    queries,
    snapshot,
    with_memory,
)
from traceanalyze.analyses.memory.patterns import SmallBlocks

LINES = [f"train.py({number}): part_{number}" for number in range(5)]


def in_steps(*chosen, calls=("cudaMalloc",), each=200, count=5):
    """Calls of the allocator in some steps, of a device that works for a millisecond in each."""

    def body(b, at, number):
        names = calls if number in chosen else ()
        allocates(calls=names, each=each)(b, at, number)

    return program(body, steps=count)


def empties(b, at, number):
    """The cache is emptied by four functions of the program, and memory is taken again outside of them."""
    for place in range(4):
        b.python(LINES[place], at + 100 * place, 90)
        b.python("torch/cuda/memory.py(160): empty_cache", at + 100 * place + 5, 80)
        b.api("cudaFree", at + 100 * place + 10, 70)
    b.api("cudaMalloc", at + 410, 80)
    b.op("aten::mm", at + 500, 20)
    b.launch(at + 505, 10, at + 520, 1000)


def near(capacity):
    """Activations are the peak; the trace states the memory of the device, and the snapshot does not."""

    def body(b, at, number):
        b.header["deviceProperties"] = [{"id": 0, "name": "Example", "totalGlobalMem": capacity}]
        busy(b, at, number)

    return WithSnapshot(program(body), peak_of("activations").allocator)


FIRES = {
    "MEM101": [
        Fires(
            in_steps(0, 1, 2),
            sentence="taken",
            saving=119.4,
            severity="MEDIUM",
            count=3,
            evidence={"count": 3, "time": 119.4, "idle": 131.4},
            draws="idle",
            each=(219, 219, 219, 0, 0),
            first=(1, 200),
            look=(1, 200),
            options={"steps": (2, 2, 2.02)},
        ),
        Fires(
            in_steps(0, 1, 2, 3),
            sentence="taken",
            saving=159.2,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 159.2, "idle": 175.2},
            draws="idle",
            each=(219, 219, 219, 219, 0),
            first=(1, 200),
            look=(1, 200),
            options={"steps": (2, 3, 4)},
        ),
    ],
    "MEM102": [
        Fires(
            program(empties),
            saving=360,
            severity="MEDIUM",
            count=20,
            evidence={"count": 20, "time": 360, "idle": 380},
            ops=("train.py(0): part_0", "train.py(1): part_1", "train.py(2): part_2"),
            draws="idle",
            each=380,
            first=(10, 80),
            look=(10, 80),
            line="train.py(0): part_0",
        )
    ],
    "MEM103": [
        Fires(
            program(with_memory(allocates(calls=("cudaFree", "cudaMalloc")), allocated=GIB, reserved=72 * GIB)),
            saving=398,
            severity="MEDIUM",
            count=8,
            evidence={"count": 8, "time": 398, "idle": 418},
            draws="idle",
            each=418,
            first=(1, 200),
            look=(1, 200),
            options={"share": (0.9, 0.9, 0.91)},
        )
    ],
    "MEM107": [
        Fires(
            near(RESERVED * 100 // 96),
            severity="MEDIUM",
            evidence={"of_peak": 1, "amount": 996189696},
            ops=("model.py:40 forward",),
            options={"share": (0.5, 1, 1.01), "near": (0.95, 0.96000000054966, 0.9600000005496601)},
        ),
        Fires(
            peak_of("activations", capacity=RESERVED * 20 // 19),
            severity="MEDIUM",
            evidence={"of_peak": 1, "amount": 996189696},
            ops=("model.py:40 forward",),
            options={"share": (0.5, 1, 1.01)},
        ),
    ],
    "MEM109": [
        Fires(
            program(with_memory(busy, allocated=73 * GIB, reserved=76 * GIB)),
            evidence={"of_capacity": 0.9125, "peak": 78383153152, "capacity": 85899345920},
            options={"share": (0.9, 0.9, 0.9125)},
        )
    ],
    "MEM110": [
        Fires(
            program(queries(501)),
            count=501,
            evidence={"queries": 501},
            options={"queries": (500, 500, 501)},
        )
    ],
    "MEM111": [
        Fires(
            program(allocates(calls=("cudaMalloc",) * 50, each=10)),
            saving=450,
            severity="HIGH",
            count=200,
            evidence={"count": 200, "time": 450, "idle": 470},
            draws="idle",
            each=470,
            first=(1, 10),
            look=(501, 521),
            options={"share": (0.3, 50, 50.5), "least": (50, 50, 51)},
        ),
        Fires(
            in_steps(0, 1, 2, calls=("cudaMalloc",) * 90, each=10),
            saving=486,
            severity="HIGH",
            count=270,
            evidence={"count": 270, "time": 486, "idle": 498},
            draws="idle",
            each=(830, 830, 830, 0, 0),
            first=(1, 10),
            look=(901, 921),
            options={"share": (0.3, 54, 55), "least": (50, 54, 55)},
        ),
    ],
    "MEM113": [
        Fires(
            in_steps(0, 1, 2, calls=("cudaHostAlloc", "cudaMalloc")),
            saving=119.4,
            severity="MEDIUM",
            count=3,
            evidence={"count": 3, "time": 119.4, "idle": 0},
            draws="idle",
            each=(199, 199, 199, 0, 0),
            first=(222, 421),
            look=(222, 421),
        )
    ],
    "MEM115": [
        Fires(
            snapshot(small=SmallBlocks(1000, 0.3, 100, RESERVED // 100 + 1, "a.py:3", flagged=True)),
            count=1000,
            evidence={"blocks": 1000, "of_live": 0.3, "segments": 100, "amount": 11177821},
            ops=("a.py:3",),
            options={
                "blocks": (1000, 1000, 1001),
                "of_live": (0.3, 0.3, 0.303),
                "held": (0.01, 0.010000000751488203, 0.010000000751488205),
            },
        )
    ],
    "MEM118": [
        Fires(
            peaks_in("Optimizer.step#AdamW.step", 1),
            evidence={"peak": 2147483648},
        ),
        Fires(
            peak_inside("Optimizer.step#SGD.step", event=600),
            evidence={"peak": 996189696},
        ),
    ],
}
SILENT = {
    "MEM101": [in_steps(0, 1), in_steps(0, 1, calls=("cudaMalloc", "cudaMalloc"))],
    "MEM102": [program(allocates(calls=("cudaFree",)))],
    "MEM103": [program(with_memory(allocates(calls=("cudaFree",)), allocated=GIB, reserved=71 * GIB))],
    "MEM107": [near(RESERVED * 100 // 94), peak_of("activations", capacity=RESERVED * 20 // 18)],
    "MEM109": [
        program(with_memory(busy, allocated=72 * GIB, reserved=76 * GIB)),
        WithSnapshot(program(with_memory(busy, allocated=GIB, reserved=GIB)), HEALTHY),
    ],
    "MEM110": [program(queries(500))],
    "MEM111": [
        program(allocates(calls=("cudaMalloc",) * 49, each=10)),
        program(allocates(calls=("cudaMalloc",) * 30 + ("cudaFree",) * 30, each=10)),
        in_steps(0, 1, calls=("cudaMalloc",) * 200, each=8),
        program(allocates(calls=("cudaHostAlloc",) * 60, each=10)),
    ],
    "MEM115": [snapshot(small=SmallBlocks(1000, 0.3, 100, RESERVED // 100, "a.py:3", flagged=True))],
    "MEM118": [peaks_in("Optimizer.step#AdamW.step", 0)],
}
