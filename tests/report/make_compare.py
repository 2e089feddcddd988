"""Hand-made comparisons with round numbers, as builders and renderers are given them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from traceanalyze.comparison.apis import APIS
from traceanalyze.comparison.collectives import COLLECTIVES
from traceanalyze.comparison.compare import peak_table, unmatched_table
from traceanalyze.comparison.kernels import KERNEL_TYPES, KERNELS
from traceanalyze.comparison.memory import MEMORY, MEMORY_CALLS
from traceanalyze.comparison.modules import ALL_OPERATORS, module_tables
from traceanalyze.comparison.operators import CALLS, operators_table
from traceanalyze.comparison.overall import Row, overall_table, parts_table
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import Reason, causes_table
from traceanalyze.comparison.results import Caveat, Comparison, Pair, Part, SideInfo
from traceanalyze.model.table import NotMeasured, Word
from traceanalyze.report.contents import compare as contents

MS = 1_000_000
GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize96x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel"


class Overall(NamedTuple):
    """A row of the overall table, or a peak (bytes)."""

    key: str
    level: int
    kind: str
    base: Any
    candidate: Any
    base_count: int | None
    candidate_count: int | None


class Contribution(NamedTuple):
    """A reason for the difference, both sides in one."""

    part: str
    what: str
    name: str
    base: int
    candidate: int
    base_count: int
    candidate_count: int
    frame: str | None = None


class Made(NamedTuple):
    """A comparison by the exact sums behind its tables; sections that are None have none."""

    base: SideInfo
    candidate: SideInfo
    parts: Any
    contributions: Any
    overall: Any
    operators: Any
    operator_pairs: Any
    modules: Any
    collectives: Any
    kernels: Any
    kernel_types: Any
    apis: Any
    memory: Any
    memory_calls: Any
    caveats: Any

    def tables(self):
        """All tables in reading order."""
        per = PerStep.of(self.base, self.candidate)
        steps = self.base.step_time, self.candidate.step_time
        yield parts_table(self.parts, steps, per, {})
        if self.overall is not None:
            times = [row for row in self.overall if row.kind == "duration"]
            counts = [None if row.base_count is None else (row.base_count, row.candidate_count) for row in times]
            rows = zip(times, counts, strict=True)
            yield overall_table(
                [Row(row.key, row.level, row.base, row.candidate, each) for row, each in rows], steps, per
            )
            yield from peak_table((row.key, row.base, row.candidate) for row in self.overall if row.kind == "bytes")
        reasons: tuple[dict[Any, Reason], dict[Any, Reason]] = {}, {}
        for row in self.contributions:
            key = row.part, row.what, row.name
            reasons[0][key] = Reason(row.base, row.base_count, None, None)
            reasons[1][key] = Reason(row.candidate, row.candidate_count, None, row.frame)
        yield causes_table(reasons, per)
        if self.collectives is not None:
            yield COLLECTIVES.fill(self.collectives, per)
        if self.modules is not None:
            yield from module_tables(self.modules, per)
        if self.operators is not None:
            yield operators_table(self.operators, per)
        for section, pairs in (
            (CALLS, self.operator_pairs),
            (MEMORY, self.memory),
            (MEMORY_CALLS, self.memory_calls),
            (APIS, self.apis),
            (KERNELS, self.kernels),
            (KERNEL_TYPES, self.kernel_types),
        ):
            if pairs is not None:
                yield section.fill(pairs, per)
        yield from unmatched_table({"kernels": self.kernels}, per)

    def made(self):
        """The comparison itself."""
        tables = {table.key: table for table in self.tables()}
        return Comparison(self.base, self.candidate, self.parts, tables, self.caveats)


def build_compare(found, **more):
    """The report of a hand-made comparison."""
    return contents.build_compare(found.made(), **more)


def side(path, *, steps=2, step_time, **changes):
    info = SideInfo(
        path=path,
        vendor="cuda",
        device_name="Tesla V100",
        rank=0,
        ranks=1,
        rank_choice="only",
        steps=tuple(f"ProfilerStep#{number}" for number in range(5, 5 + steps)),
        step_choice="complete",
        step_time=step_time,
        median_step=step_time // steps,
        left_out=0,
        device_time=120 * MS,
        linked_time=117 * MS,
        resolution_ns=1000,
        level=None,
    )
    return replace(info, **changes)


def overall(key, level, base, candidate, counts=(None, None), **more):
    return Overall(key, level, more.pop("kind", "duration"), base, candidate, *counts)


def contribution(part, what, name, base, candidate, counts=(1, 1), **more):
    return Contribution(part, what, name, base, candidate, *counts, **more)


def measured(name, count, total, **more):
    times = {"calls": count, "total_ns": total, "max_ns": total // count + 1, "min_ns": total // count - 1}
    return {"name": name, "kernel": name, **times, **more}


def kernels(name, work, base, candidate, **more):
    shared = {"kernel": name, "kernel_type": Word(f"work_{work}"), "work": f"work_{work}", "shapes": None, "core": None}
    return Pair(shared | more, base, candidate)


def total(names, time, count):
    return {"op": names, "device_ns": time, "calls": count}


def call(name, shapes, dtypes, kernels, start, frame=None):
    time = sum(ns for _, ns in kernels)
    cells = {"op": name, "shapes": shapes, "dtypes": dtypes, "kernels": kernels}
    return cells | {"device_ns": time, "start_ns": start, "frame": frame}


def module(path, level, op, base, candidate):
    names = {"module": path, "module_class": path.rpartition("/")[2].rpartition("_")[0], "module_level": level}
    return Pair(names | {"op": op, "direction_of_pass": "phase_forward"}, base, candidate)


def inside(calls, own, whole, kernels=(), frame=None, op=None):
    return {"op": op, "calls": calls, "self_ns": own, "total_ns": whole, "kernels": kernels, "frame": frame}


def waits(wait, transfer, exposed):
    return {"wait_ns": wait, "transfer_ns": transfer, "exposed_ns": exposed}


def host_calls(count, whole, own):
    return {"calls": count, "total_ns": whole, "self_ns": own, "runtime_ns": 0, "api": None}


def allocated(count, size, lived):
    return {"calls": count, "bytes": size, "lifetime_ns": lived}


def allocations(name, shapes, dtypes, each):
    return {
        "op": name,
        "shapes": shapes,
        "dtypes": dtypes,
        "details": each,
        "size_bytes": sum(size for size, _ in each),
    }


def comparison():
    """Two steps of 100 ms against four of 80 ms: the data loader got faster, a kernel slower, one is new."""
    return Made(
        base=side("runs/before.json", step_time=200 * MS),
        candidate=side("runs/after.json", steps=4, step_time=320 * MS, left_out=1),
        parts=(
            Part("compute", 120 * MS, 248 * MS),
            Part("communication", 0, 0),
            Part("memory_ops", 4 * MS, 8 * MS),
            Part("data_loading", 60 * MS, 0),
            Part("host_op", 10 * MS, 40 * MS),
            Part("untraced", 6 * MS, 24 * MS),
        ),
        contributions=(
            contribution("data_loading", "next_op", "DataLoader", 60 * MS, 0, (2, 0)),
            contribution("host_op", "next_op", "aten::conv2d", 10 * MS, 40 * MS, (20, 80)),
            contribution("compute", "operator", "aten::mm", 100 * MS, 200 * MS, (20, 40), frame="train.py(3): step"),
            contribution("compute", "operator", "aten::add_", 0, 8 * MS, (0, 8)),
            contribution("compute", "operator", "aten::addmm", 20 * MS, 40 * MS, (10, 20)),
            contribution("memory_ops", "copy", "Memcpy HtoD", 4 * MS, 8 * MS, (2, 4)),
            contribution("untraced", "rest", "rest", 6 * MS, 24 * MS, (3, 6)),
        ),
        overall=(
            overall("compute", 0, 120 * MS, 248 * MS, (30, 68)),
            overall("matmul", 1, 120 * MS, 240 * MS, (30, 60)),
            overall("elementwise", 1, 0, 8 * MS, (0, 8)),
            overall("attention_forward", 1, 0, 0, (0, 0)),
            overall("communication", 0, 0, 0, (0, 0)),
            overall("comm_wait", 1, NotMeasured("no_communication"), NotMeasured("no_communication")),
            overall("memory_ops", 0, 4 * MS, 8 * MS, (2, 4)),
            overall("free", 0, 76 * MS, 64 * MS),
            overall("data_loading", 1, 60 * MS, 0),
            overall("dispatch", 1, 10 * MS, 40 * MS),
            overall("host_op", 2, 10 * MS, 40 * MS),
            overall("untraced", 1, 6 * MS, 24 * MS),
            overall("step", 0, 200 * MS, 320 * MS),
            overall("peak_allocated", 0, 3_000_000_000, 2_000_000_000, kind="bytes"),
        ),
        operators=(
            Pair({"op": "aten::mm", "shapes": None}, total("aten::mm", 100 * MS, 20), total("aten::mm", 200 * MS, 40)),
            Pair({"op": "aten::add_", "shapes": None}, None, total("aten::add_", 8 * MS, 8)),
            Pair(
                {"op": "aten::addmm", "shapes": None},
                total("aten::addmm", 20 * MS, 10),
                total("npu::linear", 40 * MS, 20),
            ),
        ),
        operator_pairs=(
            Pair(
                {"order": 1},
                call("aten::mm", "[[8, 8], [8, 8]]", "float", ((GEMM, MS), (GEMM, MS)), 100),
                call("aten::mm", "[[8, 8], [8, 8]]", "float", ((GEMM, 3 * MS),), 200, "train.py(3): step"),
            ),
            Pair({"order": 2}, None, call("=cmd|'/C calc'!A0", None, None, (("\r\nk", 5 * MS),), 300)),
        ),
        modules=(
            module(
                "Net_0/Linear_0",
                1,
                ALL_OPERATORS,
                inside(2, 20 * MS, 20 * MS, ((GEMM, 20 * MS),), "net.py(9): forward"),
                inside(4, 80 * MS, 80 * MS, ((GEMM, 80 * MS),)),
            ),
            module(
                "Net_0/Linear_0",
                1,
                "aten::addmm",
                inside(2, 20 * MS, 20 * MS, ((GEMM, 20 * MS),), op="aten::addmm"),
                inside(4, 80 * MS, 80 * MS, ((GEMM, 80 * MS),), op="aten::addmm"),
            ),
            module("Net_0", 0, ALL_OPERATORS, inside(2, 0, 20 * MS), inside(4, 0, 80 * MS)),
        ),
        collectives=(
            Pair(
                {"collective": "all_reduce", "group": "0-1", "size_bytes": 4096},
                measured(
                    "ncclDevKernel_AllReduce", 4, 8 * MS, **waits(NotMeasured("no_communication"), 8 * MS, 2 * MS)
                ),
                measured("hcom_allReduce_", 8, 24 * MS, **waits(4 * MS, 20 * MS, 12 * MS)),
            ),
            Pair(
                {"collective": "broadcast", "group": "0-1", "size_bytes": None},
                None,
                measured("b", 1, 2 * MS, **waits(0, 2 * MS, 0)),
            ),
        ),
        kernels=(
            kernels(GEMM, "matmul", measured(GEMM, 30, 120 * MS), measured(GEMM, 60, 240 * MS)),
            kernels("add", "elementwise", None, measured("add", 8, 8 * MS), shapes="[8]", core="AI_CORE"),
        ),
        kernel_types=(kernels("matmul", "matmul", measured(GEMM, 30, 120 * MS), measured("x", 60, 9)),),
        apis=(
            Pair({"api": "cudaLaunchKernel"}, host_calls(32, 4 * MS, 4 * MS), host_calls(72, 16 * MS, 12 * MS)),
            Pair({"api": "enumerate(DataLoader)"}, host_calls(2, 60 * MS, 60 * MS), None),
        ),
        memory=(
            Pair(
                {"op": "aten::empty"},
                allocated(4, 8_000_000, 10 * MS),
                allocated(8, 32_000_000, NotMeasured("no_frees")),
            ),
            Pair({"op": "aten::clone"}, None, allocated(4, 4_000_000, 3 * MS)),
        ),
        memory_calls=(
            Pair(
                {"order": 1},
                allocations("aten::empty", "[[8]]", "float", ((512, 3_000), (512, None))),
                allocations("aten::empty", "[[8]]", "float", ((2048, 3_000),)),
            ),
            Pair({"order": 2}, None, allocations("aten::clone", None, None, ((100, None),))),
        ),
        caveats=(Caveat("run_note", (("text", "The two profiles have different levels."),)),),
    )


SECTIONS = (
    "parts",
    "contributions",
    "overall",
    "operators",
    "operator_pairs",
    "modules",
    "collectives",
    "kernels",
    "kernel_types",
    "apis",
    "memory",
    "memory_calls",
)


def _mirrored(row):
    """Fields of the base and the fields of the candidate they stand for."""
    return {name: name.replace("base", "candidate") for name in row._fields if name.startswith("base")}


def itself():
    """The base against itself."""
    found = comparison()

    def doubled(row):
        return row._replace(**{other: getattr(row, name) for name, other in _mirrored(row).items()})

    def there(row):
        return any(getattr(row, name) for name in _mirrored(row)) or isinstance(row, Part | Overall)

    sections = {name: tuple(doubled(row) for row in getattr(found, name) if there(row)) for name in SECTIONS}
    return found._replace(candidate=found.base, caveats=(), **sections)


def swapped():
    """Candidate and base exchanged."""
    found = comparison()

    def flip(row):
        pairs = _mirrored(row)
        values = {name: getattr(row, other) for name, other in pairs.items()}
        return row._replace(**values, **{other: getattr(row, name) for name, other in pairs.items()})

    sections = {name: tuple(flip(row) for row in getattr(found, name)) for name in SECTIONS}
    return found._replace(base=found.candidate, candidate=found.base, **sections)
