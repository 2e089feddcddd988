"""What the rules about the host must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import Fires, busy, crowded, kernel, program, waited


def many_kernels(gap):
    """Kernels of 50 µs that all lie in the queue before the first begins."""

    def body(b, at, number):
        for part in range(30):
            b.op("aten::mul", at + 6 * part, 5)
            # Not a clock of whole microseconds.
            b.launch(at + 6 * part + 1.125, 3, at + 200 + part * (50 + gap), 50)

    return body


def collected(b, at, number):
    if number == 1:
        b.event("gc", "Python GC", at + 10, 1500)
        for part in range(4):
            kernel(b, at + 1600 + 100 * part, 75)
    else:
        busy(b, at, number)


def collected_under_work(b, at, number):
    kernel(b, at, 1900)
    b.event("gc", "Python GC", at + 100, 1500)


def stopped(chosen):
    """The whole host stands still for 12 ms in the chosen steps of 20 ms, each time after another operator."""

    def body(b, at, number):
        pause = 12_000 if number in chosen else 0
        kernel(b, at, 1000, op=f"aten::op{number}")
        kernel(b, at + 1100 + pause, 17_000 - pause)

    return body


def anomaly(b, at, number):
    b.python("torch/autograd/anomaly_mode.py(80): __enter__", at, 50)
    busy(b, at, number)


def blocking(sync):
    def body(b, at, number):
        for part in range(30):
            t = at + part * 60
            b.op("aten::mul", t, 10)
            b.launch(t + 1, 5, t + 8, 40)
            if sync:
                b.api("cudaStreamSynchronize", t + 11, 38)

    return body


def after_python(time):
    def body(b, at, number):
        kernel(b, at + time, 1980 - time)

    return body


def uneven(slow):
    def body(b, at, number):
        for part in range(100):
            t = at + part * 20
            b.op("aten::mul", t, 18)
            b.launch(t + 1, slow if part % 5 == 0 else 3, t + 17, 1)

    return body


def copied(count, size):
    def body(b, at, number):
        for part in range(count):
            b.copy(at + part * 50, 5, at + part * 50 + 10, 20, name="Memcpy HtoD (Pinned -> Device)", bytes=size)
        kernel(b, at + 1000, 900)

    return body


def half_idle(part):
    def body(b, at, number):
        b.op("aten::mm", at, 2000 * (1 - part))
        b.launch(at + 2000 * (1 - part) - 10, 5, at + 2000 * (1 - part), 2000 * part)

    return body


def optimized(op, count, *, name="Adam", inside=None):
    def body(b, at, number):
        kernel(b, at, 500)
        b.annotation(f"Optimizer.step#{name}.step", at + 520, 10 * count)
        if inside:
            b.annotation(f"Optimizer.step#{inside}.step", at + 520.5, 10 * count - 1)
        for part in range(count):
            kernel(b, at + 520 + 10 * part, 5, host=4, op=op)

    return body


def zeroed(name):
    def body(b, at, number):
        b.annotation(name, at, 420)
        for part in range(20):
            b.op("aten::zero_", at + 20 * part, 10)
            b.launch(
                at + 20 * part + 2, 4, at + 20 * part + 8, 10, api="cudaMemsetAsync", cat="gpu_memset", name="Memset"
            )
        kernel(b, at + 500, 1400)

    return body


def slow_call(b, at, number):
    """A kernel of 0.4 ms, and one whose launch begins meanwhile and takes 1.48 ms."""
    kernel(b, at, 400)
    b.op("aten::mul", at + 100, 1500)
    b.launch(at + 110, 1480, at + 1600, 379)


FIRES = {
    "HST101": [
        Fires(
            program(crowded),
            saving=1547.875,
            severity="HIGH",
            count=1600,
            evidence={"idle": 1700, "late": 0.999853, "depth": 1},
            draws="idle",
            each=1700,
            first=(0, 16),
            look=(19, 36),
            options={"share": (0.1, 0.8, 0.81)},
        ),
        # The device runs dry during a launch call of 1.48 ms that began before.
        Fires(
            program(slow_call),
            saving=1215.875,
            severity="HIGH",
            count=24,
            evidence={"idle": 1221, "late": 0.9957, "depth": 1},
            draws="idle",
            each=1221,
            first=(0, 20),
            look=(420, 1600),
        ),
    ],
    "HST102": [
        Fires(
            program(crowded),
            saving=1544.25,
            severity="HIGH",
            count=400,
            evidence={"share": 1, "count": 400, "idle": 1695.75},
            draws="idle",
            each=(1684, 1700, 1700, 1699),
            first=(19, 36),
            look=(19, 36),
            options={"share": (0.3, 1, 1.01), "idle": (0.05, 0.847875, 0.86)},
        )
    ],
    "HST103": [
        Fires(
            program(many_kernels(8)),
            saving=116,
            cost=232,
            severity="MEDIUM",
            count=116,
            evidence={"idle": 232, "count": 116},
            draws="idle.device_side",
            each=232,
            first=(250, 258),
            look=(250, 258),
            options={
                "share": (0.03, 0.116, 0.12),
                "depth": (2, 15.5, 16),
                "graphs_save": (0.5, 0.4310323275862069, 0.43103232758620685),
            },
        )
    ],
    "HST104": [
        Fires(
            program(collected),
            saving=375,
            severity="MEDIUM",
            confidence="HIGH",
            evidence={"count": 1, "longest": 1500, "idle": 375},
            draws="idle",
            each=(0, 1500, 0, 0),
            first=(2010, 3510),
            look=(2010, 3510),
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
    "HST105": [
        Fires(
            program(anomaly),
            severity="MEDIUM",
            count=4,
            evidence={"what": "torch/autograd/anomaly_mode.py(80): __enter__", "count": 4},
            ops=("torch/autograd/anomaly_mode.py(80): __enter__",),
        )
    ],
    "HST106": [
        Fires(
            program(blocking(sync=True)),
            saving=753.375,
            severity="HIGH",
            count=120,
            evidence={"share": 1, "count": 120},
            draws="idle",
            each=(747, 755, 755, 544.5),
            first=(49.5, 68),
            look=(1789.5, 2008),
            options={"share": (0.5, 1, 1.01), "least": (20, 30, 31)},
        )
    ],
    "HST107": [
        Fires(
            program(after_python(900)),
            saving=900,
            severity="HIGH",
            sentence="place",
            count=4,
            evidence={"idle": 900, "longest": 900, "what": "aten::mm"},
            ops=("aten::mm",),
            draws="idle.untraced",
            each=900,
            first=(0, 900),
            look=(0, 900),
            options={"share": (0.1, 0.45, 0.455)},
        )
    ],
    "HST108": [
        Fires(
            program(uneven(15)),
            count=400,
            evidence={"median": 3, "slow": 15},
            options={"ratio": (4, 5, 6), "share": (0.1, 0.73, 0.74)},
        )
    ],
    "HST109": [
        Fires(
            waited(copied(12, 1024)),
            saving=236.496,
            cost=300,
            severity="MEDIUM",
            count=48,
            evidence={"each": 12, "bytes": 1024, "time": 300},
            each=300,
            first=(0, 5),
            look=(10, 30),
            options={"bytes": (65536, 1025, 1024)},
        )
    ],
    "HST110": [
        Fires(
            program(half_idle(0.3)),
            count=4,
            evidence={"busy": 0.3},
            options={"busy": (0.5, 0.303, 0.3), "other": (0.5, 0.01, 0)},
        )
    ],
    "HST111": [
        Fires(
            program(optimized("aten::addcdiv_", 120)),
            saving=1128,
            severity="HIGH",
            count=480,
            evidence={"kernels": 120, "time": 600, "host": 1200},
            each=1199,
            first=(520, 1719),
            look=(520, 1719),
            options={"kernels": (50, 120, 121), "short_us": (10, 6, 5)},
        ),
        Fires(
            program(optimized("aten::_foreach_add_", 30)),
            saving=195,
            cost=299,
            severity="MEDIUM",
            sentence="foreach",
            count=120,
            evidence={"kernels": 30, "time": 150, "host": 300},
            each=299,
            first=(520, 819),
            look=(520, 819),
            options={"lists": (4, 30, 31)},
        ),
    ],
    "HST112": [
        Fires(
            program(zeroed("Optimizer.zero_grad#Adam.zero_grad")),
            saving=420,
            severity="HIGH",
            count=80,
            evidence={"count": 80, "time": 458},
            each=(478, 478, 478, 398),
            first=(0, 398),
            look=(1920, 2398),
        )
    ],
}

SILENT = {
    "HST101": [program(busy), program(many_kernels(1))],
    "HST102": [program(busy)],
    "HST103": [program(many_kernels(1)), program(crowded)],
    "HST104": [program(busy), program(collected_under_work), program(stopped({1}), length=20_000)],
    "HST105": [program(busy)],
    "HST106": [program(blocking(sync=False)), program(busy)],
    "HST107": [program(busy), program(after_python(100))],
    "HST108": [program(uneven(4)), program(busy)],
    "HST109": [waited(copied(12, 1 << 20)), waited(copied(2, 1024))],
    "HST110": [program(busy), program(half_idle(0.7))],
    "HST111": [
        program(optimized("aten::_fused_adamw_", 120)),
        program(busy),
        # None of torch's that have a fused form, alone or inside one that has.
        program(optimized("aten::mul", 120, name="Shampoo")),
        program(optimized("aten::mul", 120, inside="EMA")),
    ],
    "HST112": [program(zeroed("something else"))],
}
