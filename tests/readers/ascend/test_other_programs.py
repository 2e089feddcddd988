"""Profiles of MindSpore, msMonitor and msprof, several databases in one folder, and files that are no profile."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.ascend_db_builder import OP, Builder
from tests.readers.ascend.test_text import EXPECTED, split, step
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.errors import InputError, Lost
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ascend_builder import AscendBuilder
    from traceanalyze.model.trace import Trace


def mindspore(folder: Path, rank: int) -> Path:
    """The same step as MindSpore writes it: another process, durations as text, scopes of modules above the kernels."""
    build: AscendBuilder = step()
    for event in build.events:
        if event["name"] == "process_name" and event["args"]["name"] == "Python":
            event["args"]["name"] = "MindSpore"
        if "dur" in event:
            event["dur"] = str(event["dur"])
        if event.get("cat") == "async_npu":
            event["name"] = "mindspore_to_npu"
    build._process(3, "Scope Layer", "NPU")
    for depth in range(2):
        # More of them than events of the program.
        for place in range(40):
            build.event("Default", 3, depth, 100 + place, 1)
    home = build.write(folder / f"host_1_{rank}_ascend_ms", rank=None)
    settings = {"profiler_level": "ProfilerLevel.Level1", "with_stack": False, "profile_memory": True}
    info = {"profiler_parameters": settings, "ms_version": "2.7.0", "cann_version": "8.3", "rank_id": rank}
    (home / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    return home


def load(path: Path) -> Trace:
    (trace,) = traceanalyze.load(path).traces
    return trace


def test_a_profile_of_mindspore_gives_the_same_step(tmp_path: Path) -> None:
    trace = load(mindspore(tmp_path, 2))
    assert split(analyze_trace(trace)) == EXPECTED
    assert (trace.origin.rank, trace.origin.level) == (2, "Level1")
    assert trace.versions == {"mindspore": "2.7.0", "cann": "8.3"}
    assert trace.options == {"with_stack": False, "profile_memory": True}


def test_ranks_of_mindspore_are_one_run(tmp_path: Path) -> None:
    for rank in (1, 0):
        mindspore(tmp_path, rank)
    (run,) = traceanalyze.load_runs(tmp_path)
    assert run.ranks == (0, 1)


@pytest.mark.parametrize(("ending", "module"), [("pt", "torch_npu.profiler.profiler"), ("ms", "mindspore.profiler")])
def test_the_remedy_for_a_profile_never_analysed_is_that_of_its_framework(
    tmp_path: Path, ending: str, module: str
) -> None:
    home = tmp_path / f"host_1_ascend_{ending}"
    (home / "FRAMEWORK").mkdir(parents=True)
    (home / "profiler_info_0.json").write_text("{}")
    with pytest.raises(InputError, match=rf"never analysed; run `python -c \"from {module}") as caught:
        traceanalyze.load(home)
    # MindSpore's takes the folder in which the profiles lie.
    assert (f"analyse('{tmp_path}')" in str(caught.value)) == (ending == "ms")


_MSPROF_PROCESSES = {3: "Ascend Hardware", 1003602: "CANN", 1003611: "HCCL", 1003612: "Overlap Analysis"}
_MSPROF_THREADS = {(3, 9): "Step Trace(Model ID:2)", (1003611, 0): "Plane 0", (1003611, 70000): "Communication Kernel"}


_OF_KERNEL = {"Task Type": "AI_CORE", "Stream Id": 2, "Task Id": 7}


def iteration(number: int) -> dict[str, list[dict[str, object]]]:
    """One of 1000 µs by msprof of 2023: a kernel for 200, a copy for 50, an all-reduce for 300 that waits for 250."""
    at = 1000.0 * number
    files: dict[str, list[dict[str, object]]] = {"hccl": [], "task_time": [], "step_trace": [], "msprof": []}

    def event(file: str, name: str, pid: int, tid: int, start: float, dur: float, **args: object) -> None:
        made = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": at + start, "dur": dur, "args": args}
        for one in {file, "msprof"}:
            files[one].append(made)

    for pid, name in _MSPROF_PROCESSES.items():
        files["msprof"].append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
    for (pid, tid), name in _MSPROF_THREADS.items():
        files["msprof"].append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
    files["hccl"] += [one for one in files["msprof"] if one["pid"] == 1003611]
    files["task_time"] += [one for one in files["msprof"] if one["pid"] == 3]
    event("step_trace", f"Iteration {number}", 3, 9, 0, 1000)
    event("step_trace", f"Reduce_{number}_0", 3, 9, 300, 320)
    event("msprof", "GE@Infer", 1003602, 7, 0, 1000)
    event("task_time", "Default/net/Conv2D-op1", 3, 2, 100, 200, **_OF_KERNEL)
    event("task_time", "MEMCPY_ASYNC", 3, 2, 700, 50, **{"Task Type": "MEMCPY_ASYNC", "Stream Id": 2})
    event("task_time", "MODEL_EXECUTE", 3, 5, 0, 1000, **{"Task Type": "MODEL_EXECUTE", "Stream Id": 5})
    event("hccl", "Default/AllReduce-op2", 1003611, 70000, 310, 300)
    parts = (("NOTIFY_WAIT", "Notify_Wait", 310, 250), ("MEMCPY_ASYNC", "Memcpy", 560, 20))
    for task, part, start, dur in (*parts, ("REDUCE_ASYNC_V2", "Reduce_Inline", 580, 30)):
        event("task_time", task, 3, 13, start, dur, **{"Task Type": task, "Stream Id": 13})
        event("hccl", part, 1003611, 0, start, dur, **{"stream id": 13, "src rank": 0, "dst rank": 1})
    return files


_SUMMARY = (
    "Task ID,Stream ID,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Block Dim,aic_mac_time(us)"
)


@pytest.mark.parametrize("kinds", [("hccl", "msprof", "step_trace", "task_time"), ("hccl", "step_trace", "task_time")])
@pytest.mark.parametrize("given", [".", "device_0", "device_0/timeline"])
def test_iterations_that_msprof_exported_are_the_steps_of_one_recording(
    tmp_path: Path, kinds: tuple[str, ...], given: str
) -> None:
    """Whether the timelines of all are there or what they consist of; ten iterations sort by number."""
    place = tmp_path / "device_0" / "timeline"
    place.mkdir(parents=True)
    for number in range(1, 11):
        for kind in kinds:
            (place / f"{kind}_0_2_{number}.json").write_text(json.dumps(iteration(number)[kind]))
    (place.parent / "summary").mkdir()
    for number in range(1, 11):
        row = f"7,2,Default/net/Conv2D-op1,Conv2D,AI_CORE,{1000 * number + 100}.0,200.0,8,150.0"
        (place.parent / "summary" / f"op_summary_0_2_{number}.csv").write_text(f"{_SUMMARY}\n{row}\n")
    (trace,) = traceanalyze.load(tmp_path / given).traces
    found = analyze_trace(trace)
    ((kind, core, count),) = ((one.op_type, one.core, one.count) for one in found.records("kernel_types"))
    assert (kind, core, count) == ("Conv2D", "AI_CORE", 10)
    assert not any(isinstance(note, Lost) for note in trace.read.notes)
    assert found.steps.name == tuple(f"ProfilerStep#{number}" for number in range(1, 11))
    times = {row.part: row.mean_ns for row in found.records("split")}
    assert (times["compute"], times["communication"], times["memory_ops"]) == (200_000, 300_000, 50_000)
    assert found.steps.time.tolist() == [1_000_000] * 10
    assert isinstance(times["sync"], NotMeasured)  # the run of a whole graph shows none
    assert isinstance(times["data_loading"], NotMeasured)
    (collective,) = found.records("collectives")
    assert (collective.collective, collective.wait_ns, collective.transfer_ns) == ("all_reduce", 2_500_000, 500_000)
    assert [device.id for device in trace.devices] == [0]


def test_one_part_of_what_msprof_exported_is_not_analysed(tmp_path: Path) -> None:
    """Without the others compute or communication would be 0."""
    for kind in ("hccl", "task_time"):
        path = tmp_path / f"{kind}_0_2_1.json"
        path.write_text(json.dumps(iteration(1)[kind]))
        with pytest.raises(InputError, match="one part of what msprof exports"):
            traceanalyze.load(path)


def test_an_iteration_that_is_cut_off_leaves_the_others_and_is_told(tmp_path: Path) -> None:
    for number in range(1, 4):
        text = json.dumps(iteration(number)["msprof"])
        (tmp_path / f"msprof_0_2_{number}.json").write_text(text[:-30] if number == 2 else text)
    trace = load(tmp_path)
    assert trace.read.counts["malformed"] > 0
    assert analyze_trace(trace).steps.time.tolist() == [1_000_000] * 3


def test_a_real_export_of_2023_has_its_own_overlap(shared_traces: Path) -> None:
    """Sums of what the file itself draws: computing 5.915 ms, communication that nothing hides 41.534, free 0.114."""
    folder = shared_traces / "ascend" / "mindinsight_2rank_msprof_2023"
    files = list(folder.rglob("msprof_0_2_1.json"))
    if not files:
        pytest.skip("the export is not here")
    drawn = [event for event in json.loads(files[0].read_text()) if event["pid"] == 1003612 and event["ph"] == "X"]
    said = {name: sum(round(one["dur"] * 1000) for one in drawn if one["name"] == name) for name in _OVERLAP}
    found = analyze_trace(load(folder))
    times = {row.part: row.mean_ns for row in found.records("split")}
    for part, name in (("compute", "Computing"), ("communication", "Communication(Not Overlapped)")):
        assert times[part] == pytest.approx(said[name], abs=200)  # each is rounded by itself
    edges = 47_587_810 - sum(said.values())
    assert times["memory_ops"] == 0
    assert times["dispatch"] + times["idle"] == pytest.approx(said["Free"] + edges, abs=200)


_OVERLAP = ("Computing", "Communication(Not Overlapped)", "Free")


@pytest.mark.parametrize("given", [".", "PROF_000001_20240101000000000_ABC"])
def test_a_recording_of_msprof_that_was_not_exported_says_how_to(tmp_path: Path, given: str) -> None:
    home = tmp_path / "PROF_000001_20240101000000000_ABC"
    for name in ("host/data/api.slice_0", "device_0/data/hwts.data.0.slice_0", "device_0/info.json.0"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"{}")
    with pytest.raises(InputError) as caught:
        traceanalyze.analyze(tmp_path / given)
    assert f"run `msprof --export=on --output={home}`" in str(caught.value)
    assert "\n" not in str(caught.value)


def database(folder: Path, name: str, ops: int = 1) -> Path:
    build = Builder()
    for number in range(ops):
        build.api(OP, "aten::mul", 10 * number, 5)
    path = build.write(folder / "made" / name, name)
    folder.mkdir(parents=True, exist_ok=True)
    return path.rename(folder / name)


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (("ascend_pytorch_profiler_0.db", "ascend_pytorch_profiler_1.db"), [0, 1]),
        (("ascend_mindspore_profiler_4.db",), [4]),
        (("msmonitor_1234_20260801120000000_0.db", "msmonitor_1235_20260801120000000_3.db"), [0, 3]),
        (("msmonitor_1234_20260801120000000_-1.db",), [None]),
        (("msprof_20260801120000.db",), [None]),
    ],
)
def test_databases_in_a_folder_are_all_read(tmp_path: Path, names: tuple[str, ...], ranks: list[int | None]) -> None:
    for place, name in enumerate(names):
        database(tmp_path / "all", name, ops=place + 1)
    found = traceanalyze.load(tmp_path / "all").traces
    assert [trace.origin.rank for trace in found] == ranks
    assert [len(trace.events) for trace in found] == [place + 1 for place in range(len(names))]


def test_each_of_several_databases_has_its_own_description(tmp_path: Path) -> None:
    """Users collect the files of all ranks in one folder; those of rank 0 do not describe rank 1."""
    for rank in (0, 1):
        database(tmp_path / "all", f"ascend_pytorch_profiler_{rank}.db")
        level = {"config": {"experimental_config": {"_profiler_level": f"Level{rank}"}}, "rank_id": rank}
        (tmp_path / "all" / f"profiler_info_{rank}.json").write_text(json.dumps(level))
    database(tmp_path / "all", "ascend_pytorch_profiler_2.db")
    found = traceanalyze.load(tmp_path / "all").traces
    assert [(trace.origin.rank, trace.origin.level) for trace in found] == [(0, "Level0"), (1, "Level1"), (2, "")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hccl_raw_0.csv", "step_num,communication_cost\n1,2.6\n", "MindSpore Insight"),
        ("step_trace_raw_3_detail_time.csv", "step_num,start_point\n1,2\n", "MindSpore Insight"),
        ("flops_summary_1.json", '{"FLOPs": 1.0, "FLOPS": 2.0}', "MindSpore Insight"),
        ("cluster_communication.json", '{"(0, 1)": {}}', "analysis of a cluster"),
        ("cluster_step_trace_time.csv", "Step,Type,Index\n1,rank,0\n", "analysis of a cluster"),
        ("kernel_details.csv", "Name,Type\na,b\n", "one table of an Ascend profile"),
        ("op_summary_20240101.csv", "Op Name,OP Type\na,b\n", "one table of an Ascend profile"),
        ("communication.json", '{"step50": {}}', "one table of an Ascend profile"),
        ("profiler_info_0.json", '{"rank_id": 0}', "one table of an Ascend profile"),
    ],
)
def test_what_is_no_profile_says_what_it_is_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    for given in (tmp_path, tmp_path / name):
        with pytest.raises(InputError) as caught:
            traceanalyze.analyze(given)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("mindinsight_cluster_4rank", "MindSpore Insight"),
        ("mindinsight_cluster_4rank/hccl_raw_2.csv", "MindSpore Insight"),
        ("mindinsight_cluster_4rank/marey_graph/ascend_marey_timeline_1.json", "MindSpore Insight"),
        ("mstt_advisor_tests/advisor/cluster_analysis_output", "analysis of a cluster"),
        ("mstt_advisor_tests/advisor/compute_advice/data/kernel_details.csv", "one table of an Ascend profile"),
    ],
)
def test_real_files_that_are_no_profile(shared_traces: Path, path: str, said: str) -> None:
    """One clear line on stderr and exit code 2, whatever there is in the file."""
    call = [sys.executable, "-m", "traceanalyze", str(shared_traces / "ascend" / path)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
