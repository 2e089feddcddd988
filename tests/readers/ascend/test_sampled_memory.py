"""Memory of the components of CANN and of the whole process, in both forms of a profile."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.ascend_builder import AscendBuilder, load
from tests.ascend_db_builder import OP, START, Builder
from tests.simulate.compare_npu import npu_trace
from tests.simulate.simulate import simulate
from tests.simulate.workload import Device, Model, Ranks, Workload
from tests.simulate.writers.ascend_layouts import every_era
from traceanalyze.model.trace import ModuleMemory

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
RECORD = ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"]


def test_the_process_is_the_row_app_of_the_memory_record(tmp_path: Path) -> None:
    built = AscendBuilder()
    built.op("aten::mul", 0, 5)
    built.tables["memory_record.csv"] = [
        RECORD,
        ["APP", "1736408883573957.920\t", "", "40.5", "NPU:1"],
        ["APP", "1736408883593957.920\t", "", "39", "NPU:1"],
        ["PTA", "1736408883583957.920\t", "5", "90", "NPU:1"],
        ["GE", "1736408883583957.920\t", "5", "99", "NPU:1"],
    ]
    trace = load(built.write(tmp_path / "rank0_ascend_pt"))
    assert trace.process_memory == (ModuleMemory("APP", 1, 40 * MIB + MIB // 2, 39 * MIB, 2),)


def database() -> Builder:
    build = Builder()
    build.columns |= {
        "NPU_MODULE_MEM": "moduleId INTEGER, timestampNs INTEGER, totalReserved NUMERIC, deviceId INTEGER",
        "ENUM_MODULE": "id INTEGER PRIMARY KEY, name TEXT",
        "NPU_MEM": "type INTEGER, ddr NUMERIC, hbm NUMERIC, timestampNs INTEGER, deviceId INTEGER",
    }
    build.api(OP, "aten::mul", 0, 5)
    for number, at, size in ((3, 20, 2 * MIB), (3, 0, 3 * MIB), (7, 0, 4 * MIB), (0, 0, 0), (33, 0, 9 * MIB)):
        build.row("NPU_MODULE_MEM", moduleId=number, timestampNs=START + at, totalReserved=size, deviceId=4)
    for number, name in ((0, "SLOG"), (3, "HCCL"), (33, "APP")):
        build.row("ENUM_MODULE", id=number, name=name)
    for kind, ddr, hbm in (("app", 1, 10), ("app", 0, 12), ("device", 0, 99)):
        build.row("NPU_MEM", type=build.text(kind), ddr=ddr, hbm=hbm, timestampNs=START + hbm, deviceId=4)
    return build


def test_a_database_has_both(tmp_path: Path) -> None:
    """A component without a name keeps its number; `APP` among them is PyTorch's pool; both kinds of memory count."""
    trace = database().read(tmp_path)
    assert trace.module_memory == (
        ModuleMemory("module 7", 4, 4 * MIB, 4 * MIB, 1),
        ModuleMemory("HCCL", 4, 3 * MIB, 2 * MIB, 2),
    )
    assert trace.process_memory == (ModuleMemory("APP", 4, 12, 12, 2),)


@pytest.mark.parametrize("layout", every_era(), ids=lambda layout: layout.era)
def test_text_and_database_of_every_era_say_the_same(layout) -> None:
    work = Workload(
        model=Model(layers=1, hidden=256, sequence=128, batch=4, vocabulary=1000),
        device=Device(vendor="ascend"),
        ranks=Ranks(1),
        steps=1,
        tick=10,
    )
    (schedule,) = simulate(work)
    text, base = (npu_trace(schedule, layout, form) for form in ("text", "db"))
    assert text.module_memory == base.module_memory
    assert text.process_memory == base.process_memory
    known = {one.component: (one.peak, one.last, one.samples) for one in text.module_memory}
    assert known == {"HCCL": (423_690_240, 423_690_240, 3), "RUNTIME": (13_107_200, 13_107_200, 3)}
    assert [one.peak for one in text.process_memory] == [2_212_077_568]


@pytest.mark.parametrize("rank", [0, 1])
def test_real_profiles_against_their_own_rows(shared_traces: Path, rank: int) -> None:
    home = shared_traces / "ascend/msinsight_2rank_torch"
    (trace,) = traceanalyze.load(home / f"text/level1/rank{rank}_ascend_pt").traces
    output = home / f"text/level1/rank{rank}_ascend_pt/ASCEND_PROFILER_OUTPUT"
    with (output / "npu_module_mem.csv").open(newline="") as file:
        rows = [(row["Component"], float(row["Total Reserved(MB)"])) for row in csv.DictReader(file)]
    expected = {name: max(size for other, size in rows if other == name) * MIB for name, size in rows if size}
    assert {one.component: one.peak for one in trace.module_memory} == {
        name: size for name, size in expected.items() if name != "APP"
    }
    with (output / "memory_record.csv").open(newline="") as file:
        sizes = [float(row["Total Reserved(MB)"]) for row in csv.DictReader(file) if row["Component"] == "APP"]
    assert [one.peak for one in trace.process_memory] == [max(sizes) * MIB]


@pytest.mark.parametrize("rank", [0, 1])
def test_real_databases_against_their_own_rows(shared_traces: Path, rank: int) -> None:
    folder = shared_traces / f"ascend/msinsight_2rank_torch/db/level1/rank{rank}_ascend_pt"
    (trace,) = traceanalyze.load(folder).traces
    path = folder / f"ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_{rank}.db"
    modules = (
        "SELECT name, MAX(totalReserved) FROM NPU_MODULE_MEM JOIN ENUM_MODULE ON id = moduleId "
        "WHERE name != 'APP' GROUP BY name HAVING MAX(totalReserved) > 0"
    )
    process = "SELECT MAX(hbm + ddr) FROM NPU_MEM JOIN STRING_IDS ON id = type WHERE value = 'app'"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as raw:
        assert {one.component: one.peak for one in trace.module_memory} == dict(raw.execute(modules).fetchall())
        assert [(one.peak,) for one in trace.process_memory] == raw.execute(process).fetchall()
