"""Rules about the host just at their thresholds, and on hosts that compute: id → programs."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.rules.host.cases import copied, stopped, uneven
from tests.rules.make import STEP, Fires, Silent, busy, kernel, program, waited
from tests.rules.on_host import Op, Range, steps

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def bursts(b, at, number):
    """Kernels of 10 µs that are queued all at once, then some of 3 µs that come 40 µs apart."""
    for part in range(60):
        b.op("aten::mul", at + 3 * part, 2)
        b.launch(at + 3 * part + 0.5, 1, at + 10 + 10 * part, 10)
    for part in range(30):
        kernel(b, at + 650 + 40 * part, 3, host=36)


def loading(*calls):
    """A step of 100 ms with long calls that the device waits for; the others are busy."""

    def body(b, at, number):
        rest = 99_000
        for call in calls if number == 1 else ():
            b.op("aten::conv2d", at, call + 20)
            b.launch(at + 5, call, at + call + 20, 500)
            at, rest = at + call + 510, rest - call - 510
        for part in range(129):
            kernel(b, at + part * rest / 129, rest / 129 - 22)

    return program(body, length=100_000)


def mixed_fills(memsets):
    """Four fills of 100 µs without a gap, so many of them by the driver."""

    def body(b, at, number):
        b.annotation("Optimizer.zero_grad#Adam.zero_grad", at, 100)
        for part in range(4):
            kinds = {"api": "cudaMemsetAsync", "cat": "gpu_memset", "name": "Memset"} if part < memsets else {}
            b.op("aten::zero_", at + 15 * part, 10)
            b.launch(at + 15 * part + 1, 4, at + 200 + 100 * part, 100, **kinds)
        b.copy(at + 70, 4, at + 600, 50, name="Memcpy DtoD (Device -> Device)")
        b.op("aten::mm", at + 110, 10)
        b.launch(at + 112, 4, at + 650, STEP - 450)

    return waited(body)


def waited_lines(*waits):
    """Python in so many functions of the program, while the device waits; then a kernel for each."""

    def body(b, at, number):
        start = at
        for place, wait in enumerate(waits):
            b.python(f"train.py({10 + place}): part_{place}", start + 1, wait - 2)
            kernel(b, start + wait, 300)
            start += wait + 320

    return program(body, length=4000)


def just(b, at, number):
    """Twelve copies of 64 KiB."""
    for part in range(12):
        b.copy(at + part * 50, 5, at + part * 50 + 10, 20, name="Memcpy HtoD (Pinned -> Device)", bytes=65536)
    kernel(b, at + 1000, 900)


def as_long(b, at, number):
    """Kernels just as long as their launches, and one that another thread launches."""
    for part in range(100):
        b.op("aten::mul", at + 20 * part, 18)
        b.launch(at + 20 * part + 2, 4, at + 20 * part + 10, 4)


def optimizer(name, op, count, *more):
    """As many operators of 4 µs, 5 µs apart."""
    return steps(Range(f"Optimizer.step#{name}.step", (*more, *(Op(op, 4) for _ in range(count))), 5.0 * count))


def zeroing(count, *, name="Optimizer.zero_grad#AdamW.zero_grad", each=40, only_in=range(4)):
    """Operators that fill with zeros, in these steps; one more lies outside of the range."""
    b = TraceBuilder()
    for number in range(4):
        at = number * STEP
        b.step(number, at, STEP)
        if number in only_in:
            b.annotation(name, at, each * count)
            for part in range(count):
                b.op("aten::zero_", at + each * part, each)
        b.op("aten::zero_", at + 400, 100)
        b.op("aten::addmm", at + 500, 1500)
    return b


def filled(steps, *, memset=True):
    """A fill of 200 µs in the first steps, and work in all."""

    def body(b, at, number):
        if number < steps:
            b.annotation("Optimizer.zero_grad#Adam.zero_grad", at, 100)
            kinds = {"api": "cudaMemsetAsync", "cat": "gpu_memset", "name": "Memset"} if memset else {}
            b.op("aten::zero_", at, 10)
            b.launch(at + 2, 4, at + 10, 200, **kinds)
        for part in range(8):
            b.op("aten::mm", at + 150 + 20 * part, 10)
            b.launch(at + 152 + 20 * part, 4, at + 210 + 220 * part, 220)

    return waited(body)


def collected(time, *, length=1_000_000):
    """A collection of so many µs in one of four steps of a host that computes."""
    b = steps(length=length)
    b.event("gc", "Python GC", length + 100, time)
    return b


def calling(count, *, length=STEP):
    """So many operators of 2 µs a step, with 2 µs between them; then a millisecond and more without any."""
    b = TraceBuilder()
    for number in range(4):
        at = number * length
        b.step(number, at, length)
        for part in range(count):
            b.op("aten::add", at + 4 * part, 2)
    return b


def mixed_sizes(b, at, number):
    """Twelve copies, seven of them below 64 KiB."""
    for part in range(12):
        size = 65536 if part >= 7 else 1024
        b.copy(at + part * 50, 5, at + part * 50 + 10, 20, name="Memcpy HtoD (Pinned -> Device)", bytes=size)
    kernel(b, at + 1000, 900)


def lines(*stretches):
    """Stretches of the host without operators, each in a line of the program."""
    b = steps(*(part for stretch in stretches for part in (stretch, Op("aten::add", 10))), length=8000)
    for number in range(4):
        at = number * 8000
        b.python("train.py(10): train", at, 8000)
        for place, stretch in enumerate(stretches):
            b.python(f"train.py({40 + place}): part", at + 5, stretch - 10)
            at += stretch + 10
    return b


FIRES = {
    "HST101": [
        Fires(
            program(bursts),
            saving=1261.5,
            severity="HIGH",
            count=496,
            evidence={"idle": 1310, "late": 0.971183, "depth": 11.5},
            draws="idle",
            each=1310,
            first=(0, 10),
            look=(1849, 2010),
            options={"share": (0.1, 0.545, 0.55), "late": (0.2, 5089 / 5240, 0.9712)},
        ),
    ],
    "HST104": [
        Fires(
            collected(200_000),
            saving=50000,
            severity="MEDIUM",
            confidence="HIGH",
            sentence="host",
            evidence={"count": 1, "longest": 200000, "time": 50000},
            draws="host",
            each=(0, 200000, 0, 0),
            first=(1000100, 1200100),
            look=(1000100, 1200100),
        ),
        Fires(
            collected(199_999),
            saving=49999.75,
            severity="LOW",
            confidence="HIGH",
            sentence="host",
            evidence={"count": 1, "longest": 199999, "time": 49999.75},
            draws="host",
            each=(0, 199999, 0, 0),
            first=(1000100, 1200099),
            look=(1000100, 1200099),
        ),
        Fires(
            program(stopped({1, 3}), length=20_000),
            saving=6540,
            severity="HIGH",
            sentence="suspected",
            count=2,
            evidence={"count": 2, "longest": 13080, "idle": 6040},
            draws="idle",
            each=(0, 12080, 0, 12080),
            first=(21020, 33100),
            look=(20020, 33100),
            options={"least": (2, 2, 2.02), "busy": (0.05, 0.6, 0.61)},
        ),
    ],
    "HST107": [
        Fires(
            waited_lines(200, 500, 400, 300),
            saving=2720,
            severity="HIGH",
            sentence="some_lines",
            count=20,
            evidence={
                "idle": 2720,
                "longest": 1320,
                "line": "train.py(11): part_1",
                "what": "train.py(11): part_1; train.py(12): part_2; train.py(13): part_3",
            },
            ops=("train.py(11): part_1", "train.py(12): part_2", "train.py(13): part_3"),
            advice=("move_python", "host_light_run"),
            draws="idle.untraced",
            each=2720,
            first=(0, 200),
            look=(2680, 4000),
            options={"share": (0.1, 0.68, 0.69)},
        ),
        Fires(
            steps(1200.0, Op("aten::add", 10), 300.0),
            saving=1200,
            severity="HIGH",
            sentence="host_place",
            count=4,
            evidence={"time": 1200, "longest": 1200, "what": "aten::add"},
            ops=("aten::add",),
            draws="host.untraced",
            each=1200,
            first=(0, 1200),
            look=(0, 1200),
            options={"share": (0.1, 0.6, 0.61), "stretch_ms": (1, 1.2, 1.21)},
        ),
        Fires(
            steps(1000.0),
            saving=1000,
            bound=1000,
            severity="HIGH",
            sentence="host_place",
            count=4,
            evidence={"time": 1000, "longest": 1000, "what": "aten::addmm"},
            ops=("aten::addmm",),
            draws="host.untraced",
            each=1000,
            first=(0, 1000),
            look=(0, 1000),
            options={"share": (0.1, 0.5, 0.51), "stretch_ms": (1, 1, 1.01)},
        ),
        Fires(
            lines(1100.0, 1300.0, 1200.0, 1150.0),
            saving=4750,
            bound=4750,
            severity="HIGH",
            sentence="host_some_lines",
            count=16,
            evidence={
                "time": 4750,
                "longest": 1300,
                "line": "train.py(41): part",
                "what": "train.py(41): part; train.py(42): part; train.py(43): part",
            },
            ops=("train.py(41): part", "train.py(42): part", "train.py(43): part"),
            advice=("move_python", "host_light_run"),
            draws="host.untraced",
            each=4750,
            first=(0, 1100),
            look=(1110, 2410),
            options={"share": (0.1, 0.59375, 0.6), "stretch_ms": (1, 1.3, 1.31)},
        ),
    ],
    "HST108": [
        Fires(
            program(bursts),
            count=360,
            evidence={"median": 1, "slow": 18},
            options={"ratio": (4, 18, 19), "share": (0.1, 0.545, 0.55), "late": (0.2, 5089 / 5240, 0.9712)},
        ),
        Fires(
            program(uneven(15), steps=1),
            count=100,
            evidence={"median": 3, "slow": 15},
            options={"ratio": (4, 5, 6), "share": (0.1, 0.73, 0.74)},
        ),
    ],
    "HST109": [
        Fires(
            waited(copied(11, 1024), length=20_000),
            saving=214.995,
            severity="LOW",
            count=44,
            evidence={"each": 11, "bytes": 1024, "time": 275},
            each=275,
            first=(0, 5),
            look=(10, 30),
            options={"count": (10, 10, 11), "bytes": (65536, 1025, 1024)},
        ),
        Fires(
            waited(copied(10, 1024), length=5000),
            saving=193.5,
            cost=250,
            severity="LOW",
            count=40,
            evidence={"each": 10, "bytes": 1024, "time": 250},
            each=250,
            first=(0, 5),
            look=(10, 30),
            options={"bytes": (65536, 1025, 1024), "share": (0.05, 0.05, 0.051)},
        ),
        Fires(
            waited(mixed_sizes),
            saving=129.003,
            cost=175,
            severity="MEDIUM",
            count=28,
            evidence={"each": 7, "bytes": 1024, "time": 175},
            each=175,
            first=(0, 5),
            look=(10, 30),
            options={"bytes": (65536, 1025, 1024), "share": (0.05, 0.0875, 0.088)},
        ),
    ],
    "HST110": [
        Fires(
            calling(250, length=1400),
            bound=1250,
            sentence="host",
            count=4,
            evidence={"time": 1250, "share": 1},
            advice=("larger_batch", "compile_host"),
            options={"calls": (0.4, 1, 1.01), "operators": (100, 250, 251)},
        ),
        Fires(
            calling(100, length=800),
            bound=740,
            sentence="host",
            count=4,
            evidence={"time": 740, "share": 1},
            advice=("larger_batch", "compile_host"),
            options={"calls": (0.4, 1, 1.01), "operators": (100, 100, 101)},
        ),
    ],
    "HST111": [
        Fires(
            optimizer("AdamW", "aten::addcdiv_", 120),
            saving=386.4,
            severity="MEDIUM",
            sentence="host",
            count=480,
            evidence={"operators": 120, "time": 600},
            ops=("Optimizer.step#AdamW.step",),
            advice=("fused_optimizer_host",),
            draws="host",
            each=600,
            first=(0, 600),
            look=(0, 600),
            options={"operators": (100, 120, 121)},
            prices={"fused_calls": (0.2, 0.16, 397.92)},
        ),
        Fires(
            optimizer("Adam", "aten::addcdiv_", 100),
            saving=322,
            severity="MEDIUM",
            sentence="host",
            count=400,
            evidence={"operators": 100, "time": 500},
            ops=("Optimizer.step#Adam.step",),
            advice=("fused_optimizer_host",),
            draws="host",
            each=500,
            first=(0, 500),
            look=(0, 500),
            options={"operators": (100, 100, 101)},
            prices={"fused_calls": (0.2, 0.16, 331.6)},
        ),
        Fires(
            optimizer("SGD", "aten::mul_", 120),
            saving=320.4,
            severity="MEDIUM",
            sentence="host",
            count=480,
            evidence={"operators": 120, "time": 600},
            ops=("Optimizer.step#SGD.step",),
            advice=("fused_optimizer_host",),
            draws="host",
            each=600,
            first=(0, 600),
            look=(0, 600),
            options={"operators": (100, 120, 121)},
            prices={"fused_calls": (0.2, 0.16, 331.92)},
        ),
        Fires(
            optimizer("Adagrad", "aten::addcdiv_", 120),
            saving=361.309,
            severity="MEDIUM",
            sentence="host",
            count=480,
            evidence={"operators": 120, "time": 600},
            ops=("Optimizer.step#Adagrad.step",),
            advice=("fused_optimizer_host",),
            draws="host",
            each=600,
            first=(0, 600),
            look=(0, 600),
            options={"operators": (100, 120, 121)},
            prices={"fused_calls": (0.2, 0.16, 372.829)},
        ),
        Fires(
            optimizer("Adam", "aten::_foreach_add_", 120),
            saving=343.2,
            severity="MEDIUM",
            sentence="host_foreach",
            count=480,
            evidence={"operators": 120, "time": 600},
            ops=("Optimizer.step#Adam.step",),
            advice=("fused_optimizer_host",),
            draws="host",
            each=600,
            first=(0, 600),
            look=(0, 600),
            options={"operators": (100, 120, 121)},
            prices={"fused_calls_foreach": (0.35, 0.28, 363.36)},
        ),
    ],
    "HST112": [
        Fires(
            mixed_fills(4),
            saving=401.25,
            cost=450,
            severity="MEDIUM",
            count=16,
            evidence={"count": 16, "time": 450},
            each=(600, 400, 400, 400),
            first=(0, 600),
            look=(0, 600),
        ),
        Fires(
            mixed_fills(3),
            saving=401.25,
            cost=450,
            severity="MEDIUM",
            count=16,
            evidence={"count": 16, "time": 450},
            each=(600, 400, 400, 400),
            first=(0, 600),
            look=(0, 600),
        ),
        Fires(
            mixed_fills(2),
            saving=401.25,
            cost=450,
            severity="MEDIUM",
            count=16,
            evidence={"count": 16, "time": 450},
            each=(600, 400, 400, 400),
            first=(0, 600),
            look=(0, 600),
        ),
        Fires(
            zeroing(10),
            saving=400,
            severity="HIGH",
            count=40,
            evidence={"count": 40, "time": 400},
            draws="host.ops",
            each=400,
            first=(0, 400),
            look=(0, 400),
        ),
        Fires(
            zeroing(1, each=200),
            saving=200,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 200},
            draws="host.ops",
            each=200,
            first=(0, 200),
            look=(0, 200),
        ),
        Fires(
            filled(4),
            saving=150,
            cost=232.5,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 232.5},
            each=(240, 240, 240, 210),
            first=(0, 210),
            look=(1970, 2210),
        ),
        Fires(
            filled(4, memset=False),
            saving=150,
            cost=232.5,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 232.5},
            each=(240, 240, 240, 210),
            first=(0, 210),
            look=(1970, 2210),
        ),
    ],
}
SILENT = {
    "HST102": [program(as_long)],
    "HST101": [Silent(program(bursts), share=0.9), program(busy)],
    "HST107": [steps(999.9), steps(900.0, Op("aten::add", 10), 900.0), Silent(steps(1000.0), share=0.51)],
    "HST109": [program(just), waited(copied(10, 1024), length=20_000), waited(copied(10, 1024), length=5001)],
    "HST110": [calling(99, length=800)],
    "HST111": [
        optimizer("AdamW", "aten::_fused_adamw_", 120),
        optimizer("AdamW", "aten::addcdiv_", 120, Op("aten::_fused_adamw_", 1)),
        optimizer("AdamW", "aten::addcdiv_", 99),
        optimizer("Adamax", "aten::addcdiv_", 120),
        optimizer("SGD", "aten::add_", 120),
    ],
    "HST112": [zeroing(1, each=200, only_in=(0, 1, 3)), filled(3), zeroing(10, name="my own zeros")],
}
