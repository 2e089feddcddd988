"""pytest: the fixture `traceanalyze_gate` records a step and gates it against a baseline that lies beside the test.

Every pytest run where the package is installed imports this: it imports nothing itself.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from traceanalyze.report.model import GateReport

FOLDER = "traceanalyze_baselines"
"""Beside the file of the test; committed with it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    text = "write what traceanalyze_gate measures into its baselines instead of judging it"
    parser.getgroup("traceanalyze").addoption("--traceanalyze-update", action="store_true", help=text)


@pytest.fixture
def traceanalyze_gate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., "GateReport | None"]:
    """A function that fails the test where a step has become slower or bigger than its budget allows.

        def test_train_step(traceanalyze_gate):
            traceanalyze_gate(train_step)

    It is called with a function without arguments, which makes a step, and by name `runs` (3 recordings), `budget` (a
    TOML file, found as by `traceanalyze gate`), and options of `traceanalyze.record` (`wait` 2, `warmup` 1, `active`
    6). It returns the gate's report; None where `--traceanalyze-update` has the runs added to the baseline.
    """
    name = re.sub(r"[^\w.-]+", "_", f"{request.path.stem}.{request.node.name}")
    baseline = request.path.parent / FOLDER / f"{name}.json"

    def gated(
        step: Callable[[], object], *, runs: int = 3, budget: str | None = None, **options: Any
    ) -> "GateReport | None":
        from traceanalyze.errors import TraceAnalyzeError

        update = request.config.getoption("--traceanalyze-update")
        if not update and not baseline.exists():
            pytest.fail(f"{baseline}: there is no baseline; pytest --traceanalyze-update writes one", pytrace=False)
        # Not in `tmp_path`, which is the test's own; and a new one each time, as a test may gate two steps.
        folder = tmp_path_factory.mktemp("traceanalyze_gate")
        try:
            _record(step, folder, runs, {"wait": 2, "warmup": 1, "active": 6, **options})
            report = _judge(folder, baseline, budget, update=update)
        except TraceAnalyzeError as error:
            pytest.fail(str(error), pytrace=False)
        if report is not None and report.exit_code:
            pytest.fail(_told(report), pytrace=False)
        return report

    return gated


def _told(report: "GateReport") -> str:
    """The verdict, and which parts of the step changed."""
    from traceanalyze.locales import texts
    from traceanalyze.report.markdown import brief

    return brief([report], texts())


def _record(step: Callable[[], object], folder: Path, runs: int, options: dict[str, Any]) -> None:
    from traceanalyze.recording.context import record

    for number in range(runs):
        with record(folder / str(number), **options) as recording:
            while not recording.done:
                step()
                recording.step()


def _judge(runs: Path, baseline: Path, budget: str | None, *, update: bool) -> "GateReport | None":
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.gate import gate
    from traceanalyze.pipeline.gate import update as add_runs

    if not update:
        return gate(runs, baseline, budget=budget)
    baseline.parent.mkdir(exist_ok=True)
    add_runs(str(baseline), [str(runs)], Choices(), budget=budget, accept=True)
    return None
