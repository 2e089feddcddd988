"""What the rules about memory must find, and what not: id → programs."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

from tests.rules.make import Fires, WithSnapshot, busy, kernel, program
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import Allocator
from tests.simulate.allocator.programs import Loop, train
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.device_calls import OutOfMemory
from traceanalyze.analyses.memory.patterns import HeldGradients, OversizedBlocks, SmallBlocks, Spike
from traceanalyze.model.table import NotMeasured
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


def empties_and_runs_short(b, at, number):
    """As before, and then an operator gives a block back for lack of memory and takes another one."""
    EMPTIES(b, at, number)
    b.op("aten::empty", at + 1450, 410)
    for place, name in enumerate(("cudaFree", "cudaMalloc")):
        b.api(name, at + 1452 + 200 * place, 199)
    kernel(b, at + 1860, 100)


FIRES = {
    "MEM101": [
        Fires(
            program(allocates()),
            sentence="taken",
            saving=199,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 199, "idle": 219},
            draws="idle",
            each=219,
            first=(1, 200),
            look=(1, 200),
            options={"steps": (2, 3, 4)},
        ),
        Fires(
            program(allocates(calls=("cudaFree", "cuMemCreate"))),
            saving=398,
            severity="MEDIUM",
            count=8,
            evidence={"count": 8, "time": 398, "idle": 418},
            draws="idle",
            each=418,
            first=(1, 200),
            look=(1, 200),
            options={"steps": (2, 3, 4)},
        ),
    ],
    "MEM102": [
        *(
            Fires(
                program(body),
                saving=398,
                severity="MEDIUM",
                count=8,
                evidence={"count": 8, "time": 398, "idle": 418},
                draws="idle",
                each=418,
                first=(1, 200),
                look=(1, 200),
            )
            for body in (EMPTIES, empties_and_runs_short)
        )
    ],
    "MEM103": [
        Fires(
            program(with_memory(allocates(calls=("cudaFree", "cudaMalloc")), allocated=GIB, reserved=78 * GIB)),
            saving=398,
            severity="MEDIUM",
            count=8,
            evidence={"count": 8, "time": 398, "idle": 418},
            draws="idle",
            each=418,
            first=(1, 200),
            look=(1, 200),
            options={"share": (0.9, 0.9750000000000001, 0.9750000000000002)},
        ),
        Fires(
            snapshot(FULL),
            severity="MEDIUM",
            sentence="snapshot",
            count=4,
            evidence={"count": 4, "amount": 2508193792},
            ops=("model.py:40 forward",),
        ),
        Fires(
            WithSnapshot(program(allocates(calls=("cudaFree", "cudaMalloc"))), FULL),
            saving=398,
            severity="MEDIUM",
            count=8,
            evidence={"count": 8, "time": 398, "idle": 418},
            draws="idle",
            each=418,
            first=(1, 200),
            look=(1, 200),
        ),
    ],
    "MEM104": [
        Fires(
            snapshot(allocator("fragmentation")),
            count=70,
            evidence={"request": 20971520, "free": 332401152, "hole": 10485760, "amount": 199229440},
            ops=("train.py:70 train",),
        )
    ],
    "MEM105": [
        Fires(
            snapshot(
                growing=HEALTHY.growing._replace(steps=3, smallest=GIB, largest=2 * GIB, grown=6 * GIB, line="a.py:3")
            ),
            severity="LOW",
            count=3,
            evidence={
                "growing_steps": 3,
                "first_request": 1073741824,
                "last_request": 2147483648,
                "amount": 6442450944,
            },
            ops=("a.py:3",),
            options={"steps": (3, 3, 4)},
            advice=("longest_first", "bucket_lengths"),
        ),
        Fires(
            snapshot(simulated(Loop(growing=3 * MIB, activation=30 * MIB))),
            severity="LOW",
            count=7,
            evidence={"growing_steps": 7, "first_request": 34603008, "last_request": 53479936, "amount": 2218786816},
            ops=("model.py:40 forward",),
            options={"steps": (3, 7, 8)},
        ),
    ],
    "MEM106": [
        Fires(
            snapshot(oversized=OversizedBlocks("a.py:3", 2, GIB, 2 * GIB, 2 * GIB)),
            severity="LOW",
            count=2,
            evidence={"count": 2, "request": 1073741824, "hole": 2147483648, "amount": 2147483648},
            ops=("a.py:3",),
            options={"growths": (2, 2, 2.02)},
        )
    ],
    "MEM115": [
        Fires(
            snapshot(small=SmallBlocks(1000, 0.3, 100, GIB, "a.py:3", flagged=True)),
            count=1000,
            evidence={"blocks": 1000, "of_live": 0.3, "segments": 100, "amount": 1073741824},
            ops=("a.py:3",),
            options={
                "blocks": (1000, 1000, 1001),
                "of_live": (0.3, 0.3, 0.303),
                "held": (0.01, 0.9606003752345216, 0.9606003752345217),
            },
        )
    ],
    "MEM107": [
        Fires(
            peak_of("activations", capacity=RESERVED * 100 // 96),
            severity="MEDIUM",
            evidence={"of_peak": 1, "amount": 996189696},
            ops=("model.py:40 forward",),
            options={"share": (0.5, 1, 1.01)},
        ),
        Fires(
            peak_of("activations", capacity=RESERVED),
            severity="MEDIUM",
            evidence={"of_peak": 1, "amount": 996189696},
            ops=("model.py:40 forward",),
            options={"share": (0.5, 1, 1.01)},
        ),
    ],
    "MEM108": [
        Fires(
            snapshot(allocator("leak")),
            severity="HIGH",
            count=8,
            evidence={"amount": 25165824, "steps": 8, "line": "train.py:31 train"},
            ops=("train.py:31 train",),
        )
    ],
    "MEM112": [
        Fires(
            snapshot(allocator("out_of_memory")),
            severity="HIGH",
            evidence={"request": 73405952, "free": 18846208, "hole": 12583424, "kind": "capacity"},
            ops=("model.py:40 forward",),
            advice=("less_memory",),
        ),
        Fires(
            snapshot(ooms=(OutOfMemory(7, GIB, None, None, None, "unlocated", "train.py:3 step"),)),
            severity="HIGH",
            evidence={"request": GIB},
            ops=("train.py:3 step",),
            sentence="unlocated",
        ),
    ],
    "MEM114": [
        Fires(
            snapshot(spike=Spike(0.3, GIB, "train.py:3 step", flagged=True)),
            severity="MEDIUM",
            evidence={"of_peak": 0.3, "amount": 1073741824},
            ops=("train.py:3 step",),
        )
    ],
    "MEM117": [
        Fires(
            snapshot(gradients=HeldGradients(GIB, 0.1, "3", flagged=True)),
            severity="LOW",
            evidence={"of_peak": 0.1, "amount": 1073741824},
        )
    ],
    "MEM118": [
        Fires(
            peaks_in("Optimizer.step#AdamW.step", 2),
            evidence={"peak": 2147483648},
        ),
        Fires(
            peak_inside("ProfilerStep#3", "Optimizer.step#AdamW.step", event=STEPS[1]),
            evidence={"peak": 996189696},
        ),
    ],
    "MEM119": [
        Fires(
            snapshot(settings=("gc_threshold_without_fraction",)),
            severity="LOW",
            evidence={"setting": "garbage_collection_threshold without a memory fraction"},
            ops=("garbage_collection_threshold without a memory fraction",),
        )
    ],
    "MEM120": [
        Fires(
            snapshot(rounding_waste=0.06),
            evidence={"waste": 0.06},
            options={"share": (0.05, 0.06, 0.061)},
        )
    ],
    "MEM109": [
        Fires(
            program(with_memory(busy, allocated=75 * GIB, reserved=76 * GIB)),
            evidence={"of_capacity": 0.9375, "peak": 80530636800, "capacity": 85899345920},
            options={"share": (0.9, 0.93, 0.9375)},
        ),
        Fires(
            holding(int(RESERVED / 0.951)),
            sentence="snapshot",
            evidence={"of_capacity": 0.951, "reserved": 1117782016, "capacity": 1175375411},
            options={"reserved": (0.95, 0.9510000001182601, 0.9510000001182602)},
        ),
        Fires(
            snapshot(capacity=RESERVED),
            sentence="snapshot",
            evidence={"of_capacity": 1, "reserved": 1117782016, "capacity": 1117782016},
            options={"reserved": (0.95, 1, 1.01)},
        ),
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
            program(allocates(calls=("cudaMalloc",) * 60, each=10)),
            saving=540,
            severity="HIGH",
            count=240,
            evidence={"count": 240, "time": 540, "idle": 560},
            draws="idle",
            each=560,
            first=(1, 10),
            look=(601, 621),
            options={"share": (0.3, 60, 61), "least": (50, 60, 61)},
        )
    ],
    "MEM113": [
        Fires(
            program(allocates(calls=("cudaHostAlloc",))),
            saving=199,
            severity="MEDIUM",
            count=4,
            evidence={"count": 4, "time": 199, "idle": 219},
            draws="idle",
            each=219,
            first=(1, 200),
            look=(1, 200),
        )
    ],
    "MEM116": [
        Fires(
            program(with_memory(idle, allocated=GIB, reserved=2 * GIB)),
            evidence={"of_capacity": 0.025, "busy": 0.15},
            options={
                "share": (0.6, 0.025, 0.0248),
                "busy": (0.5, 0.151, 0.15),
                "other": (0.5, 0.05882352941176471, 0.058823529411764705),
            },
        )
    ],
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
    "MEM106": [
        *SOUND,
        snapshot(oversized=OversizedBlocks("a.py:3", 1, GIB, 2 * GIB, GIB)),
        snapshot(oversized=OversizedBlocks("a.py:3", 2, GIB, 2 * GIB, 0)),
        snapshot(oversized=OversizedBlocks("a.py:3", 2, GIB, 2 * GIB, NotMeasured("replay_off"))),
    ],
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
