"""What the rules about memory must find, and what not: id → programs."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

from tests.rules.make import WithSnapshot, busy, kernel, program
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import Allocator
from tests.simulate.allocator.programs import Loop, train
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.patterns import HeldGradients, OversizedBlocks, SmallBlocks, Spike
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

SAMPLES = Path(__file__).parents[3] / "sample_traces" / "memory"


def allocator(name):
    """What the tool makes of a sample snapshot."""
    path = SAMPLES / name / "snapshot.pickle.gz"
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    return found


def simulated(loop, *, capacity=1 << 40, **more):
    """What it makes of a simulated loop on a device of so many bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.pickle")
        path.write_bytes(pickle.dumps(dump(train(loop, Allocator(capacity=capacity)), **more)))
        (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    return found


HEALTHY = allocator("healthy")
RESERVED = HEALTHY.most_reserved
STEPS = HEALTHY.steps.array("event").tolist()
SOUND = [WithSnapshot(program(busy), HEALTHY)]


def snapshot(found=HEALTHY, **changed):
    return WithSnapshot(program(busy), found._replace(**changed))


def with_cells(table, **changed):
    """The table with other values in some columns."""
    return table.fill(**({key: table.column(key) for key in table.keys} | changed))


def peak_of(category, **more):
    """All that is held at the peak is of one category."""
    held = HEALTHY.at_peak
    return snapshot(at_peak=with_cells(held, memory_category=[f"category_{category}"] * len(held)), **more)


GIB = 2**30
MIB = 2**20
FULL = simulated(Loop(growing=6 * MIB, activation=30 * MIB), capacity=900 * MIB)
"""A device that is full from a step on."""


def allocates(*, only_first=False, calls=("cudaMalloc",), each=200, frame=None):
    """The step begins with calls of the allocator, then works for a millisecond."""

    def body(b, at, number):
        chosen = calls if number == 0 or not only_first else ()
        for place, name in enumerate(chosen):
            b.api(name, at + 1 + place * each, each - 1)
        if frame is not None:
            b.python(frame, at, each * len(chosen) + 2)
        kernel(b, at + 1 + each * len(chosen), 1000)

    return body


def with_memory(body, *, allocated, reserved, capacity=80 * GIB):
    def more(b, at, number):
        b.header["deviceProperties"] = [{"id": 0, "name": "Example", "totalGlobalMem": capacity}]
        b.memory(at + 1, 1024, allocated=allocated, reserved=reserved)
        body(b, at, number)

    return more


def holding(capacity):
    """A program on a device of so many bytes, with the snapshot of the healthy loop."""

    def body(b, at, number):
        b.header["deviceProperties"] = [{"id": 0, "name": "Example", "totalGlobalMem": capacity}]
        busy(b, at, number)

    return WithSnapshot(program(body), HEALTHY)


def peaks_in(annotation, step):
    """The highest record lies inside an annotation of one step."""

    def body(b, at, number):
        busy(b, at, number)
        b.annotation(annotation, at + 1500, 100)
        b.op("aten::_foreach_add", at + 1501, 90)
        b.memory(at + 1510, 512, allocated=GIB * (2 if number == step else 1), reserved=3 * GIB)

    return program(body)


def peak_inside(*ranges, event=500):
    moments = HEALTHY.moments
    within, events = moments.column("within")[1:], moments.column("event")[1:]
    return snapshot(moments=with_cells(moments, within=(" > ".join(ranges), *within), event=(event, *events)))


def queries(count):
    def body(b, at, number):
        busy(b, at, number)
        for part in range(count):
            b.api("cudaEventQuery", at + 1000 + part, 0.5)

    return body


def idle(b, at, number):
    kernel(b, at, 300, host=1600)


EMPTIES = allocates(calls=("cudaFree", "cudaMalloc"), frame="torch/cuda/memory.py(160): empty_cache")

FIRES = {
    "MEM101": [program(allocates()), program(allocates(calls=("cudaFree", "cuMemCreate")))],
    "MEM102": [program(EMPTIES)],
    "MEM103": [
        program(with_memory(allocates(calls=("cudaFree", "cudaMalloc")), allocated=GIB, reserved=78 * GIB)),
        snapshot(FULL),
        WithSnapshot(program(allocates(calls=("cudaFree", "cudaMalloc"))), FULL),
    ],
    "MEM104": [snapshot(allocator("fragmentation"))],
    "MEM105": [
        snapshot(
            growing=HEALTHY.growing._replace(steps=3, smallest=GIB, largest=2 * GIB, grown=6 * GIB, line="a.py:3")
        ),
        snapshot(simulated(Loop(growing=3 * MIB, activation=30 * MIB))),
    ],
    "MEM106": [snapshot(oversized=OversizedBlocks("a.py:3", 2, GIB, 2 * GIB, 2 * GIB))],
    "MEM115": [snapshot(small=SmallBlocks(1000, 0.3, 100, GIB, "a.py:3", flagged=True))],
    "MEM107": [peak_of("activations", capacity=RESERVED * 100 // 96), peak_of("activations", capacity=RESERVED)],
    "MEM108": [snapshot(allocator("leak"))],
    "MEM112": [snapshot(allocator("out_of_memory"))],
    "MEM114": [snapshot(spike=Spike(0.3, GIB, "train.py:3 step", flagged=True))],
    "MEM117": [snapshot(gradients=HeldGradients(GIB, 0.1, "3", flagged=True))],
    "MEM118": [
        peaks_in("Optimizer.step#AdamW.step", 2),
        peak_inside("ProfilerStep#3", "Optimizer.step#AdamW.step", event=STEPS[1]),
    ],
    "MEM119": [snapshot(settings=("gc_threshold_without_fraction",))],
    "MEM120": [snapshot(rounding_waste=0.06)],
    "MEM109": [
        program(with_memory(busy, allocated=75 * GIB, reserved=76 * GIB)),
        holding(int(RESERVED / 0.951)),
        snapshot(capacity=RESERVED),
    ],
    "MEM110": [program(queries(501))],
    "MEM111": [program(allocates(calls=("cudaMalloc",) * 60, each=10))],
    "MEM113": [program(allocates(calls=("cudaHostAlloc",)))],
    "MEM116": [program(with_memory(idle, allocated=GIB, reserved=2 * GIB))],
}

SILENT = {
    "MEM101": [program(busy), program(allocates(only_first=True)), program(allocates(calls=("cudaHostAlloc",)))],
    "MEM102": [
        program(allocates(calls=("cudaFree",), frame="train.py(3): step")),
        program(allocates(only_first=True, calls=("cudaFree",), frame="torch/cuda/memory.py(160): empty_cache")),
    ],
    "MEM103": [
        program(with_memory(allocates(calls=("cudaFree",)), allocated=GIB, reserved=40 * GIB)),
        program(with_memory(busy, allocated=GIB, reserved=78 * GIB)),
        *SOUND,
    ],
    "MEM104": [snapshot(fragmentation=HEALTHY.fragmentation._replace(level="none"))],
    "MEM105": [
        *SOUND,
        snapshot(growing=HEALTHY.growing._replace(steps=2)),
        snapshot(simulated(Loop(activation=30 * MIB))),
        snapshot(simulated(Loop(activation=30 * MIB, empty_cache=True))),
    ],
    "MEM106": [*SOUND, snapshot(oversized=OversizedBlocks("a.py:3", 1, GIB, 2 * GIB, GIB))],
    "MEM115": [
        *SOUND,
        snapshot(small=SmallBlocks(1000, 0.3, 100, MIB, "a.py:3", flagged=False)),
        snapshot(small=SmallBlocks(999, 0.3, 100, GIB, "a.py:3", flagged=False)),
        snapshot(small=SmallBlocks(1000, 0.29, 100, GIB, "a.py:3", flagged=False)),
    ],
    "MEM107": [*SOUND, peak_of("activations"), peak_of("gradients", capacity=RESERVED * 100 // 96), program(busy)],
    "MEM108": SOUND,
    "MEM112": SOUND,
    "MEM114": [*SOUND, snapshot(spike=Spike(0.1, GIB, "train.py:3 step", flagged=False))],
    "MEM117": SOUND,
    "MEM118": [
        *SOUND,
        peaks_in("Optimizer.step#AdamW.step", 0),
        peaks_in("forward", 2),
        peak_inside("ProfilerStep#3"),
        peak_inside("ProfilerStep#0", "Optimizer.step#AdamW.step", event=STEPS[1] - 1),
    ],
    "MEM119": [*SOUND, snapshot(settings=("no_memory_stacks",))],
    "MEM120": [*SOUND, snapshot(rounding_waste=0.03)],
    "MEM109": [
        program(with_memory(busy, allocated=40 * GIB, reserved=76 * GIB)),
        holding(int(RESERVED / 0.949)),
        *SOUND,
    ],
    "MEM110": [program(queries(100))],
    "MEM111": [program(allocates(calls=("cudaMalloc",) * 5))],
    "MEM113": [program(allocates())],
    "MEM116": [
        program(with_memory(busy, allocated=GIB, reserved=2 * GIB)),
        program(with_memory(idle, allocated=GIB, reserved=70 * GIB)),
    ],
}
