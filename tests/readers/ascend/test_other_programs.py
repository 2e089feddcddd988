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
from traceanalyze.errors import InputError

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
