"""What users see of the critical path."""

from __future__ import annotations

from tests.analyses.test_critical_path import two_streams
from tests.report.make import MS, analysis
from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents import build_report
from traceanalyze.report.view import View


def _report(found=None):
    return build_report("run", [found or analysis(times=(100.0, 300.0))], version="0")


def test_parts_are_means_of_the_steps_and_sum_to_the_step():
    table = _report().tables["critical_path"]
    rows = {row[0]: row[1:3] for row in table.rows if row[3]}
    assert rows == {"compute": (120 * MS, 0.6), "host_op": (80 * MS, 0.4)}
    assert table.total[:3] == ("step", 200 * MS, 1.0)


def test_places_are_sums_of_the_steps():
    table = _report().tables["critical_path_work"]
    assert table.column("name") == (None, "aten::conv2d")
    assert table.column("time_ns") == (240 * MS, 160 * MS)
    assert table.column("share") == (0.6, 0.4)


def test_a_refusal_is_said_with_its_reason_and_what_to_record():
    page = render(_report(two_streams(recorded=False).analyze()), texts(), Style(width=200))
    assert "Critical path: several streams have work, and which of them waited for which was not recorded" in page
    assert "torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True)" in page


def test_the_tables_belong_to_the_long_view():
    views = (View(), View(detail=Detail.VERBOSE))
    short, long = (render(_report(), texts(), Style(width=120), view) for view in views)
    assert "Critical path" not in short
    assert "Critical path of the step (mean of 2 complete steps)" in long
