"""OpenMetrics text, read back by the parser of Prometheus's own client; and what the page says of trackers."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from typer.testing import CliRunner

import traceanalyze
from tests.analyses.test_inference_window import serving
from tests.builder import TraceBuilder
from tests.needs import need
from traceanalyze.cli.app import app
from traceanalyze.locales import texts
from traceanalyze.report.openmetrics import render

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def read(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return {
        family.name: {tuple(sorted(each.labels.items())): each.value for each in family.samples}
        for family in text_string_to_metric_families(text)
    }


def of(path: Path) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return read(render([traceanalyze.analyze(path)], texts()))


def test_parts_of_the_step_are_gauges_in_seconds(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for number in range(4):
        trace.step(number, 1000 * number, 1000)
        trace.launch(1000 * number, 10, 1000 * number + 100, 700)
    found = of(trace.write(tmp_path / 'a "quoted\\ name.json'))
    parts = {dict(labels)["part"]: value for labels, value in found["traceanalyze_split_mean_seconds"].items()}
    assert (parts["compute"], parts["step"]) == (700e-6, 1e-3)
    (labels,) = found["traceanalyze_step_statistics_mean_seconds"]
    assert dict(labels)["run"] == 'a "quoted\\ name'
    assert list(found["traceanalyze_step_statistics_steps"].values()) == [4.0]


def test_findings_have_their_savings_and_those_without_one_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    report = traceanalyze.analyze(SAMPLES / "gpu_data_loading")
    loading, note = (next(one for one in report.findings if one.rule == rule) for rule in ("DAT101", "CAP107"))
    unpriced = dataclasses.replace(loading, rule="DAT102", saving=None)
    once = dataclasses.replace(unpriced, rule="DAT103", once=True)
    monkeypatch.setattr(type(report), "findings_in", lambda self, language: (loading, note, unpriced, once))
    found = read(render([report], texts()))
    every = {dict(labels)["rule"]: value for labels, value in found["traceanalyze_finding"].items()}
    assert every == dict.fromkeys(("DAT101", "CAP107", "DAT102", "DAT103"), 1.0)
    savings = found["traceanalyze_finding_saving_seconds"]
    assert {dict(labels)["rule"]: value for labels, value in savings.items()} == {"DAT101": loading.saving.ns / 1e9}
    why = [labels for labels in map(dict, found["traceanalyze_not_measured"]) if "rule" in labels]
    assert [(each["rule"], each["metric"], each["reason"]) for each in why] == [
        ("DAT102", "traceanalyze_finding_saving_seconds", "saving_not_replayed")
    ]


def test_what_was_not_measured_has_no_sample_but_a_reason(tmp_path: Path) -> None:
    found = of(serving().write(tmp_path / "server.json"))
    rates = {
        dict(labels)["phase"]: value
        for labels, value in found["traceanalyze_inference_phases_tokens_per_second"].items()
    }
    assert rates == {
        "inference_prefill": 24_000.0,
        "inference_decode": pytest.approx(21 / 0.009),
        "inference_mixed": 40 / 0.003,
    }
    missing = {
        (dict(each)["metric"], dict(each)["reason"])
        for each in of(SAMPLES / "gpu_data_loading")["traceanalyze_not_measured"]
    }
    assert ("traceanalyze_inference_phases", "no_inference_annotations") in missing


def test_a_run_of_several_ranks_is_written_by_its_ending(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["analyze", str(SAMPLES / "gpu_two_ranks"), "-o", str(tmp_path / "run.prom")])
    assert done.exit_code == 0
    found = read((tmp_path / "run.prom").read_text())
    assert {dict(labels)["rank"] for labels in found["traceanalyze_ranks_step_seconds"]} == {"0", "1"}


@pytest.mark.parametrize(("tracker", "block"), [("wandb", 1), ("mlflow", 2)])
def test_recipes_of_the_page_run(tmp_path: Path, tracker: str, block: int) -> None:
    need(tracker)
    blocks = re.findall(r"```python\n(.*?)```", (SAMPLES.parent / "docs" / "metrics.md").read_text(), re.DOTALL)
    script = f"import traceanalyze, {tracker}\n{blocks[0]}{blocks[block]}"
    (tmp_path / "log.py").write_text(script.replace('"run"', repr(str(SAMPLES / "gpu_data_loading"))))
    store = {"WANDB_MODE": "offline", "MLFLOW_TRACKING_URI": "file:./mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
    subprocess.run([sys.executable, "log.py"], cwd=tmp_path, env={**os.environ, **store}, check=True)
    assert list(tmp_path.glob("*/**/report*.html"))
