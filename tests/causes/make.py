"""Parts of post-mortems made by hand, and small programs whose causes are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.builder import TraceBuilder
from traceanalyze.analyses.memory.findings import MemoryFinding
from traceanalyze.causes.results import RankPart, RecordingPart, Trouble
from traceanalyze.model.table import Message
from traceanalyze.rules.finding import Confidence, Evidence, Finding, NotApplicable, Scope, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MS = 1_000_000
STEP = 100 * MS


def ints(*values: int):
    return np.array(values, np.int64)


def finding(
    rule: str, saving: int | None, *, severity=None, sentence="", ops=(), draws="", ranks=(), **told
) -> Finding:
    """Savings in ms; `told` is the evidence."""
    ns = None if saving is None else saving * MS
    share = 0.0 if ns is None else ns / STEP
    judged = Severity.INFO if ns is None else Severity(int(share >= 0.05) + int(share >= 0.2) + 1)
    kinds = {str: "TERM", int: "DURATION"}
    return Finding(
        saving=ns,
        bound=ns,
        draws=draws,
        sentence=sentence,
        severity=judged if severity is None else severity,
        confidence=Confidence.HIGH,
        evidence=tuple(Evidence(label, value, kinds[type(value)]) for label, value in told.items()),
        advice=("cheaper_samples",),
        scope=Scope(ranks=ranks, ops=ops),
        rule=rule,
        slug=rule.lower(),
    )


def rank(label: str, *found: Finding, own: int | None = None, costs: Sequence = (), steps=4, first=0, not_evaluated=()):
    """A rank of steps of 100 ms; `own` in ms, all of the step where it is left out."""
    return RankPart(
        label=label,
        steps=tuple(str(first + number) for number in range(steps)),
        step_times=np.full(steps, STEP, np.int64),
        own=STEP if own is None else own * MS,
        findings=found,
        costs=tuple(costs) or (None,) * len(found),
        not_evaluated=tuple(NotApplicable(reason, rule) for rule, reason in not_evaluated),
    )


def recording(*ranks: RankPart, about_ranks=(), about_ranks_not_evaluated=(), whole=True) -> RecordingPart:
    missing = tuple(NotApplicable(reason, rule) for rule, reason in about_ranks_not_evaluated)
    return RecordingPart(ranks, tuple(about_ranks), missing, whole=whole)


def trouble(key="leak", severity="warn", *, amount=1 << 20, line="train.py:1 f", rank="", file=0) -> Trouble:
    return Trouble(MemoryFinding(severity, key, Message(f"advice_{key}"), amount, line=line), rank, file)


COMPUTE, TRANSFER = 20, 5
"""ms of a step: a matrix product, and the all-reduce that ends it for all ranks at one time."""


def write_run(
    folder: Path, loads: Sequence[Sequence[int]], *, first: int = 0, at: int = 0, name: str = ""
) -> list[Path]:
    """A data-parallel run: for every rank how many ms it waits for its loader in each step.

    A rank that is ready early stays in its all-reduce until the last one has come. One rank alone has none.

    Args:
        folder: Where the files go, one a rank.
        loads: By rank and step, ms.
        first: Number of the first step.
        at: When the recording begins, ms.
        name: Begin of the file names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_write_rank(folder, loads, number, first, at, name) for number in range(len(loads))]


def _write_rank(folder: Path, loads: Sequence[Sequence[int]], number: int, first: int, at: int, name: str) -> Path:
    world = len(loads)
    b = TraceBuilder()
    b.header = {"distributedInfo": {"rank": number, "world_size": world, "backend": "nccl"}} if world > 1 else {}
    b.header["deviceProperties"] = [{"id": 0, "name": "Example GPU", "totalGlobalMem": 80 * 2**30}]
    begin = 1000.0 * at
    for step, own in enumerate(loads[number]):
        last = max(each[step] for each in loads)
        length = 1000.0 * (last + COMPUTE + (TRANSFER if world > 1 else 0))
        ready = begin + 1000.0 * own
        b.step(first + step, begin, length - 10)
        b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin, max(1000.0 * own, 1.0))
        b.op("aten::mm", ready + 5, 20)
        b.launch(ready + 10, 5, ready + 20, 1000.0 * COMPUTE - 20)
        if world > 1:
            b.op("nccl:all_reduce", ready + 30, 20)
            start = ready + 1000.0 * COMPUTE
            b.launch(ready + 40, 5, start, begin + length - start, name="ncclDevKernel_AllReduce", **_group(world))
        begin += length
    return b.write(folder / f"{name}rank{number}.json")


def _group(world: int) -> dict[str, object]:
    return {
        "stream": 13,
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "Process Group Ranks": str(list(range(world))),
        "Group size": world,
        "In msg nelems": 1_000_000,
        "Out msg nelems": 1_000_000,
        "dtype": "Float",
    }
