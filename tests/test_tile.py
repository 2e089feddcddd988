"""Tiled traces of the benchmarks are valid: every copy of the events says what the original says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.benchmarks.tile import make
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.options import Options

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"


def _analysis(path: Path) -> RankAnalysis:
    (trace,) = traceanalyze.load(path).traces
    return analyze_trace(trace, Options())


@pytest.mark.parametrize("name", ["gpu_sync", "gpu_2021_layout"])
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_every_copy_is_the_original(tmp_path: Path, name: str, suffix: str) -> None:
    target = tmp_path / f"tiled{suffix}"
    make(SAMPLES / name / "trace.json.gz", 3_000_000, target)
    one, many = _analysis(SAMPLES / name / "trace.json.gz"), _analysis(target)
    copies = len(many.steps) // len(one.steps)
    assert copies > 2
    assert many.steps.time.tolist() == copies * one.steps.time.tolist()
    assert len(set(many.steps.name)) == len(many.steps)
    (first,), (all_of_them,) = (each.tables["launches"].records() for each in (one, many))
    assert (all_of_them.linked, all_of_them.unlinked) == (copies * first.linked, 0)
    assert isinstance(one.idle, IdleCauses)
    assert isinstance(many.idle, IdleCauses)
    assert many.idle.by_step.tolist() == copies * one.idle.by_step.tolist()
