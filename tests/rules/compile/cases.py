"""What the rules about compilation and graphs must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.comm.cases import compute, reduce
from tests.rules.make import Fires, busy, crowded, half, program, waited
from tests.rules.sequences import STEP


def regions(*names, eager=6, around=None):
    """Compiled regions one after the other, with eager operators between them."""

    def body(b, at, number):
        if around:
            b.annotation(around, at, 1900)
        for place, name in enumerate(names):
            t = at + 600 * place
            b.annotation(f"Torch-Compiled Region: {name}", t, 100)
            compute(b, t + 10, t + 30, 100, name="triton_poi_fused_0")
            for part in range(eager):
                compute(b, t + 120 + 60 * part, t + 140 + 60 * part, 10)

    return body


def compiled_backward(b, at, number):
    """Six eager kernels between two regions, without a gap; 1 ms of idle time in the compiled backward meanwhile."""
    b.annotation("Torch-Compiled Region: 0/0", at, 100)
    compute(b, at + 10, at + 30, 200, name="triton_poi_fused_0")
    for part in range(6):
        compute(b, at + 110 + 10 * part, at + 230 + 10 * part, 10)
    b.annotation("CompiledFunctionBackward", at + 180, 1300, tid=2)
    compute(b, at + 1300, at + 1320, 400, name="triton_red_fused_1", tid=2)
    b.annotation("Torch-Compiled Region: 1/0", at + 1500, 100)
    compute(b, at + 1510, at + 1720, 200, name="triton_poi_fused_1")


def compiling(*in_steps):
    return lambda b, at, number: _compiling(b, at, number, in_steps)


def _compiling(b, at, number, in_steps):
    if number in in_steps:
        b.annotation("_compile.compile_inner (dynamo_timed)", at + 100, 1200)
        for part in range(4):
            compute(b, at + 1400 + 100 * part, at + 1420 + 100 * part, 90)
    else:
        busy(b, at, number)


def compiling_beside(b, at, number):
    compute(b, at, at + 20, 1900)
    b.annotation("_compile.compile_inner (dynamo_timed)", at + 100, 1200)


def compiled(graphs):
    def body(b, at, number):
        b.annotation("Torch-Compiled Region: 0/0", at, 1950)
        if graphs:
            b.api("cudaGraphLaunch", at + 1, 2)
        crowded(b, at, number)

    return body


def varying(b, at, number):
    crowded(b, at, number)
    compute(b, at + 1900, at + 1990, 5, name=f"kernel_of_step_{number}")


def reading(b, at, number):
    crowded(b, at, number)
    for part in range(5):
        b.api("cudaStreamSynchronize", at + 200 * part + 17, 1)


def backward(first):
    """A compiled backward, with reductions from so many µs after its begin on."""

    def body(b, at, number):
        b.annotation("DistributedDataParallel.forward", at, 50)
        b.op("CompiledFunctionBackward", at + 100, 300, tid=2)
        compute(b, at + 110, at + 130, 1500, tid=2)
        for part in range(3):
            reduce(b, at + first + 20 * part, at + 1650 + 500 * part, 480, tid=2)

    return body


def steps(body):
    return program(body, length=STEP)


FIRES = {
    "CGR101": [
        Fires(
            program(regions("0/0", "1/0", "2/0")),
            # Of a gap of 50 µs before an eager kernel 5 are left when its launch has returned and should have begun.
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
        )
    ],
    "CGR102": [
        Fires(
            program(compiling(0, 2)),
            saving=600,
            severity="HIGH",
            count=2,
            evidence={"idle": 600, "host": 600, "count": 2},
            ops=("_compile.compile_inner (dynamo_timed)",),
            draws="idle",
            each=(1200, 0, 1200, 0),
            first=(100, 1300),
            look=(100, 1300),
        )
    ],
    "CGR106": [
        Fires(
            program(compiling(0, 1)),
            cost=600,
            once=True,
            sentence="compile",
            count=2,
            evidence={"idle": 600, "share": 0.3, "longest": 1200},
            each=(1200, 1200, 0, 0),
            first=(100, 1300),
            look=(100, 1300),
        )
    ],
    "CGR103": [
        Fires(
            program(compiled(graphs=False)),
            saving=1547.875,
            severity="HIGH",
            count=4,
            evidence={"idle": 1659, "regions": 4},
            ops=("Torch-Compiled Region: 0/0",),
            draws="idle",
            each=1659,
            first=(0, 16),
            look=(19, 36),
            options={"share": (0.1, 0.8, 0.81)},
        )
    ],
    "CGR104": [
        Fires(
            program(crowded),
            severity="LOW",
            count=4,
            evidence={"idle": 1700, "kernels": 100, "steps": 4},
            options={"share": (0.1, 0.8, 0.81), "least": (100, 100, 101)},
        )
    ],
    "CGR105": [
        Fires(
            waited(backward(450), length=STEP),
            saving=1440,
            severity="HIGH",
            count=12,
            evidence={"exposed": 1440, "count": 12},
            ops=("CompiledFunctionBackward",),
            draws="comm_exposed",
            each=1440,
            first=(1650, 2130),
            look=(1650, 2130),
        )
    ],
}
SILENT = {
    "CGR101": [
        program(compiled_backward),
        program(regions("0/0", "0/0", "0/0")),
        program(regions("0/0", "1/0", "2/0", eager=0)),
        program(regions("0/0", "1/0", "2/0", around="Optimizer.step#Muon.step")),
    ],
    # Seen in one step, or in the first two only: compiled code is kept.
    "CGR102": [program(busy), program(compiling_beside), program(compiling(1)), program(compiling(0, 1))],
    "CGR106": [program(busy), program(compiling_beside), program(compiling(0, 2))],
    "CGR103": [program(compiled(graphs=True)), program(crowded), program(busy)],
    "CGR104": [program(busy), program(varying), program(reading), program(half), program(crowded, steps=2)],
    "CGR105": [waited(backward(150), length=STEP)],
}
