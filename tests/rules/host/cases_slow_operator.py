"""One operator that is slow on the host, and others that are not: id → programs.

Found as "the host launches too slowly" before the operators that came next: a kernel that Python launches, and a tensor
that the host fills with random numbers.
"""

from __future__ import annotations

from tests.rules.make import STEP, Fires, busy, kernel, program


def slow(time, name="aten::fused", *, launches=True, only=None):
    """Ten products, 20 µs on the host and 100 µs on the device; an operator of `time` µs; and work to the end."""

    def body(b, at, number):
        for part in range(10):
            kernel(b, at + 20 * part, 100)
        at += 1100  # The device has been idle for 80 µs, as the host was on its way.
        long = time if only in (None, number) else 20
        b.op(name, at, long)
        if launches:
            b.launch(at + long - 10, 10, at + long, 10)
        kernel(b, at + long, STEP - 1100 - 20 - long)

    return program(body)


FIRES = {
    "HST114": [
        Fires(
            slow(400),
            saving=370,
            severity="MEDIUM",
            count=4,
            evidence={"what": "aten::fused", "typical": 390, "ratio": 19.5, "idle": 390, "count": 4},
            ops=("aten::fused",),
            draws="idle",
            each=390,
            first=(1100, 1490),
            look=(1100, 1500),
            options={"ratio": (5, 19.5, 19.51), "share": (0.05, 0.195, 0.196), "least_us": (100, 390, 390.1)},
        ),
        Fires(
            slow(400, "aten::normal_", launches=False),
            saving=380,
            severity="MEDIUM",
            count=4,
            advice=("host_tensors",),
            evidence={"what": "aten::normal_", "typical": 400, "ratio": 20, "idle": 400, "count": 4},
            ops=("aten::normal_",),
            draws="idle",
            each=400,
            first=(1100, 1500),
            look=(1100, 1500),
        ),
        # Once, while others of its name are fast.
        Fires(
            slow(500, only=1),
            cost=122.5,
            once=True,
            evidence={"what": "aten::fused", "typical": 490, "ratio": 24.5, "idle": 122.5, "count": 1},
            ops=("aten::fused",),
            each=(0, 490, 0, 0),
            first=(3100, 3590),
            look=(3100, 3600),
        ),
    ],
}
SILENT = {
    "HST114": [
        slow(400, "c10d::broadcast_", launches=False),  # Waits for other ranks.
        program(busy),
        slow(109),  # 99 µs itself.
        slow(400, "aten::as_strided", launches=False),  # Views are slow where Python takes part in every operator.
    ],
}
