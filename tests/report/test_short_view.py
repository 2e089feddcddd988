"""A page made of what a short view needs is that of everything, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from traceanalyze.locales import texts
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, reports
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.view import View

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
NAMES = sorted(
    {str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.json.gz") if "_ascend_pt" not in str(path)}
    | {str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*_ascend_pt")}
)
SHARED = ("kineto/tracelens/inference", "kineto/hta/critical_path", "kineto/param", "ascend/msinsight_2rank_torch")


def pages(path: Path, detail: Detail, *, whole: bool = False) -> tuple[str, str]:
    """The short page, or one screen, of what was analysed in this detail, and the tables behind it."""
    found = reports([str(path)], Choices(detail=detail))
    shown = {table.key for report in found for rank in report.ranks for table in rank.tables}
    return render_all(found, texts(), Style(width=100), View(whole=whole)), " ".join(sorted(shown))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_of_samples(name, whole):
    short, few = pages(SAMPLES / name, Detail.NORMAL, whole=whole)
    full, many = pages(SAMPLES / name, Detail.VERBOSE, whole=whole)
    assert short == full
    assert len(few) < len(many)


@pytest.mark.parametrize("name", SHARED)
def test_of_real_traces(shared_traces, name):
    short, full = (pages(shared_traces / name, each, whole=True)[0] for each in (Detail.NORMAL, Detail.VERBOSE))
    assert short == full
