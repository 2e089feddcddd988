"""Writes the memory samples: `python tests/make_samples/generate_memory.py [FOLDER]` (default: sample_traces/memory).

A training loop on the simulated allocator, healthy or with one fault; `case.toml` holds the simulation's own account.
"""

from __future__ import annotations

import gzip
import io
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate.allocator.pool import Allocator

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python tests/make_samples/generate_memory.py"


@dataclass(frozen=True, slots=True)
class MemoryCase:
    """One folder of `sample_traces/memory`."""

    name: str
    title: str
    run: Callable[[], Allocator]
    facts: dict[str, int | str]
    """What the report must say: finding, its amount and line."""


def memory_cases() -> tuple[MemoryCase, ...]:
    """All memory samples."""
    from tests.simulate.allocator.pool import MIB, Allocator, OutOfMemoryError
    from tests.simulate.allocator.programs import CACHE_LINE, LEAK_LINE, Loop, shred, train, user

    big = Loop(steps=10, layers=12, activation=48 * MIB, parameter=8 * MIB, batch=30 * MIB)

    def fragmented() -> Allocator:
        allocator = train(Loop(steps=4, layers=4), Allocator())
        shred(allocator, pieces=60, size=10 * MIB, line=52)
        for _ in range(10):
            allocator.malloc(20 * MIB, user(70))
        return allocator

    def exhausted() -> Allocator:
        allocator = Allocator(capacity=1100 * MIB, expandable=True)
        train(Loop(steps=9, layers=12, activation=70 * MIB, parameter=8 * MIB), allocator)
        live = [address for address, block in allocator.live.items() if block.requested > 20 * MIB]
        for address in live:
            allocator.free(address)
        return allocator

    def checked(run: Callable[[], Allocator]) -> Callable[[], Allocator]:
        def made() -> Allocator:
            try:
                return run()
            except OutOfMemoryError as error:
                raise AssertionError from error

        return made

    return (
        MemoryCase("healthy", "A training loop that uses memory well", lambda: train(big, Allocator()), {}),
        MemoryCase(
            "leak",
            "Every step keeps a tensor of 24 MiB",
            lambda: train(Loop(steps=10, leak=24 * MIB), Allocator()),
            {"finding": "leak", "amount": 24 * MIB, "line": f"train.py:{LEAK_LINE} train"},
        ),
        MemoryCase(
            "churn",
            "torch.cuda.empty_cache() after every step",
            lambda: train(Loop(steps=10, activation=30 * MIB, batch=60 * MIB, empty_cache=True), Allocator()),
            {"finding": "churn", "line": f"train.py:{CACHE_LINE} train"},
        ),
        MemoryCase(
            "fragmentation",
            "Larger requests after half of many blocks were freed",
            checked(fragmented),
            {"finding": "fragmentation", "line": "train.py:70 train"},
        ),
        MemoryCase(
            "out_of_memory",
            "Activations fill the device; the dump comes after Python has let go",
            exhausted,
            {"finding": "oom_capacity", "line": "model.py:40 forward"},
        ),
    )


def generate_memory(folder: Path) -> list[Path]:
    """Write every memory sample under the folder; the same content each time."""
    from tests.simulate.allocator.dump import dump

    written = _with_trace(folder / "with_trace")
    for case in memory_cases():
        home = folder / case.name
        home.mkdir(parents=True, exist_ok=True)
        allocator = case.run()
        (home / "snapshot.pickle.gz").write_bytes(_packed(pickle.dumps(dump(allocator), protocol=4)))
        (home / "case.toml").write_text(_description(case, allocator), encoding="utf-8")
        written += [home / "snapshot.pickle.gz", home / "case.toml"]
    return written


def _packed(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return buffer.getvalue()


def _with_trace(home: Path) -> list[Path]:
    """Trace and snapshot of one simulated rank that empties the cache after every step."""
    from tests.simulate.allocator.of_schedule import GRANULE, snapshot_of
    from tests.simulate.simulate import simulate
    from tests.simulate.truth.summary import truth
    from tests.simulate.workload import MS, US, Device, Host, Model, Script, Workload
    from tests.simulate.writers.kineto import write

    model = Model(layers=2, hidden=512, sequence=256, batch=32, vocabulary=2048)
    (schedule,) = simulate(
        Workload(
            model=model,
            device=Device(segment=GRANULE),
            host=Host(allocate=MS),
            script=Script(empty_cache=True),
            steps=5,
            seed=7,
            tick=US,
        )
    )
    home.mkdir(parents=True, exist_ok=True)
    (home / "trace.json.gz").write_bytes(_packed(write(schedule)))
    (home / "snapshot.pickle.gz").write_bytes(_packed(pickle.dumps(snapshot_of(schedule), protocol=4)))
    peak = max(schedule.memory, key=lambda one: one.allocated)
    op = max(
        (one for one in schedule.ops if one.thread == peak.thread and one.start <= peak.time < one.end),
        key=lambda one: one.start,
    )
    lines = [
        'title = "A trace and a snapshot of one run: where the cache that is emptied after every step grows again"',
        'made = "generated"',
        f'how = "{COMMAND}"',
        'command = "traceanalyze memory sample_traces/memory/with_trace"',
        "# The simulation's own account. Memory in bytes, times in ns.",
        f"peak_requested = {peak.allocated}",
        f"peak_reserved = {max(one.reserved for one in schedule.memory)}",
        f"dump_allocated = {schedule.memory[-1].allocated}",
        'finding = "churn"',
        'line = "train.py:31 train"',
        "",
        "[peak]",
        f"step = {next(one.number for one in schedule.steps if one.start <= peak.time < one.end)}",
        f'phase = "{op.phase}"',
        f'operator = "{op.name}"',
        f'module = "{"/".join(name.removeprefix("nn.Module: ") for name in op.module)}"',
        "",
        "[calls]",
        f"count = {sum(call.klass == 'alloc' for call in schedule.calls)}",
        f"idle = {sum(causes.get('dispatch.alloc', 0) for causes in truth(schedule).idle)}",
    ]
    (home / "case.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [home / name for name in ("trace.json.gz", "snapshot.pickle.gz", "case.toml")]


def _description(case: MemoryCase, allocator: Allocator) -> str:
    peak = max(allocator.truth, key=lambda state: state.requested)
    lines = [
        f'title = "{case.title}"',
        'made = "generated"',
        f'how = "{COMMAND}"',
        f'command = "traceanalyze memory sample_traces/memory/{case.name}"',
        "# The simulated allocator's own account, in bytes.",
        f"peak_requested = {peak.requested}",
        f"peak_reserved = {max(state.reserved for state in allocator.truth)}",
        f"dump_allocated = {allocator.truth[-1].allocated}",
        *(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in case.facts.items()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for path in generate_memory(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_traces" / "memory"):
        print(path)
