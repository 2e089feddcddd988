"""Rules of other distributions, installed beside the tool: they are found, explained and chosen like its own."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from tests.rules.make import STEP, kernel, program
from traceanalyze.api import analyze
from traceanalyze.cli.main import app
from traceanalyze.rules.registry import every_rule

MODULE = '''
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope
from traceanalyze.rules.rule import rule

OPTIONS = {"least_ms": (5.0, "our cluster")}


@rule("ACM101", "short-step", confidence=Confidence.LOW, needs="D", advice=(), options=OPTIONS)
def find(facts, options):
    """Steps are shorter than ours should be.

    What it finds
        Short steps.
    """
    if facts.step_time < options.number("least_ms") * 1e6:
        yield Finding(
            text=f"steps take {facts.step_time / 1e6:.0f} ms, raise the batch",
            evidence=(Evidence("time", facts.step_time, "DURATION"),),
            scope=Scope(ops=("train.py(1): main",)),
        )
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution as pip installs it."""
    site = tmp_path / "site"
    about = site / "acme_rules-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "acme_rules.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[traceanalyze.rules]\nacme = acme_rules\n")
    monkeypatch.syspath_prepend(str(site))
    every_rule.cache_clear()
    yield
    sys.modules.pop("acme_rules", None)
    every_rule.cache_clear()


def trace(folder):
    def body(b, at, number):
        kernel(b, at, STEP - 21)

    path = folder / "rank0.pt.trace.json"
    path.write_text(program(body).text())
    return str(path)


def test_a_rule_of_another_distribution_says_its_own_words(installed, tmp_path):
    path = trace(tmp_path)
    (found,) = [one for one in analyze(path).ranks[0].findings if one.rule == "ACM101"]
    assert found.text == "steps take 2 ms, raise the batch"
    shown = CliRunner().invoke(app, ["analyze", path, "-v"])
    assert shown.exit_code == 0
    assert "ACM101: steps take 2 ms, raise the batch" in shown.output
    assert "short-step" in shown.output


def test_it_is_explained_chosen_and_left_out_like_any_other(installed, tmp_path):
    path = trace(tmp_path)
    told = CliRunner().invoke(app, ["rule", "ACM101"])
    assert told.exit_code == 0
    assert "Steps are shorter than ours should be." in told.output
    assert "least_ms = 5.0" in told.output
    assert [one.rule for one in analyze(path, select=["short-step"]).ranks[0].findings] == ["ACM101"]
    assert "ACM101" not in [one.rule for one in analyze(path, ignore=["ACM"]).ranks[0].findings]


def test_without_the_distribution_there_is_no_such_rule():
    assert "ACM101" not in [rule.id for rule in every_rule()]
