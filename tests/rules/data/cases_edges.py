"""Rules about data loading just at their thresholds: id → programs."""

from __future__ import annotations

from tests.rules.data.cases import SEVERAL, SINGLE, loaded, on_host, shaped
from tests.rules.make import STEP, Fires, kernel, program


def pinned(count):
    """Pinned in the first steps; many kernels in each."""

    def body(b, at, number):
        if number < count:
            b.op("aten::pin_memory", at + 10, 500)
        for part in range(10):
            kernel(b, at + 550 + 30 * part, 9)

    return program(body)


def unmarked(count):
    """Waits for a batch where no step is marked; before the first kernel nothing is known to wait."""
    b = program(lambda b, at, number: None, steps=0)
    for number in range(count):
        b.annotation(SINGLE, number * STEP, 900)
        kernel(b, number * STEP + 900, 1000)
    return b


def restarted(count, *, name=SEVERAL):
    """The third and the last of so many batches take 900 µs, one a step."""
    return program(
        loaded(lambda number: 900 if number in {2, count - 1} else 20, name=name, anew={2, count - 1}), steps=count
    )


def slow(*waits, name=SEVERAL, anew=()):
    return program(loaded(lambda number: waits[number], name=name, anew=anew), steps=len(waits))


FIRES = {
    "DAT101": [
        Fires(
            program(loaded(lambda number: 10_000), length=300_000),
            saving=5000,
            bound=10000,
            confidence="MEDIUM",
            low=0,
            severity="LOW",
            sentence="single",
            count=4,
            evidence={"idle": 10000, "share": 0.033333, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers", "cheaper_samples", "local_data"),
            draws="idle",
            each=10000,
            first=(10, 10010),
            look=(10, 10010),
            options={"least_ms": (10, 10, 11)},
        ),
        Fires(
            program(loaded(lambda number: 220), length=4400),
            saving=110,
            bound=220,
            confidence="MEDIUM",
            low=0,
            severity="LOW",
            sentence="single",
            count=4,
            evidence={"idle": 220, "share": 0.05, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers", "cheaper_samples", "local_data"),
            draws="idle",
            each=220,
            first=(10, 230),
            look=(10, 230),
            options={"share": (0.05, 0.05, 0.051)},
        ),
        Fires(
            program(on_host(lambda number: 900)),
            saving=300,
            cost=900,
            low=150,
            confidence="MEDIUM",
            severity="MEDIUM",
            sentence="host_single",
            count=4,
            evidence={"time": 900, "share": 0.45, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers_host", "cheaper_samples", "local_data"),
            draws="host.data_loading",
            each=900,
            first=(10, 910),
            look=(10, 910),
            options={"share": (0.05, 0.45, 0.455)},
        ),
        Fires(
            unmarked(4),
            saving=2039,
            bound=2700,
            confidence="MEDIUM",
            low=1378,
            severity="HIGH",
            sentence="single",
            count=4,
            evidence={"idle": 2700, "share": 0.385714, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers", "cheaper_samples", "local_data"),
            draws="idle",
            each=2700,
            first=(2000, 2900),
            look=(2000, 2900),
            options={"share": (0.05, 0.38571428571428573, 0.3857142857142858)},
        ),
    ],
    "DAT102": [
        Fires(
            restarted(6),
            saving=293.333,
            severity="MEDIUM",
            count=2,
            evidence={"count": 2, "longest": 900, "median": 20},
            draws="idle",
            each=(0, 0, 880, 0, 0, 880),
            first=(4060, 4940),
            look=(4010, 4910),
            options={"ratio": (10, 44, 45)},
        ),
        Fires(
            slow(900, 20, 20, 20, 20, 900, 900, anew={0, 5, 6}),
            saving=251.429,
            severity="MEDIUM",
            count=2,
            evidence={"count": 2, "longest": 900, "median": 20},
            draws="idle",
            each=(0, 0, 0, 0, 0, 880, 880),
            first=(10060, 10940),
            look=(10010, 10910),
            options={"ratio": (10, 44, 45)},
        ),
    ],
    "DAT103": [
        Fires(
            pinned(2),
            saving=250,
            severity="MEDIUM",
            count=2,
            evidence={"count": 2, "time": 250},
            draws="idle",
            each=(500, 500, 0, 0),
            first=(70, 570),
            look=(70, 570),
        ),
        Fires(
            pinned(4),
            saving=500,
            severity="HIGH",
            count=4,
            evidence={"count": 4, "time": 500},
            draws="idle",
            each=500,
            first=(70, 570),
            look=(70, 570),
        ),
    ],
    "DAT104": [
        Fires(
            slow(20, 20, 20, 950),
            count=4,
            evidence={"variation": 1.594859},
            options={"share": (0.05, 0.12625, 0.13), "variation": (1, 1.5948, 1.5949)},
        )
    ],
    "DAT105": [
        Fires(
            slow(100, 100, 100, 150, 150, 150, 200, 200, 200, name=SINGLE),
            count=9,
            evidence={"first": 100, "last": 200},
            options={"ratio": (2, 2, 2.02), "share": (0.01, 0.075, 0.076)},
        )
    ],
    "DAT107": [
        Fires(
            program(shaped((400, 1600)), steps=4),
            count=4,
            evidence={"variation": 0.6},
            options={"variation": (0.15, 0.59, 0.6), "steps": (4, 4, 5)},
        )
    ],
}
SILENT = {
    "DAT101": [program(loaded(lambda number: 9_900), length=300_000), program(loaded(lambda number: 60)), unmarked(3)],
    "DAT102": [restarted(5), slow(900, 20, 20, 20, 20, 900, anew={0, 5}), restarted(6, name=SINGLE)],
    "DAT103": [pinned(1)],
    "DAT104": [slow(20, 20, 950), slow(20, 950, 20, 950)],
    "DAT105": [
        slow(100, 100, 150, 150, 150, 150, 200, 200, name=SINGLE),
        slow(100, 100, 100, 150, 150, 150, 199, 199, 199, name=SINGLE),
        slow(599, 599, 599, 800, 800, 800, 1200, 1200, 1200),
    ],
    "DAT107": [program(shaped((400, 1600)), steps=3)],
}
