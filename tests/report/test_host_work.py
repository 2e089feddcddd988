"""Tables of operators, phases, modules and lines, from a hand-made trace to the report."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.report.contents import build_report
from traceanalyze.report.format import Formatter

TABLES = (
    *("operators", "operator_shapes", "op_kernels", "operator_steps", "annotations"),
    *("phases", "step_phases", "modules", "source_lines"),
)


def training(*, device=True):
    b = TraceBuilder()
    for number, at in ((1, 0), (2, 200)):
        b.step(number, at, 200)
        b.python("train.py(3): step", at, 190)
        b.python("nn.Module: Net_0", at + 10, 40)
        b.op("aten::mm", at + 12, 20, **{"Sequence number": number, "Input Dims": [[2, 2], [2, 2]]})
        b.op("MmBackward0", at + 60, 20, **{"Sequence number": number, "Fwd thread id": 1})
        if device:
            b.launch(at + 15, 2, at + 90, 30, name="gemm")
            b.launch(at + 65, 2, at + 120, 50, name="gemm")
    if device:
        b.device(375, 20)
    return b


def tables(b):
    return build_report("run", [b.analyze()], version="0").tables


def test_operators_show_their_share_and_what_has_none_has_no_host_time():
    found = tables(training())["operators"]
    assert found.ranked
    assert not found.detail
    rows = {row[0]: row[1:8] for row in found.rows}
    assert rows["MmBackward0"] == (100_000, 100 / 180, 100_000, 40_000, 40_000, 4_000, 2)
    assert rows["aten::mm"] == (60_000, 60 / 180, 60_000, 40_000, 40_000, 4_000, 2)
    assert rows["<unlinked>"] == (20_000, 20 / 180, 20_000, None, None, None, None)


def test_improper_nesting_is_told():
    b = training()
    assert tables(b)["operators"].notes == ()
    b.op("aten::late", 20, 30)
    (note,) = tables(b)["operators"].notes
    assert Formatter(texts()).message(note) == "Cut short, as one that began inside lasts longer: 1 run of operators."


def test_phases_are_means_of_a_step():
    found = tables(training())["phases"]
    rows = {row[0]: row[1:] for row in found.rows}
    assert rows["phase_forward"] == (30_000, 0.15, 40_000, 2)
    assert rows["phase_backward"] == (50_000, 0.25, 20_000, 2)
    assert rows["phase_unknown"][0] == 10_000


def test_modules_have_forward_and_backward_time():
    found = tables(training())["modules"]
    assert found.rows == (("Net_0", "Net", 2, 60_000, 100_000, 60_000, 100_000, 80_000, 80_000),)


def test_phases_of_every_step_are_rows():
    found = tables(training())["step_phases"]
    assert [row for row in found.rows if row[1] == "phase_forward"] == [
        ("1", "phase_forward", 30_000, 40_000),
        ("2", "phase_forward", 30_000, 40_000),
    ]


def test_operators_have_a_row_for_every_step():
    found = tables(training())["operator_steps"]
    assert found.detail
    assert found.rows == (
        ("MmBackward0", "1", 1, 20_000, 50_000),
        ("MmBackward0", "2", 1, 20_000, 50_000),
        ("aten::mm", "1", 1, 20_000, 30_000),
        ("aten::mm", "2", 1, 20_000, 30_000),
    )


def test_annotations_show_device_and_host_time():
    b = training()
    b.annotation("prefill", 10, 30)
    b.annotation("prefill", 210, 70)
    found = tables(b)["annotations"]
    assert found.detail
    assert found.rows == (("prefill", 2, 110_000, 3, 100_000, 50_000, 30_000, 70_000),)
    assert tables(training())["annotations"].rows == NotMeasured("no_annotations")


def test_an_annotation_begun_before_the_steps_has_no_host_time():
    b = TraceBuilder()
    b.annotation("decode", 0, 50)
    b.step(1, 10, 90)
    b.launch(20, 2, 30, 5)
    before = NotMeasured("launched_before")
    assert tables(b)["annotations"].rows == (("decode", before, 5_000, 1, before, None, None, None),)


def test_without_a_device_device_times_are_not_measured():
    found = tables(training(device=False))
    missing = NotMeasured("no_device_events")
    assert found["operators"].column("device_self_ns") == (missing, missing)
    assert set(found["phases"].column("device_ns")) == {missing}
    assert found["modules"].column("forward_self_ns") == (missing,)
    assert found["source_lines"].column("device_idle_ns") == (missing,)
    assert set(found["operator_steps"].column("device_self_ns")) == {missing}
    assert found["operator_steps"].column("host_self_ns") == (20_000,) * 4


def test_without_a_device_annotations_have_host_time_alone():
    b = training(device=False)
    b.annotation("prefill", 10, 30)
    missing = NotMeasured("no_device_events")
    assert tables(b)["annotations"].rows == (("prefill", 1, missing, missing, 30_000, 30_000, 30_000, 30_000),)


@pytest.mark.parametrize("key", ["operators", "operator_steps", "modules", "call_paths"])
@pytest.mark.parametrize(
    ("language", "of_device", "of_host"), [("en", "device time", "host time"), ("zh", "设备耗时", "Host 耗时")]
)
def test_a_table_says_which_time_it_is_ordered_by(key, language, of_device, of_host):
    formatter = Formatter(texts(language))
    there, missing = (tables(training(device=device))[key] for device in (True, False))
    assert of_device in formatter.title(there)
    assert of_host in formatter.title(missing)
    assert of_device not in formatter.title(missing)


@pytest.mark.parametrize("key", ["operators", "operator_steps", "modules", "call_paths"])
def test_without_a_device_its_columns_are_left_to_long_views(key):
    shown = {column.key for column in tables(training(device=False))[key].columns if not column.minor}
    assert "host_self_ns" in shown
    assert [name for name in shown if name.startswith(("device_", "forward_", "backward_"))] == []


@pytest.mark.parametrize("device", [True, False])
def test_every_word_has_a_text(device):
    words = texts()
    found = tables(training(device=device))
    assert set(TABLES) <= set(found)
    for key in TABLES:
        assert words.title(found[key])
        for index, column in enumerate(found[key].columns):
            assert words.meaning(found[key], column)
            rows = found[key].rows
            if column.kind == Kind.TERM and not isinstance(rows, NotMeasured):
                assert {row[index] for row in rows} <= set(words.terms)
