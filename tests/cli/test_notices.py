"""Remarks on the installation."""

from pathlib import Path

from typer.testing import CliRunner

from traceanalyze.cli.app import app
from traceanalyze.readers.scan import native

SAMPLE = str(Path(__file__).parents[2] / "sample_traces" / "gpu_healthy")


def test_a_missing_native_scanner_is_said_once_on_stderr(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    result = CliRunner().invoke(app, ["analyze", SAMPLE])
    assert result.exit_code == 0
    assert result.stderr.count("native scanner was not built") == 1
    assert "native scanner" not in result.stdout


def test_quiet_says_nothing_of_it(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    assert CliRunner().invoke(app, ["analyze", "-q", SAMPLE]).stderr == ""
