"""The published figures of well-known public traces, to the last printed digit (definitions §16)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.oracle.report import numbers
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "traces" / "kineto"
_RESNET = "kineto_tb/samples/resnet50_num_workers_"
TRACES = {
    "w0 a": _RESNET + "0/worker0.1623143089861.pt.trace.json.gz",
    "w0 b": _RESNET + "0/worker0.1623143566756.pt.trace.json.gz",
    "w4 a": _RESNET + "4/worker0.1623212756351.pt.trace.json.gz",
    "w4 b": _RESNET + "4/worker0.1623213129365.pt.trace.json.gz",
    "control": "hta/trace_diff/control/control.json.gz",
    "test": "hta/trace_diff/test/test.json.gz",
    "df_index_resolver": "hta/df_index_resolver/rank1.json.gz",
    "Qwen H100": "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "Qwen MI300": "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
}

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")


@lru_cache(maxsize=2)
def _analysis(name: str) -> RankAnalysis:
    path = SHARED / TRACES[name]
    if not path.exists():
        pytest.skip(f"{name} is not among the shared traces")
    (trace,) = traceanalyze.load(path).traces
    return analyze_trace(trace, Options())


def _us(text: str) -> list[float]:
    """Microseconds as published."""
    return [float(word) for word in text.replace(",", "").split()]


def _near(measured: list[int], published: list[float]) -> None:
    """Equal to the digits published: whole µs on old files, 10 ns on new ones."""
    assert [ns / 1000 for ns in measured] == pytest.approx(published, abs=0.0151, rel=0)


@pytest.mark.parametrize(
    ("name", "times", "counts"),
    [
        ("w0 a", "996,477 591,532 0 0 12,026 392,919", (8772, 0, 12, 312)),
        ("w4 a", "801,550 594,868 0 0 19,545 187,137", (8868, 0, 12, 378)),
        ("df_index_resolver", "1,732,965 620,516 357,343 357,343 22,754 732,352", (17350, 2020, 2040, 880)),
        ("control", "464,594 281,336 163,535 87,921 19,330 76,007", (8508, 60, 228, 654)),
        ("test", "745,239 548,148 251,341 73,298 96,497 27,296", (9812, 64, 4856, 900)),
        ("Qwen H100", "49,652.83 45,432.71 0 0 214.61 4,005.52", (1465, 0, 1, 241)),
        ("Qwen MI300", "47,085.80 43,062.03 0 0 0.76 4,023.01", (1516, 0, 1, 0)),
    ],
)
def test_device_span(name: str, times: str, counts: tuple[int, int, int, int]) -> None:
    span = next(_analysis(name).tables["device_spans"].records())
    parts = (span.compute_ns, span.communication_total_ns, span.communication_ns, span.memory_ops_ns, span.idle_ns)
    _near([span.span_ns, *parts], _us(times))
    assert (span.compute_kernels, span.communication_kernels, span.copies, span.fills) == counts


@pytest.mark.parametrize(
    ("name", "steps", "parts", "causes"),
    [
        ("w0 a", 6, "1,065,553 591,532 0 12,026 461,995", "352,401 1,021 17,420 2,788 66,986 9,846 14,321"),
        ("w0 b", 6, "929,468 591,209 0 10,936 327,323", "209,870 7,869 16,297 1,479 68,759 9,839 14,689"),
        ("w4 a", 6, "846,408 594,868 0 19,545 231,995", "7,101 37,541 26,294 2,581 115,640 9,926 35,493"),
        ("w4 b", 6, "856,851 594,263 0 17,895 244,693", "1,703 43,183 18,230 1,358 69,879 10,287 101,411"),
        (
            "df_index_resolver",
            5,
            "1,737,720 620,516 357,343 22,754 737,107",
            "0 0 121,132 20,567 522,132 18,888 74,955",
        ),
        ("control", 6, "465,010 281,336 87,921 19,330 76,423", "420 214 15,467 2,631 34,388 8,101 17,833"),
        ("test", 6, "744,515 547,949 73,298 96,190 27,078", "118 218 123 16 121 26,306 192"),
        ("Qwen H100", 1, "35,183.36 31,760.06 0 145.42 3,277.89", "0 11.74 245.36 54.07 571.54 1,732.58 716.67"),
        ("Qwen MI300", 1, "33,755.37 29,743.18 0 0.76 4,011.43", "0 34.23 574.13 280.44 1,250.86 874.19 1,278.01"),
    ],
)
def test_step_windows(name: str, steps: int, parts: str, causes: str) -> None:
    analysis = _analysis(name)
    part = analysis.partitions[0]
    columns = (analysis.steps.time, part.compute, part.comm_exposed, part.mem_exposed, part.idle)
    assert len(analysis.steps) == steps
    _near([int(column.sum()) for column in columns], _us(parts))
    assert isinstance(analysis.idle, IdleCauses)
    by_cause = analysis.idle.by_step.sum(axis=0)
    groups = (
        (Cause.DATA_LOADING,),
        (Cause.SYNC,),
        range(Cause.DISPATCH_LAUNCH, Cause.DISPATCH_LATENCY + 1),
        (Cause.DISPATCH_LATENCY,),
        (Cause.HOST_OP,),
        (Cause.DEVICE_GAP, Cause.DEVICE_DEPENDENCY),
        (Cause.UNTRACED,),
    )
    _near([sum(int(by_cause[cause]) for cause in group) for group in groups], _us(causes))


@pytest.mark.parametrize(
    ("name", "milliseconds"),
    [
        ("w0 a", "187.948 175.153 179.733 174.564 182.172 165.983"),
        ("w4 a", "182.306 126.183 127.181 123.079 163.461 124.198"),
        ("df_index_resolver", "345.770 365.256 346.097 344.269 336.328"),
        ("control", "75.656 76.800 76.234 76.727 78.473 81.120"),
        ("test", "156.646 117.128 114.802 123.104 116.692 116.143"),
    ],
)
def test_step_times(name: str, milliseconds: str) -> None:
    assert [round(time / 1e6, 3) for time in _analysis(name).steps.time] == _us(milliseconds)


@pytest.mark.parametrize(("name", "mean"), [("w0 a", 177.6), ("w0 b", 154.9), ("w4 a", 141.1), ("w4 b", 142.8)])
def test_mean_step_time(name: str, mean: float) -> None:
    assert round(float(_analysis(name).steps.time.mean()) / 1e6, 1) == mean


@pytest.mark.parametrize(("name", "percent"), [("w0 a", 33.07), ("w4 a", 0.84)])
def test_data_loading_share(name: str, percent: float) -> None:
    analysis = _analysis(name)
    assert isinstance(analysis.idle, IdleCauses)
    loading = int(analysis.idle.by_step[:, Cause.DATA_LOADING].sum())
    assert round(100 * loading / int(analysis.steps.time.sum()), 2) == percent


@pytest.mark.parametrize(("name", "percent"), [("control", 46.24), ("test", 70.84), ("df_index_resolver", 0.0)])
def test_overlap_ratio(name: str, percent: float) -> None:
    part = _analysis(name).partitions[0]
    assert round(100 * int(part.comm_overlapped.sum()) / int(part.comm_total.sum()), 2) == percent


@pytest.mark.parametrize(("name", "count", "caused"), [("w4 a", 6, 40.3), ("w0 a", 6, 3.6), ("control", 29, 2.2)])
def test_sync_points(name: str, count: int, caused: float) -> None:
    """A blocking copy and the stream synchronisation of the same operator are one point; costs are of both together."""
    syncs = list(_analysis(name).tables["sync_points"].records())
    assert sum(site.count for site in syncs if site.kind == "sync_blocking_in_effect") == count
    costs = [site.idle_caused_ns for site in syncs if not isinstance(site.idle_caused_ns, NotMeasured)]
    assert round(sum(costs) / 1e6, 1) == caused


@pytest.mark.parametrize(
    ("name", "call", "count", "blocked", "caused"),
    [
        ("w4 a", "cudaMemcpyAsync", 6, 56.2, 37.5),
        ("w4 a", "cudaStreamSynchronize", 12, 0.4, 2.8),
        ("w0 a", "cudaMemcpyAsync", 6, 12.0, 1.0),
        ("w0 a", "cudaStreamSynchronize", 12, 0.6, 2.6),
        ("control", "cudaMemcpyAsync", 29, 75.0, 2.1),
    ],
)
def test_sync_calls_of_the_oracle(name: str, call: str, count: int, blocked: float, caused: float) -> None:
    """The figures are published by call, which the product merges into points."""
    row = numbers(SHARED / TRACES[name])["syncs"][call]
    assert (row["count"], round(row["blocked"] / 1e6, 1), round(row["idle_caused"] / 1e6, 1)) == (
        count,
        blocked,
        caused,
    )


@pytest.mark.parametrize(
    ("name", "late", "linked", "unlinked", "unlinked_ms"),
    [
        ("w0 a", 858, 9096, 0, 0.0),
        ("df_index_resolver", 11267, 22290, 0, 0.0),
        ("control", 1442, 9450, 0, 0.0),
        ("test", 1, 15018, 614, 56.5),
        ("Qwen H100", None, 1198, 509, 13.7),
        ("Qwen MI300", None, 1054, 463, 13.3),
    ],
)
def test_launches(name: str, late: int | None, linked: int, unlinked: int, unlinked_ms: float) -> None:
    (launches,) = _analysis(name).tables["launches"].records()
    assert late in {None, launches.late}
    assert (launches.linked, launches.unlinked) == (linked, unlinked)
    assert round(launches.unlinked_ns / 1e6, 1) == unlinked_ms


@pytest.mark.parametrize(
    ("name", "p50", "p90"), [("w0 a", 9492, 26079), ("df_index_resolver", 3, 2361), ("test", 41824, 59705)]
)
def test_launch_delay(name: str, p50: int, p90: int) -> None:
    (launches,) = _analysis(name).tables["launches"].records()
    assert (launches.delay_p50_ns, launches.delay_p90_ns) == (p50 * 1000, p90 * 1000)
