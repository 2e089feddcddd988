"""The files of an NPU rank agree with each other and with the schedule, without the product."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.npu_kernels import described
from tests.simulate.pair import DIFFERENCES, Difference, device_time, pair
from tests.simulate.recorded import as_recorded
from tests.simulate.schedule import DEQUEUE
from tests.simulate.simulate import simulate
from tests.simulate.truth.windows import parts
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.workload import US, Loader, Model, Ranks, Recording, Script, TaskQueue, Workload
from tests.simulate.writers.ascend import OUTPUT, write_ascend
from tests.simulate.writers.ascend_layouts import AscendLayout, every_era
from tests.simulate.writers.kineto import BASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.schedule import Schedule

RANKS = simulate(TWO_NPUS)


def events(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((home / OUTPUT / "trace_view.json").read_text())
    return found


def rows(home: Path, name: str) -> list[dict[str, str]]:
    with (home / OUTPUT / name).open(newline="") as file:
        return list(csv.DictReader(file))


def ns(text: str) -> int:
    """Nanoseconds since recordings begin."""
    whole, part = text.strip().split(".")
    return int(whole) * 1000 + int(part) - BASE


def of_process(every: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    pids = {
        event["pid"] for event in every if event["name"] == "process_name" and event["args"]["name"].startswith(names)
    }
    return [event for event in every if event["ph"] == "X" and event["pid"] in pids]


@pytest.mark.parametrize("layout", every_era(), ids=lambda layout: layout.era)
def test_timeline_table_and_database_list_the_same_kernels(layout: AscendLayout, tmp_path: Path) -> None:
    schedule = RANKS[0]
    home = write_ascend(tmp_path, schedule, layout, "both")
    known = sorted((w.start, w.end - w.start, w.name) for w in schedule.works if w.kind == "compute")
    hardware = [
        (ns(event["ts"]), round(event["dur"] * 1000), event["name"])
        for event in of_process(events(home), "Ascend Hardware")
        if event["name"].startswith(("aclnn", "trans_", "EmbeddingDenseGrad"))
    ]
    assert sorted(hardware) == known
    listed = [
        (ns(row["Start Time(us)"]), round(float(row["Duration(us)"]) * 1000), row["Name"])
        for row in rows(home, "kernel_details.csv")
        if row["Accelerator Core"] not in {"HCCL", "COMMUNICATION"}
    ]
    assert sorted(listed) == known
    connection = sqlite3.connect(home / OUTPUT / "ascend_pytorch_profiler_0.db")
    query = (
        "SELECT startNs, endNs - startNs, value FROM COMPUTE_TASK_INFO c JOIN TASK t USING (globalTaskId) "
        "JOIN STRING_IDS s ON s.id = c.name"
    )
    assert sorted((start - BASE, time, name) for start, time, name in connection.execute(query)) == known
    connection.close()


def test_operators_and_calls_of_the_timeline_are_those_of_the_database(tmp_path: Path) -> None:
    home = write_ascend(tmp_path, RANKS[0], AscendLayout(), "both")
    connection = sqlite3.connect(home / OUTPUT / "ascend_pytorch_profiler_0.db")
    for table, process, offset in (("PYTORCH_API", "Python", 0), ("CANN_API", "CANN", 1)):
        query = f"SELECT startNs, endNs, value FROM {table} JOIN STRING_IDS s ON s.id = name"
        stored = sorted(
            (int(start) - BASE, int(end) - int(start), name) for start, end, name in connection.execute(query)
        )
        shown = [
            (ns(event["ts"]), round(event["dur"] * 1000), event["name"].split("@")[1] if offset else event["name"])
            for event in of_process(events(home), process)
        ]
        assert stored == sorted(shown)
        assert stored
    connection.close()


def test_every_id_of_the_timeline_resolves(tmp_path: Path) -> None:
    every = events(write_ascend(tmp_path, RANKS[1]))
    calls = {event["args"]["connection_id"] for event in of_process(every, "CANN")}
    tasks = of_process(every, "Ascend Hardware", "HCCL")
    tasks = [task for task in tasks if "connection_id" in task["args"] and task["name"] != "PROFILING_ENABLE"]
    assert {task["args"]["connection_id"] for task in tasks} <= calls
    starts = {(event["pid"], event["tid"], event["ts"]) for event in every if event["ph"] == "X"}
    for category in ("async_npu", "async_task_queue", "fwdbwd", "HostToDevice"):
        flows = [event for event in every if event["ph"] in "sf" and event["cat"] == category]
        ends = {phase: {flow["id"] for flow in flows if flow["ph"] == phase} for phase in "sf"}
        assert ends["s"] == ends["f"]
        assert ends["s"]
        exact = [flow for flow in flows if category != "HostToDevice" or flow["ph"] == "f"]
        assert [flow for flow in exact if (flow["pid"], flow["tid"], flow["ts"]) not in starts] == []


@pytest.mark.parametrize("on", [True, False], ids=["queue", "direct"])
def test_who_launches(on: bool) -> None:
    """With the queue a second thread launches what was put in before; without it each thread does so itself."""
    schedule = simulate(replace(TWO_NPUS, queue=TaskQueue(on=on)))[0]
    kernels = [work for work in schedule.recorded if work.kind != "memcpy" and work.call]
    threads = {work.call.thread for work in kernels if work.call}
    assert threads == ({DEQUEUE} if on else {"main", "autograd"})
    taken = [call for call in schedule.calls if call.queued is not None]
    assert len(taken) == sum(call.name == "Enqueue" for call in schedule.calls)
    assert all(call.queued.end <= call.start for call in taken if call.queued)
    assert bool(taken) == on
    ends = [0, *(call.end for call in taken)]
    assert all(end <= call.start for end, call in zip(ends, taken, strict=False))


def test_parts_of_collectives() -> None:
    """They lie in their collective; a plane does one thing at a time; the rank that came first waits longest."""
    for schedule in RANKS:
        for work in (work for work in schedule.works if work.kind == "comm"):
            planes = defaultdict(list)
            for task in work.tasks:
                assert work.start <= task.start <= task.end <= work.end
                planes[task.plane].append(task)
            for tasks in planes.values():
                assert all(a.end <= b.start for a, b in pairwise(tasks))
    first = [next(work for work in schedule.works if work.kind == "comm") for schedule in RANKS]
    waits = [max(task.end - task.start for task in work.tasks if task.name == "Notify_Wait") for work in first]
    assert waits[0] > 5 * waits[1]
    assert sum(task.end - task.start for task in first[0].tasks if task.plane == 1) > 0


def test_step_trace_time_is_the_union_of_kernels(tmp_path: Path) -> None:
    schedule = RANKS[0]
    home = write_ascend(tmp_path, schedule)
    found = rows(home, "step_trace_time.csv")
    first, last = min(work.start for work in schedule.works), max(work.end for work in schedule.works)
    known = parts([work for work in schedule.works if work.kind in {"compute", "comm"}], first, last)
    assert sum(float(row["Computing"]) for row in found) == pytest.approx(known["compute"] / 1000)
    alone = sum(float(row["Communication(Not Overlapped)"]) for row in found)
    assert alone == pytest.approx(known["comm_exposed"] / 1000)
    assert [row["Step"] for row in found] == ["3", "4"]


def test_waiting_in_communication_json_is_that_of_one_plane(tmp_path: Path) -> None:
    """A reader that believes it calls most of the waiting idle."""
    home = write_ascend(tmp_path, RANKS[0])
    every = json.loads((home / OUTPUT / "communication.json").read_text())["step3"]["collective"]
    for work, found in zip((work for work in RANKS[0].works if work.kind == "comm"), every.values(), strict=False):
        times = found["Communication Time Info"]
        assert times["Elapse Time(ms)"] * 1e6 == pytest.approx(work.end - work.start)
        whole = times["Transit Time(ms)"] + times["Wait Time(ms)"] + times["Idle Time(ms)"]
        assert whole == pytest.approx(times["Elapse Time(ms)"])


def test_memory_tables_hold_the_records(tmp_path: Path) -> None:
    schedule = RANKS[0]
    home = write_ascend(tmp_path, schedule, AscendLayout(crlf=True))
    pool = [row for row in rows(home, "memory_record.csv") if row["Component"] == "PTA"]
    assert [float(row["Total Allocated(MB)"]) * 2**20 for row in pool] == [r.allocated for r in schedule.memory]
    taken = rows(home, "operator_memory.csv")
    assert [float(row["Size(KB)"]) * 1024 for row in taken] == [r.bytes for r in schedule.memory if r.bytes > 0]
    assert all(row["Release Time(us)"].endswith("\t") for row in taken)
    assert b"\r\n" in (home / OUTPUT / "memory_record.csv").read_bytes()


@pytest.mark.parametrize("damage", ["open", "comma", "cut", "host_open", "host_comma"])
def test_damaged_timelines_are_no_json(damage: str, tmp_path: Path) -> None:
    home = write_ascend(tmp_path, RANKS[0], AscendLayout(damage=damage))
    with pytest.raises(json.JSONDecodeError):
        events(home)


def test_level_0_has_no_calls_and_no_planes(tmp_path: Path) -> None:
    every = events(write_ascend(tmp_path, RANKS[0], AscendLayout(level=0)))
    assert of_process(every, "CANN") == []
    assert {event["name"].split("__")[0] for event in of_process(every, "HCCL")} == {"hcom_allReduce"}
    assert [event for event in every if event.get("cat") == "HostToDevice"]


def test_a_device_whose_clock_is_behind_tells_of_work_before_its_launch() -> None:
    schedule = simulate(replace(TWO_NPUS, recording=Recording(behind=20_000)))[0]
    late = [work.start - work.call.start for work in schedule.works if work.call is not None]
    told = [work.start - work.call.start for work in as_recorded(schedule).works if work.call is not None]
    assert min(late) == 0
    assert told == [each - 20_000 for each in late]


def test_the_differences_of_a_pair_add_up_and_have_their_sizes() -> None:
    plain = Workload(
        model=Model(layers=1, hidden=512, sequence=256, batch=4, vocabulary=2000),
        loader=Loader(cost=500 * US, workers=0),
        script=Script(device_syncs=1),
        ranks=Ranks(2),
        steps=2,
        tick=10,
    )
    sizes = {"slower_loader": 4, "slower_matmul": 30, "slower_all_reduce": 200, "extra_sync": 1, "layout_changes": 10}
    made = pair(plain, tuple(Difference(name, sizes[name]) for name in DIFFERENCES))
    for part in {*made.gpu_parts, *made.npu_parts}:
        added = sum(moved.get(part, 0) for moved in made.moved.values())
        assert made.gpu_parts.get(part, 0) + added == made.npu_parts.get(part, 0)
    products, _ = device_time(made.npu[0], "matmul")
    assert made.moved["slower_matmul"]["compute"] == products * 30 * US
    assert made.moved["layout_changes"]["compute"] == products * 10 * US
    assert device_time(made.npu[0], "layout") == (products, products * 10 * US)
    slower = [device_time(side[0], "matmul")[1] for side in (made.gpu, made.npu)]
    assert slower[1] - slower[0] == products * 30 * US
    # A batch is made while the device has nothing to do; its cost scatters by 5 %.
    assert made.moved["slower_loader"]["data_loading"] == pytest.approx(2 * 4_000_000, rel=0.05)
    assert made.moved["slower_all_reduce"]["comm_exposed"] > 0
    assert made.moved["extra_sync"]["untraced"] > 0


def test_every_kernel_of_the_model_has_a_type_and_a_core() -> None:
    schedule: Schedule = RANKS[0]
    found = {described(work.name) for work in schedule.works if work.kind == "compute"}
    assert {kernel.core for kernel in found} == {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU"}
    assert len({kernel.type for kernel in found}) > 12
