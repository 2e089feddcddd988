"""The ladder's first rungs, small, recorded while the test runs: the cause named at one is what the next removes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.ladder.rungs import FAULTS, MEMORY, SPEED, switches
from traceanalyze.locales import texts
from traceanalyze.report.console import Style, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.torch_python import TorchPython

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "ladder" / "train.py"
TINY = ["--layers", "1", "--width", "16", "--heads", "2", "--length", "32", "--vocabulary", "256"]
SMALL = ["--device", "cpu", "--threads", "1", "--steps", "8", "--merges", "60", *TINY]
IN_THE_LOOP = "in the training loop itself (num_workers=0)"
OPTIONS = ["--wait", "2", "--warmup", "1", "--active", "4"]


@pytest.fixture
def step_ms(torch_python: TorchPython, tmp_path: Path) -> Callable[..., float]:
    """The median step without the profiler."""

    def run(*extra: str) -> float:
        done = torch_python.run([str(SCRIPT), *SMALL, *extra], tmp_path, dict(os.environ))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])["step_ms"]

    return run


@pytest.fixture
def recorded(torch_python: TorchPython, tmp_path: Path) -> Callable[..., traceanalyze.Report]:
    """The script with switches as it is recorded."""

    def run(name: str, *extra: str) -> traceanalyze.Report:
        done = torch_python.record(["-o", name, *OPTIONS, "--", str(SCRIPT), *SMALL, *extra], tmp_path)
        assert done.returncode == 0, done.stderr
        return traceanalyze.analyze(tmp_path / name)

    return run


def said(report: traceanalyze.Report) -> str:
    return " ".join(render(report, texts(), Style(width=80)).split())


def test_without_workers_the_loader_is_named_first_and_workers_remove_it(
    recorded: Callable[..., traceanalyze.Report], step_ms: Callable[..., float]
) -> None:
    below, above = recorded("baseline"), recorded("workers", "--workers", "2")
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


@pytest.mark.parametrize(
    "extra",
    [
        [*switches(SPEED, "sdpa"), "--workers", "0"],
        [*switches(MEMORY, "for_loop"), *(word for rung in FAULTS for word in rung.adds if word != "--leak")],
        ["--leak"],
    ],
    ids=["speed", "memory and faults", "leak"],
)
def test_the_switches_work_on_the_host(step_ms: Callable[..., float], extra: list[str]) -> None:
    assert step_ms("--merges", "2", *extra) > 0


def test_a_rung_has_the_switches_of_all_below() -> None:
    assert switches(SPEED, "workers") == ["--batch", "16", "--workers", "4"]
    assert switches(MEMORY, "checkpointing")[-5:] == ["--batch", "8", "--accumulate", "2", "--checkpoint"]
