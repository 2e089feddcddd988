"""What the rules about the recording must find, and what not: id → programs."""

from __future__ import annotations

import numpy as np

from tests.builder import TraceBuilder
from tests.rules.make import STEP, Fires, busy, kernel, program
from tests.rules.memory.cases import simulated, snapshot
from tests.simulate.allocator.programs import Loop
from traceanalyze.analyses.memory.lifetimes import Curve
from traceanalyze.readers.kineto import read_text


def uneven(first):
    b = TraceBuilder()
    at = 0.0
    for number, part in enumerate((first, 1, 1, 1)):
        b.step(number, at, part * STEP)
        busy(b, at, number)
        at += part * STEP
    return b


def rich(b, at, number):
    b.python("train.py(3): step", at, STEP)
    b.op("aten::mm", at, 20, **{"Input Dims": [[8, 8]]})
    b.memory(at, 512, allocated=512, reserved=1024)
    b.launch(at + 2, 4, at + 20, 1900)


def unlinked(b, at, number):
    busy(b, at, number)
    b.device(at + STEP - 20, 10)


def begun_before():
    """Without steps: a kernel of 1.2 ms that had been launched before, and work of 2 ms that was launched since."""
    b = TraceBuilder()
    b.device(0, 1200)
    for part in range(4):
        kernel(b, 1200 + 500 * part, 479)
    return b


def of_others(time):
    """A kernel of so many µs in every step that no recorded thread launched."""

    def body(b, at, number):
        kernel(b, at, 500)
        b.device(at + 600, time)

    return program(body)


def without_steps():
    b = TraceBuilder()
    busy(b, 0, 0)
    return b


def fine(b, at, number):
    """Not all times are whole microseconds."""
    busy(b, at, number)
    b.op("aten::add", at + 0.125, 0.25)


def merged():
    """Two processes launch work."""
    b = program(busy)
    b.event("cuda_runtime", "cudaLaunchKernel", 1, 5, pid=200, correlation=900)
    b.device(10, 5, stream=9, correlation=900)
    return b


def options(**values):
    b = program(busy)
    b.header |= values
    return b


def buffering(name):
    """Steps of 4 ms, for 2.5 ms of which the profiler works on no thread, and the host does nothing."""

    def body(b, at, number):
        kernel(b, at, 480)
        b.event("overhead", name, at + 520, 2500, pid=-1, tid=0)
        kernel(b, at + 3040, 919)

    return program(body, length=2 * STEP)


def requesting():
    """In every step a launch call of 1.48 ms, during which the profiler requests a buffer."""

    def body(b, at, number):
        kernel(b, at, 400)
        b.op("aten::mul", at + 100, 1500)
        b.launch(at + 110, 1480, at + 1600, 379)
        b.event("overhead", "Activity Buffer Request", at + 115, 1470, pid=-1, tid=0)

    return program(body)


def cut():
    text = program(busy).text()
    return read_text(text[: len(text) * 3 // 4].encode())


def without_beginning(kind):
    return snapshot(truncation=kind, active=Curve(2**30, np.zeros(0, np.int64)))


FIRES = {
    "CAP101": [
        Fires(
            uneven(2),
            evidence={"ratio": 2},
            options={"ratio": (1.5, 2, 2.02)},
        )
    ],
    "CAP102": [
        Fires(
            program(busy),
            count=3,
            evidence={"what": "record_shapes, with_stack, profile_memory"},
        )
    ],
    "CAP103": [
        Fires(
            program(unlinked),
            evidence={"checks": "Q03"},
        ),
        Fires(
            begun_before(),
            severity="MEDIUM",
            sentence="excerpt",
            evidence={"share": 0.375117, "time": 1200, "checks": "Q03"},
        ),
        Fires(
            of_others(600),
            severity="MEDIUM",
            sentence="others",
            count=4,
            evidence={"share": 0.3, "time": 600, "checks": "Q03"},
            advice=("record_launches",),
        ),
        Fires(of_others(390), severity="LOW", evidence={"checks": "Q03"}),
    ],
    "CAP104": [
        Fires(
            cut(),
            severity="LOW",
            count=2,
            evidence={"checks": "Q01, Q02"},
        )
    ],
    "CAP105": [
        Fires(
            merged(),
            severity="LOW",
            evidence={"checks": "Q10"},
        )
    ],
    "CAP107": [
        Fires(
            options(with_stack=1),
            evidence={"checks": "Q11"},
        ),
        Fires(
            buffering("Activity Buffer Request"),
            cost=2500,
            sentence="own",
            count=4,
            evidence={"idle": 2500, "share": 0.625},
            draws="idle",
            each=2500,
            first=(520, 3020),
            look=(520, 3020),
        ),
        # Idle from 420 µs on, as long as the request.
        Fires(
            requesting(),
            cost=1165,
            sentence="own",
            count=4,
            evidence={"idle": 1165, "share": 0.5825},
            draws="idle",
            each=1165,
            first=(420, 1585),
            look=(420, 1585),
        ),
    ],
    "CAP108": [
        Fires(
            program(busy),
            evidence={"checks": "Q09"},
        )
    ],
    "CAP109": [
        Fires(
            without_steps(),
            evidence={"time": 1979},
        )
    ],
    "CAP110": [
        Fires(
            program(busy, steps=2),
            count=2,
            evidence={"steps": 2},
            options={"steps": (3, 2.02, 2)},
        )
    ],
    "CAP111": [
        Fires(
            without_beginning("full"),
            evidence={"events": 5547, "before": 1073741824, "peak": 996189696},
        ),
        Fires(
            without_beginning("round"),
            evidence={"events": 5547, "before": 1073741824, "peak": 996189696},
        ),
        Fires(
            without_beginning("late"),
            evidence={"events": 5547, "before": 1073741824, "peak": 996189696},
        ),
    ],
}

SILENT = {
    # More than twice the usual: left out of all numbers, as the verdict says.
    "CAP101": [uneven(1), uneven(2.01)],
    "CAP102": [program(rich)],
    "CAP103": [program(busy)],
    "CAP104": [program(busy)],
    "CAP105": [program(busy)],
    # A queue that is full, and code that is loaded, are no work of the profiler.
    "CAP107": [program(busy), buffering("Command Buffer Full"), buffering("Lazy Function Loading")],
    # What the profiler does is no pause of the program, nor slow launching.
    "HST113": [buffering("Activity Buffer Request")],
    "HST107": [buffering("Activity Buffer Request")],
    "HST101": [requesting()],
    "CAP108": [program(fine)],
    "CAP109": [program(busy)],
    "CAP110": [program(busy, steps=3)],
    # Recording that begins late is no truncation: the peak comes later.
    "CAP111": [snapshot(), snapshot(simulated(Loop(), keep=500)), snapshot(events=1)],
}
