"""The device tables of a report: complete texts, right cells, and what a short view shows."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report

TABLES = (
    *("kernel_groups", "kernels", "collectives", "copies", "device_summary", "device_overlap", "kernel_durations"),
    *("kernel_configurations", "op_rates", "step_launches", "device_annotations"),
    *("utilisation", "low_utilisation", "kernel_sequences"),
    *("memory", "step_memory", "memory_curve", "allocator_calls"),
)
SHAPES = {"Input Dims": [[1000, 2000], [2000, 500]], "Input type": ["float", "float"]}


def rich():
    b = TraceBuilder()
    b.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
    b.step(1, 0, 500)
    b.op("aten::mm", 0, 10, **SHAPES)
    b.launch(1, 1, 20, 100, name="ampere_sgemm_128x64_nn", grid=[2, 1, 1], block=[64, 1, 1])
    b.op("aten::relu", 30, 10, **{"Input Dims": [[100]], "Input type": ["float"]})
    b.launch(31, 1, 120, 5, name="void at::native::relu_kernel")
    b.device(150, 20, name="ncclDevKernel_AllReduce", stream=9)
    b.copy(40, 5, 180, 20, bytes=1000)
    b.copy(60, 5, 210, 20, name="Memcpy HtoD (Host -> Device)")
    b.device(240, 2, name="Memset (Device)", cat="gpu_memset")
    b.event("gpu_user_annotation", "forward", 20, 100, pid=0, tid=7)
    b.api("cudaMalloc", 80, 3)
    b.memory(90, 500)
    b.memory(95, 500, kind=0, device=-1)
    return b


def plain():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name="mystery")
    return b


def tables(b):
    return build_report("run", [b.analyze()], version="0").tables


@pytest.mark.parametrize("made", [rich, plain])
def test_every_table_column_and_term_has_its_texts(made):
    words, found = texts(), tables(made())
    for key in TABLES:
        table = found[key]
        assert words.title(found[key])
        for column in table.columns:
            assert words.meaning(found[key], column)
            terms = table.column(column.key) if column.kind == Kind.TERM else ()
            assert {term for term in terms if isinstance(term, str)} <= set(words.terms)
        rows = () if isinstance(table.rows, NotMeasured) else table.rows
        reasons = {value.reason for row in rows for value in row if isinstance(value, NotMeasured)}
        assert reasons <= set(words.reasons)
        if isinstance(table.rows, NotMeasured):
            assert table.rows.reason in words.reasons


def test_every_word_of_the_vocabulary_has_a_text():
    terms = texts().terms
    assert {f"work_{group.name.lower()}" for group in KernelGroup} <= set(terms)
    assert {f"tensor_core_{use.name.lower()}" for use in TensorCore} <= set(terms)


def test_kinds_of_work_have_a_total():
    table = tables(rich())["kernel_groups"]
    assert table.total[:4] == ("all_work", 6, 167_000, 1.0)
    assert sum(table.column("device_time_ns")) == 167_000


def test_unknown_memory_is_not_measured_and_a_fill_has_none():
    table = tables(rich())["copies"]
    found = dict(zip(table.column("direction"), table.column("memory_kind"), strict=True))
    assert found["copy_fill"] is None
    assert NotMeasured("no_memory_kind") in table.column("memory_kind")


def test_a_short_view_shows_four_tables_at_most():
    text = render(build_report("run", [rich().analyze()], version="0"), texts(), Style(width=100))
    words, found = texts(), tables(rich())
    shown = [key for key in TABLES if words.title(found[key]) in text]
    assert shown == ["kernel_groups", "kernels", "collectives", "copies"]
    text = render(build_report("run", [plain().analyze()], version="0"), texts(), Style(width=100))
    assert [key for key in TABLES if words.title(found[key]) in text] == ["kernel_groups", "kernels"]


def test_tables_become_data_frames():
    for table in tables(rich()).values():
        assert len(table.to_pandas()) == (0 if isinstance(table.rows, NotMeasured) else len(table.rows))


def test_host_only_reports_have_memory():
    b = TraceBuilder()
    b.op("aten::mm", 0, 10)
    b.memory(1, 5, kind=0, device=-1, allocated=5)
    found = tables(b)
    assert found["memory"].column("peak_allocated_bytes") == (5,)
    assert "kernels" not in found
