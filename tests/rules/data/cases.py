"""What the rules about data loading must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import Fires, busy, kernel, program

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def loaded(time, *, name=SINGLE, anew=()):
    """A batch that takes `time(step)`, then work of a millisecond; `anew`: a new iterator is made before those."""

    def body(b, at, number):
        if number in anew:
            b.python("torch/utils/data/dataloader.py(438): _get_iterator", at + 2, 5)
        b.annotation(name, at + 10, time(number))
        kernel(b, at + 20 + time(number), 1000)

    return body


def under_work(b, at, number):
    """The kernel is on the device before the loader is asked."""
    kernel(b, at, 1900)
    b.annotation(SINGLE, at + 100, 800)


def on_host(time, *, name=SINGLE, device=None, anew=()):
    """The same on the host alone: a batch that takes `time(step)`, then operators; `device` adds a sign of one.

    An epoch ends before those that begin `anew`.
    """

    def body(b, at, number):
        if number in anew:
            b.annotation(name, at + 2, 5)
        b.annotation(name, at + 10, time(number))
        b.op("aten::mm", at + 20 + time(number), 1900 - time(number))
        if device is not None:
            b.op(device, at + 1950, 20)

    return body


def pinned(track):
    def body(b, at, number):
        b.op("aten::pin_memory", at + 10, 500, tid=track)
        kernel(b, at + 550, 1000)

    return body


def shaped(sizes):
    def body(b, at, number):
        size = sizes[number % len(sizes)]
        b.op("aten::mm", at, 20, **{"Input Dims": [[size, size]]})
        b.launch(at + 5, 5, at + 20, size)

    return body


FIRES = {
    "DAT101": [
        Fires(
            program(loaded(lambda number: 800)),
            saving=560,
            bound=800,
            confidence="MEDIUM",
            low=320,
            severity="HIGH",
            sentence="single",
            count=4,
            evidence={"idle": 800, "share": 0.4, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers", "cheaper_samples", "local_data"),
            draws="idle",
            each=800,
            first=(10, 810),
            look=(10, 810),
            options={"share": (0.05, 0.4, 0.404)},
        ),
        Fires(
            program(on_host(lambda number: 800)),
            saving=200,
            cost=800,
            low=100,
            confidence="MEDIUM",
            severity="MEDIUM",
            sentence="host_single",
            count=4,
            evidence={"time": 800, "share": 0.4, "batches": 4},
            ops=("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",),
            advice=("set_workers_host", "cheaper_samples", "local_data"),
            draws="host.data_loading",
            each=800,
            first=(10, 810),
            look=(10, 810),
            options={"share": (0.05, 0.4, 0.404)},
        ),
        Fires(
            program(on_host(lambda number: 800, name=SEVERAL)),
            saving=200,
            cost=800,
            low=100,
            confidence="MEDIUM",
            severity="MEDIUM",
            sentence="host",
            count=4,
            evidence={"time": 800, "share": 0.4, "batches": 4},
            ops=("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",),
            advice=("more_workers_host", "cheaper_samples", "local_data"),
            draws="host.data_loading",
            each=800,
            first=(10, 810),
            look=(10, 810),
            options={"share": (0.05, 0.4, 0.404)},
        ),
    ],
    "DAT102": [
        Fires(
            program(loaded(lambda number: 900 if number in {3, 6} else 20, name=SEVERAL, anew={3, 6}), steps=8),
            saving=220,
            severity="MEDIUM",
            count=2,
            evidence={"count": 2, "longest": 900, "median": 20},
            draws="idle",
            each=(0, 0, 0, 880, 0, 0, 880, 0),
            first=(6060, 6940),
            look=(6010, 6910),
            options={"ratio": (10, 44, 45)},
        ),
        Fires(
            program(on_host(lambda number: 900 if number in {3, 6} else 20, name=SEVERAL, anew={3, 6}), steps=8),
            saving=220,
            bound=241.25,
            severity="MEDIUM",
            count=2,
            evidence={"count": 2, "longest": 900, "median": 20},
            draws="host.data_loading",
            each=(0, 0, 0, 880, 0, 0, 880, 0),
            first=(6010, 6890),
            look=(6010, 6910),
            options={"ratio": (10, 44, 45)},
        ),
    ],
    "DAT103": [
        Fires(
            program(pinned(1)),
            saving=500,
            severity="HIGH",
            count=4,
            evidence={"count": 4, "time": 500},
            draws="idle",
            each=500,
            first=(70, 570),
            look=(70, 570),
        )
    ],
    "DAT104": [
        Fires(
            program(loaded(lambda number: 950 if number % 4 == 3 else 20, name=SEVERAL), steps=8),
            count=8,
            evidence={"variation": 1.594859},
            options={"share": (0.05, 0.12625, 0.13), "variation": (1, 1.5948, 1.5949)},
        ),
        Fires(
            program(on_host(lambda number: 950 if number % 4 == 3 else 20, name=SEVERAL), steps=8),
            count=8,
            evidence={"variation": 1.594859},
            options={"share": (0.05, 0.12625, 0.13), "variation": (1, 1.5948, 1.5949)},
        ),
    ],
    "DAT105": [
        Fires(
            program(loaded(lambda number: 50 + 80 * number), steps=10),
            count=10,
            evidence={"first": 130, "last": 690},
            options={"ratio": (2, 5.3076923076923075, 5.307692307692308), "share": (0.01, 0.205, 0.21)},
        ),
        Fires(
            program(on_host(lambda number: 50 + 80 * number), steps=10),
            count=10,
            evidence={"first": 130, "last": 690},
            options={"ratio": (2, 5.3076923076923075, 5.307692307692308), "share": (0.01, 0.205, 0.21)},
        ),
    ],
    "DAT107": [
        Fires(
            program(shaped((400, 1600)), steps=6),
            count=6,
            evidence={"variation": 0.6},
            options={"variation": (0.15, 0.59, 0.6), "steps": (4, 6, 7)},
        )
    ],
}

SILENT = {
    "DAT101": [
        program(busy),
        program(under_work),
        program(loaded(lambda number: 30)),
        program(on_host(lambda number: 90)),
        program(on_host(lambda number: 590, name=SEVERAL)),  # As long as fetching a batch takes that is ready.
        program(on_host(lambda number: 800, device="aten::pin_memory")),
    ],
    "DAT102": [
        program(loaded(lambda number: 900 if number == 0 else 20, name=SEVERAL, anew={0}), steps=8),
        # Each batch of a slow worker, with no sign of a new one.
        program(loaded(lambda number: 900 if number % 4 == 3 else 20, name=SEVERAL), steps=8),
        program(loaded(lambda number: 500, name=SEVERAL), steps=8),
        program(on_host(lambda number: 500, name=SEVERAL), steps=8),
    ],
    "DAT103": [program(busy), program(pinned(9))],
    "DAT104": [
        program(loaded(lambda number: 400, name=SEVERAL), steps=8),
        program(loaded(lambda number: 950 if number % 4 == 3 else 20), steps=8),
        program(on_host(lambda number: 950 if number % 4 == 3 else 20), steps=8),
    ],
    "DAT105": [program(loaded(lambda number: 400), steps=10), program(on_host(lambda number: 400), steps=10)],
    "DAT107": [program(shaped((1600, 1590)), steps=6), program(shaped((1600,)), steps=6)],
}
