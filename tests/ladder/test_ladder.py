"""The ladder's first rungs, small, recorded while the test runs: the cause named at one is what the next removes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import traceanalyze
from tests.ladder.rungs import FAULTS, MEMORY, SPEED, switches
from traceanalyze.locales import texts
from traceanalyze.report.console import Style, render

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "ladder" / "train.py"
TINY = ["--layers", "1", "--width", "16", "--heads", "2", "--length", "32", "--vocabulary", "256"]
SMALL = ["--device", "cpu", "--threads", "1", "--steps", "8", "--merges", "60", *TINY]
IN_THE_LOOP = "in the training loop itself (num_workers=0)"
OPTIONS = ["--wait", "2", "--warmup", "1", "--active", "4"]


def run(command: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=120).stdout


def step_ms(*extra: str) -> float:
    """The median step without the profiler."""
    return json.loads(run([sys.executable, str(SCRIPT), *SMALL, *extra]).splitlines()[-1])["step_ms"]


@pytest.fixture(scope="module")
def torch_here() -> None:
    if os.environ.get("TRACEANALYZE_REQUIRE_TORCH") != "1":
        pytest.importorskip("torch", reason="torch is not installed")


def said(report: traceanalyze.Report) -> str:
    return " ".join(render(report, texts(), Style(width=80)).split())


def recorded(folder: Path, *extra: str) -> traceanalyze.Report:
    command = [sys.executable, "-m", "traceanalyze", "record", "-o", str(folder), *OPTIONS, "--", str(SCRIPT)]
    run([*command, *SMALL, *extra])
    return traceanalyze.analyze(folder)


@pytest.mark.usefixtures("torch_here")
def test_without_workers_the_loader_is_named_first_and_workers_remove_it(tmp_path: Path) -> None:
    below, above = recorded(tmp_path / "baseline"), recorded(tmp_path / "workers", "--workers", "2")
    (first, *_), rest = below.ranks[0].findings, above.ranks[0].findings
    left = sum(one.saving or 0 for one in rest if one.rule == "DAT101")
    alone = step_ms(), step_ms("--workers", "2")
    print(f"\nDAT101 saves {first.saving / 1e6:.1f} ms, with workers {left / 1e6:.1f} ms")
    print(f"step without the profiler: {alone[0]:.1f} ms, with workers {alone[1]:.1f} ms")
    assert len(below.analyses[0].steps.name) == 4
    assert first.rule == "DAT101"
    # How much workers gain depends on free cores; that the loop itself makes no batch any more does not.
    assert IN_THE_LOOP in said(below)
    assert IN_THE_LOOP not in said(above)


@pytest.mark.usefixtures("torch_here")
@pytest.mark.parametrize(
    "extra",
    [
        [*switches(SPEED, "sdpa"), "--workers", "0"],
        [*switches(MEMORY, "for_loop"), *(word for rung in FAULTS for word in rung.adds if word != "--leak")],
        ["--leak"],
    ],
    ids=["speed", "memory and faults", "leak"],
)
def test_the_switches_work_on_the_host(extra: list[str]) -> None:
    assert step_ms("--merges", "2", *extra) > 0


def test_a_rung_has_the_switches_of_all_below() -> None:
    assert switches(SPEED, "workers") == ["--batch", "16", "--workers", "4"]
    assert switches(MEMORY, "checkpointing")[-5:] == ["--batch", "8", "--accumulate", "2", "--checkpoint"]
