"""What the rules about data loading must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import busy, kernel, program

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def loaded(time, *, name=SINGLE):
    """A batch that takes `time(step)`, then work of a millisecond."""

    def body(b, at, number):
        b.annotation(name, at + 10, time(number))
        kernel(b, at + 20 + time(number), 1000)

    return body


def under_work(b, at, number):
    """The kernel is on the device before the loader is asked."""
    kernel(b, at, 1900)
    b.annotation(SINGLE, at + 100, 800)


def on_host(time, *, name=SINGLE, device=None):
    """The same on the host alone: a batch that takes `time(step)`, then operators; `device` adds a sign of one."""

    def body(b, at, number):
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
        program(loaded(lambda number: 800)),
        program(on_host(lambda number: 800)),
        program(on_host(lambda number: 800, name=SEVERAL)),
    ],
    "DAT102": [
        program(loaded(lambda number: 900 if number in {3, 6} else 20, name=SEVERAL), steps=8),
        program(on_host(lambda number: 900 if number in {3, 6} else 20, name=SEVERAL), steps=8),
    ],
    "DAT103": [program(pinned(1))],
    "DAT104": [
        program(loaded(lambda number: 950 if number % 4 == 3 else 20, name=SEVERAL), steps=8),
        program(on_host(lambda number: 950 if number % 4 == 3 else 20, name=SEVERAL), steps=8),
    ],
    "DAT105": [
        program(loaded(lambda number: 50 + 80 * number), steps=10),
        program(on_host(lambda number: 50 + 80 * number), steps=10),
    ],
    "DAT107": [program(shaped((400, 1600)), steps=6)],
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
        program(loaded(lambda number: 900 if number == 0 else 20, name=SEVERAL), steps=8),
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
