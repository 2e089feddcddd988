"""Remarks on the installation."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import traceanalyze
from traceanalyze.cli.app import app
from traceanalyze.readers.scan import native, warn_if_slow

SAMPLE = str(Path(__file__).parents[2] / "sample_traces" / "gpu_healthy")


@pytest.mark.parametrize(
    "command",
    [
        ["analyze", SAMPLE],
        ["compare", SAMPLE, SAMPLE],
        ["memory", f"{SAMPLE}/../memory/leak"],
        ["postmortem", SAMPLE],
        ["whatif", SAMPLE, "--without", "memory_ops"],
        ["baseline", "update", "baseline.json", SAMPLE],
    ],
    ids=lambda command: command[0],
)
def test_a_missing_native_scanner_is_said_once_on_stderr(command, monkeypatch, tmp_path):
    monkeypatch.setattr(native, "available", lambda: False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    assert result.stderr.count("note: the native scanner was not built, so reading is far slower") == 1
    assert "native scanner" not in result.stdout


def test_it_is_said_in_the_language_of_the_command(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    said = CliRunner().invoke(app, ["analyze", SAMPLE, "--lang", "zh"]).stderr
    assert "原生扫描器" in said
    assert "not built" not in said


def test_quiet_says_nothing_of_it(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    assert CliRunner().invoke(app, ["analyze", "-q", SAMPLE]).stderr == ""


def test_functions_warn_once_of_a_missing_scanner(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    warn_if_slow.cache_clear()
    with pytest.warns(RuntimeWarning, match="native scanner was not built") as warned:
        assert all(traceanalyze.analyze(path).tables for path in (SAMPLE, SAMPLE))
    warn_if_slow.cache_clear()
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("more", [[], ["-q"]])
def test_convert_says_it_once_or_not_at_all(more, monkeypatch, tmp_path):
    monkeypatch.setattr(native, "available", lambda: False)
    warn_if_slow.cache_clear()
    result = CliRunner().invoke(app, ["convert", SAMPLE, "--annotate", str(tmp_path / "a.json"), *more])
    warn_if_slow.cache_clear()
    assert result.exit_code == 0
    assert result.stderr.count("native scanner was not built") == (not more)
