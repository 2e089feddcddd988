"""`compare --layout msprof`: read as a script reads the workbook of msprof-analyze."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.cli.app import app
from traceanalyze.locales import texts
from traceanalyze.pipeline import compare
from traceanalyze.report.formats import renderer

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
PAIR = Path("sample_traces/gpu_npu_pair")
RESNET = "kineto/kineto_tb/samples/resnet50_num_workers_"


def _workbook(base: Path, candidate: Path) -> dict[str, pd.DataFrame]:
    report = traceanalyze.compare(base, candidate)
    content = renderer("msprof")([report], texts("en"))
    # Differences are text for people, without a heading.
    return pd.read_excel(BytesIO(content), sheet_name=None, header=2)


def _written(folder: Path, base: Path, candidate: Path, *more: str) -> Path:
    written = folder / "vendor.xlsx"
    arguments = ["compare", str(base), str(candidate), "--layout", "msprof", "-q", "-o", str(written), *more]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return written


def _times(sheet: pd.DataFrame) -> dict[str, tuple[float, float]]:
    names = sheet["Index"].str.strip()
    return dict(zip(names, zip(sheet["Duration(ms)"], sheet["Duration(ms).1"], strict=True), strict=True))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize(
    ("base", "candidate", "expected"),
    [
        (
            f"{RESNET}0/worker0.1623143089861.pt.trace.json.gz",
            f"{RESNET}4/worker0.1623212756351.pt.trace.json.gz",
            {
                "Computing Time": (591.532, 594.868),
                "Conv (Forward)": (126.619, 128.683),
                "Free Time": (402.568, 202.443),
                "E2E Time": (994.100, 797.311),
            },
        ),
        (
            "kineto/hta/trace_diff/control/control.json.gz",
            "kineto/hta/trace_diff/test/test.json.gz",
            {
                "Computing Time": (281.336, 548.148),
                "Uncovered Communication Time": (87.921, 73.298),
                "E2E Time": (464.594, 745.239),
            },
        ),
        (
            "ascend/msinsight_2rank_torch/text/level1/rank1_ascend_pt",
            "ascend/msinsight_2rank_torch/text/level1/rank0_ascend_pt",
            {
                "Computing Time": (8.878, 8.874),
                "Conv (Forward)": (1.118, 1.116),
                "Conv (Forward) (Cube)": (0.722, 0.723),
                "Conv (Backward)": (1.962, 1.966),
                "Matmul": (1.089, 1.066),
                "Vector": (4.133, 4.146),
                "Vector (Trans)": (0.474, 0.477),
                "SDMA (Tensor Move)": (0.572, 0.574),
                "Other": (0.0055, 0.0055),
                "Uncovered Communication Time": (96.359, 101.963),
                "Wait": (92.412, 98.027),
                "E2E Time": (131.913, 136.581),
            },
        ),
    ],
)
def test_totals_are_those_that_msprof_analyze_has_right(
    tmp_path: Path, base: str, candidate: str, expected: dict[str, tuple[float, float]]
) -> None:
    written = _written(tmp_path, SHARED / base, SHARED / candidate)
    sheets = pd.read_excel(written, sheet_name=None, header=2)
    found = _times(sheets["OverallMetrics"])
    # What neither side has, or tells, has no row.
    assert sheets["OverallMetrics"][["Duration(ms)", "Duration(ms).1"]].notna().all(axis=None)
    for name, both in expected.items():
        assert found[name] == pytest.approx(both, abs=0.0006), name


def test_details_are_sums_over_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    steps = ("--base-step", "3,4", "--comparison-step", "3,4,5")
    written = _written(tmp_path, PAIR / "gpu", PAIR / "npu", *steps)
    sheet = pd.read_excel(written, sheet_name="ModuleCompareStatistic", header=2)
    for side in ("", ".1"):
        told = sheet[f"Kernel Details{side}"].dropna()
        summed = told.str.findall(r"\[duration: ([\d.]+)\]").map(lambda times: sum(map(float, times)) / 1000)
        assert len(told) > 10
        assert summed.tolist() == pytest.approx(sheet[f"Device Self Time(ms){side}"][told.index].tolist(), abs=0.05)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("form", ["text", "db"])
def test_sums_of_sheets_are_those_of_msprof_analyze(form: str) -> None:
    ranks = [SHARED / f"ascend/msinsight_2rank_torch/{form}/level1/rank{rank}_ascend_pt" for rank in (0, 1)]
    sheets = _workbook(ranks[0], ranks[1])
    # Of kernel_details and op_statistic, which have neither collectives nor copies, and of operator_memory.
    expected = {"text": (8873.734, 8878.271), "db": (8903.431, 8915.634)}[form]
    for name in ("KernelCompare", "KernelTypeCompare"):
        sums = sheets[name][["Total Duration(us)", "Total Duration(us).1"]].sum()
        assert sums.tolist() == pytest.approx(expected, abs=0.001)
        assert sheets[name][["Calls", "Calls.1"]].sum().tolist() == [187, 187]
    # Each module as msprof-analyze has it of text; of databases it drops kernels.
    for name, all_, unit in (("ModuleCompareStatistic", "[ TOTAL ]", 1), ("ModuleCompare", "TOTAL", 1000)):
        sheet = sheets[name]
        modules = sheet[sheet["Operator Name"] == all_].set_index("Module Name")
        times = modules.filter(regex=r"^Device Total Time\(..\)(.1)?$")
        assert not modules.index.has_duplicates
        if form == "text":
            forward = times.loc["/ DistributedDataParallel_0"].tolist()
            assert forward == pytest.approx([2.319 * unit, 2.335 * unit], abs=0.002 * unit)
            conv = times.loc["/[ BACKWARD ]/ DistributedDataParallel_0/ AlexNet_0/ Sequential_0/ Conv2d_0"].tolist()
            assert conv == pytest.approx([0.473 * unit, 0.474 * unit], abs=0.003 * unit)
        assert sheet[sheet["Operator Name"] != all_].filter(regex="^Device Total").isna().all(axis=None)
    # A script that adds up what the details say has the times of the calls.
    details = sheets["ModuleCompare"][sheets["ModuleCompare"]["Operator Name"] != "TOTAL"]
    told = details["Kernel Details"].dropna()
    assert not told.str.contains("more$|µs").any()
    summed = told.str.findall(r"\[duration: ([\d.]+)\]").map(lambda times: sum(map(float, times)))
    own = details["Device Self Time(us)"][told.index]
    assert summed.tolist() == pytest.approx(own.tolist(), abs=0.05)
    memory = sheets["MemoryCompare"]["Allocated Details"].dropna()
    sizes = memory.str.findall(r"\[size: ([\d.]+)\]").map(lambda each: sum(map(float, each)))
    assert sizes.tolist() == pytest.approx(sheets["MemoryCompare"]["Size(KB)"][memory.index].tolist())
    allocated = sheets["MemoryCompareStatistic"]
    # Of the table of allocations the rows of PyTorch's pool; those of `aten::mm` are the backward pass's. Both runs are
    # of one program, which allocates as much.
    by_name = allocated.set_index("Operator Name")["Base Allocated Memory(MB)"]
    assert by_name.sum() == pytest.approx(1097299.5 / 1024)
    assert by_name["aten::mm (backward)"] == pytest.approx(252531 / 1024)
    assert by_name["aten::_foreach_add"] == pytest.approx(239527.5 / 1024, abs=0.003)
    assert "<outside operators>" not in by_name
    if form == "text":
        assert by_name.sum() == pytest.approx(_of_pytorch(ranks[0]).sum() / 1024)
    lived = sheets["MemoryCompareStatistic"]["Base Allocated Duration(ms)"].sum()
    assert lived == pytest.approx({"text": 538.240, "db": 550.045}[form], abs=0.001)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_calls_of_an_npu_are_the_operators_of_its_timeline() -> None:
    ranks = [SHARED / f"ascend/msinsight_2rank_torch/text/level1/rank{rank}_ascend_pt" for rank in (1, 0)]
    sheet = _workbook(ranks[0], ranks[1])["ApiCompare"]
    for rank, calls, total in zip(
        ranks, ("Calls", "Calls.1"), ("Total Duration(ms)", "Total Duration(ms).1"), strict=True
    ):
        events = json.loads((rank / "ASCEND_PROFILER_OUTPUT/trace_view.json").read_text())
        ops = [
            event for event in events if event.get("cat") == "cpu_op" and not event["name"].startswith("ProfilerStep")
        ]
        assert sheet[calls].sum() == len(ops)
        # Four collectives lie in others of their name, and count once.
        inside = [event["dur"] for event in ops if event["name"] == "HcclAllreduce"]
        expected = sum(event["dur"] for event in ops) / 1000
        # With the calls of CANN inside them their self times are all the time in which a thread is in one.
        itself = sum(_covered([event for event in ops if event["tid"] == tid]) for tid in {op["tid"] for op in ops})
        assert sheet[total.replace("Total Duration", "Self Time")].sum() == pytest.approx(itself / 1000, abs=0.001)
        assert sheet[total].sum() == pytest.approx(expected, abs=sum(inside) / 1000)
        own = sheet.set_index("api name")[total]
        for name in ("aten::copy_", "aten::conv2d", "Conv2D", "empty_tensor"):
            assert own[name] == pytest.approx(sum(event["dur"] for event in ops if event["name"] == name) / 1000)


def _covered(events: list[dict[str, Any]]) -> float:
    covered = until = Decimal(0)
    for start, dur in sorted((Decimal(event["ts"]), Decimal(str(event["dur"]))) for event in events):
        covered, until = covered + max(start + dur - max(start, until), 0), max(start + dur, until)
    return float(covered)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_across_vendors_calls_of_cann_are_none_and_annotations_no_modules() -> None:
    home = SHARED / "ascend/msinsight_2rank_torch/text/level1/rank0_ascend_pt"
    sheets = _workbook(SHARED / "kineto/hta/trace_diff/control/control.json.gz", home)
    calls = sheets["ApiCompare"].set_index("api name")
    assert calls[["Calls.1", "Self Time(ms).1"]].sum().tolist() == pytest.approx([859, 148.925], abs=0.001)
    assert calls.loc["cudaStreamSynchronize", ["Calls", "Calls.1", "Diff Calls Ratio"]].tolist() == [60, 0, 0]
    # Only the NPU's profile has modules.
    assert {"OperatorCompareStatistic", "OperatorCompare"} < sheets.keys()
    assert not {"ModuleCompareStatistic", "ModuleCompare"} & sheets.keys()


def _of_pytorch(home: Path) -> pd.Series:
    """KB by name that the table of allocations has, without the pool of the graph engine."""
    table = pd.read_csv(home / "ASCEND_PROFILER_OUTPUT/operator_memory.csv")
    return table[~table["Name"].str.startswith("cann::")].groupby("Name")["Size(KB)"].sum()


def test_sheets_and_headings_are_those_of_msprof_analyze() -> None:
    found = _workbook(PAIR / "gpu", PAIR / "npu")
    assert list(found) == [
        *("OverallMetrics", "CommunicationCompare", "ModuleCompareStatistic", "ModuleCompare"),
        *("MemoryCompareStatistic", "MemoryCompare", "ApiCompare", "KernelCompare", "KernelTypeCompare", "Differences"),
    ]
    once = ["Communication OP Name", "Task Name", "Calls"]
    times = [f"{each} Duration(us)" for each in ("Total", "Avg", "Max", "Min")]
    both = [*once, *times, *(f"{each}.1" for each in (*once, *times))]
    assert list(found["CommunicationCompare"]) == ["Order Id", *both, "Diff Duration(us)", "Diff Ratio"]
    assert list(found["OverallMetrics"]) == [
        *("Index", "Duration(ms)", "Duration Ratio", "Number", "Duration(ms).1", "Duration Ratio.1", "Number.1"),
        *("Diff Duration(ms)", "Diff Ratio"),
    ]
    assert list(found["ModuleCompareStatistic"])[-5:] == [
        *("Device Total Time Diff(ms)", "Device Self Time Diff(ms)", "Diff Total Ratio"),
        *("Base Call Stack", "Comparison Call Stack"),
    ]
    assert set(found["ModuleCompareStatistic"]["Module Class"].dropna()) >= {"nn.Module: Linear"}


def _trace(path: Path, steps: int, kernel_us: int) -> Path:
    trace = TraceBuilder()
    for at in range(0, steps * 1000, 1000):
        trace.step(at // 1000, at, 900)
        trace.launch(at + 10, 5, at + 100, kernel_us, name="gemm")
    return trace.write(path)


def test_numbers_are_sums_over_the_steps_in_the_units_of_the_headings(tmp_path: Path) -> None:
    base, candidate = _trace(tmp_path / "a.json", 2, 300), _trace(tmp_path / "b.json", 3, 100)
    found = _workbook(base, candidate)
    times = _times(found["OverallMetrics"])
    # First to last kernel: 100 to 1,400 µs, and 100 to 2,200.
    assert times["Computing Time"] == (0.6, 0.3)
    assert times["E2E Time"] == (1.3, 2.1)
    assert times["Free Time"] == pytest.approx((0.7, 1.8))
    (kernel,) = found["KernelCompare"].to_dict("records")
    assert (kernel["Calls"], kernel["Total Duration(us)"], kernel["Avg Duration(us)"]) == (2, 600, 300)
    assert (kernel["Calls.1"], kernel["Total Duration(us).1"], kernel["Diff Total Ratio"]) == (3, 300, 0.5)


def test_copies_that_nothing_hides_are_sdma_inside_free_time(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 1500)
    # Before the first kernel of the recording, where categories have capitals; beside a kernel; and alone.
    trace.copy(0, 5, 50, 40, cat="Memcpy")
    trace.launch(10, 5, 100, 300, name="gemm")
    trace.copy(20, 5, 350, 90, cat="Memcpy", stream=9)
    trace.copy(30, 5, 600, 20, cat="Memset", name="Memset (Device)")
    trace.launch(40, 5, 900, 100, name="gemm")
    path = trace.write(tmp_path / "trace.json")
    times = _times(_workbook(path, path)["OverallMetrics"])
    assert {name: times[name][0] for name in ("Computing Time", "SDMA", "Free", "E2E Time")} == pytest.approx(
        {"Computing Time": 0.4, "SDMA": 0.04, "Free": 0.46, "E2E Time": 0.9}
    )
    assert times["Free Time"] == (0.5, 0.5)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize(
    ("name", "theirs", "fills"),
    [
        ("gaunernst_bert-small-uncased__1016001", 309.437, 0),
        ("Falconsai_nsfw_image_detection__1016002", 1_220.926, 4.384),
        ("Qwen_Qwen1.5-0.5B-Chat__1016005", 31_762.426, 143.047),
    ],
)
def test_self_times_of_modules_are_those_of_msprof_analyze_and_what_fills_in_them(
    name: str, theirs: float, fills: float
) -> None:
    """Run over the same recording msprof-analyze 26.2 has these sums of all modules, µs; it counts no fills."""
    path = SHARED / f"kineto/tracelens/h100/{name}.json.gz"
    sheet = _workbook(path, path)["ModuleCompareStatistic"]
    whole = sheet[(sheet["Operator Name"] == "[ TOTAL ]") & sheet["Module Name"].str.startswith("/ ")]
    assert 1000 * whole["Device Self Time(ms)"].sum() == pytest.approx(theirs + fills, abs=0.01)


def test_how_long_memory_lives_is_left_out_where_no_address_tells_what_is_freed(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 900)
    trace.op("aten::empty", 10, 30)
    trace.memory(20, 1024)
    trace.memory(25, -1024)
    trace.launch(50, 5, 100, 10)
    path = trace.write(tmp_path / "a.json")
    found = _workbook(path, path)
    (row,) = found["MemoryCompareStatistic"].to_dict("records")
    assert row["Base Allocated Memory(MB)"] == pytest.approx(1 / 1024)
    assert pd.isna(row["Base Allocated Duration(ms)"])
    assert "states no addresses" in found["Differences"].to_string()


def test_the_command_writes_it_where_msprof_analyze_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, candidate = _trace(tmp_path / "a.json", 2, 300), _trace(tmp_path / "b.json", 2, 100)
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(app, ["compare", str(base), str(candidate), "--layout", "msprof"])
    assert run.exit_code == 0, run.output
    (written,) = tmp_path.glob("performance_comparison_result_*.xlsx")
    sheet = openpyxl.load_workbook(written)["OverallMetrics"]
    assert sheet["B1"].value.startswith("Base Profiling: ")
    assert [str(each) for each in sheet.merged_cells.ranges] == ["B1:D1", "E1:G1"]
    refused = CliRunner().invoke(app, ["compare", str(base), str(candidate), "--layout", "msprof", "-o", "x.html"])
    assert refused.exit_code == 2
    assert not (tmp_path / "x.html").exists()


def test_a_workbook_is_replaced_by_the_next_one_and_sheets_without_anything_are_left_out(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 900)
    trace.op("aten::add", 10, 20)
    path, target = str(trace.write(tmp_path / "host.json")), tmp_path / "o.xlsx"
    written = []
    for _ in range(2):
        run = CliRunner().invoke(app, ["compare", path, path, "--layout", "msprof", "-o", str(target)])
        assert run.exit_code == 0, run.output
        written.append(target.read_bytes())
    assert written[0] == written[1]
    memory = ["MemoryCompareStatistic", "MemoryCompare"]
    assert openpyxl.load_workbook(target).sheetnames == [*memory, "ApiCompare", "Differences"]


def test_numbers_are_of_all_that_was_recorded_unless_steps_are_chosen(tmp_path: Path) -> None:
    """Two steps of a kernel of 100 µs each; a third kernel and a copy, 50 and 10 µs, follow in no step."""
    b = TraceBuilder()
    for step in range(2):
        b.step(step, 1000 * step, 1000)
        b.launch(1000 * step + 10, 5, 1000 * step + 100, 100, name="kernel")
    b.launch(2500, 5, 2600, 50, name="kernel")
    b.copy(2700, 5, 2800, 10)
    path = b.write(tmp_path / "trace.json")
    for more, compute, end in (((), 0.25, 2.71), (("--base-step", "0", "--comparison-step", "0"), 0.1, 0.1)):
        written = _written(tmp_path, path, path, *more, "--overwrite")
        found = _times(pd.read_excel(written, sheet_name="OverallMetrics", header=2))
        assert found["Computing Time"] == (compute, compute)
        assert found["E2E Time"] == (end, end)
        assert not pd.read_excel(written, sheet_name="ApiCompare", header=2)["api name"].str.startswith("Prof").any()
        said = pd.read_excel(written, sheet_name="Differences", header=None).to_string()
        assert ("of all that was recorded" in said) == (not more)


def test_memory_that_a_side_did_not_record_is_a_sheet_without_rows(tmp_path: Path) -> None:
    """A script finds the sheet that msprof-analyze writes, with all columns; zeros it does not find."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 10, 100)
    b.launch(20, 5, 100, 100, name="kernel")
    base = b.write(tmp_path / "base.json")
    b.memory(15, 512, allocated=512, reserved=1024)
    written = _written(tmp_path, base, b.write(tmp_path / "candidate.json"))
    sheet = pd.read_excel(written, sheet_name="MemoryCompareStatistic", header=2)
    assert (len(sheet), "Base Allocated Memory(MB)" in sheet) == (0, True)
    said = pd.read_excel(written, sheet_name="Differences", header=None).to_string()
    assert "MemoryCompareStatistic is empty" in said


def test_each_side_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    gather = compare.gather
    monkeypatch.setattr(
        compare, "gather", lambda paths, *more, **how: read.extend(paths) or gather(paths, *more, **how)
    )
    _written(tmp_path, PAIR / "gpu", PAIR / "npu")
    assert read == [str(PAIR / "gpu"), str(PAIR / "npu")]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_sheets_of_kernels_of_a_gpu_have_compute_and_fills(tmp_path: Path) -> None:
    """By the JSON: kernels but those of NCCL, and memsets; copies are in no sheet of kernels."""
    paths = [SHARED / f"kineto/hta/trace_diff/{name}/{name}.json.gz" for name in ("control", "test")]
    sheets = pd.read_excel(_written(tmp_path, *paths), sheet_name=None, header=2)
    for side, path in zip(("", ".1"), paths, strict=True):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        wanted = sum(
            one["dur"]
            for one in events
            if one.get("cat") in {"kernel", "gpu_memset"} and "nccl" not in one["name"].lower()
        )
        for name in ("KernelCompare", "KernelTypeCompare"):
            assert sheets[name][f"Total Duration(us){side}"].sum() == pytest.approx(wanted, rel=1e-6), (name, side)
