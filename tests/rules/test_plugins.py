"""Rules of other distributions, installed beside the tool: they are found, explained and chosen like its own."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.plugin_site import installed as installed_with
from tests.rules.make import STEP, kernel, program
from traceanalyze import plugins
from traceanalyze.cli.app import app
from traceanalyze.pipeline import analyze
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
            evidence=(Evidence("time", facts.step_time, "DURATION"), Evidence("promised pace", 3, "COUNT")),
            scope=Scope(ops=("train.py(1): main",)),
        )
'''


@pytest.fixture
def installed(tmp_path):
    """A distribution as pip installs it."""
    with installed_with(tmp_path, {plugins.RULES: {"acme": "acme_rules"}}, {"acme_rules": MODULE}):
        yield


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
    assert "ACM101  promised pace" in shown.output


def test_it_is_explained_chosen_and_left_out_like_any_other(installed, tmp_path):
    path = trace(tmp_path)
    told = CliRunner().invoke(app, ["rule", "ACM101"])
    assert told.exit_code == 0
    assert "Steps are shorter than ours should be." in told.output
    assert "least_ms = 5.0" in told.output
    assert "Advice" not in told.output, "it gives none"
    assert (
        "Steps are shorter than ours should be." in CliRunner().invoke(app, ["rule", "ACM101", "--lang", "zh"]).output
    )
    assert [one.rule for one in analyze(path, select=["short-step"]).ranks[0].findings] == ["ACM101"]
    assert "ACM101" not in [one.rule for one in analyze(path, ignore=["ACM"]).ranks[0].findings]


def test_it_may_read_tables_that_the_page_does_not_show(tmp_path):
    looking = MODULE.replace(
        "    if facts.step_time", "    assert 'call_paths' in facts.analysis.tables\n    if facts.step_time"
    )
    with installed_with(tmp_path, {plugins.RULES: {"acme": "acme_looking"}}, {"acme_looking": looking}):
        shown = CliRunner().invoke(app, ["analyze", trace(tmp_path), "--all"])
    assert "ACM101: steps take 2 ms, raise the batch" in shown.output


def test_a_rule_that_fails_only_could_not_be_judged(tmp_path):
    broken = MODULE.replace("    if facts.step_time", "    facts.lost\n    if facts.step_time")
    with installed_with(tmp_path, {plugins.RULES: {"acme": "acme_broken"}}, {"acme_broken": broken}):
        shown = CliRunner().invoke(app, ["analyze", trace(tmp_path), "-v"])
        assert shown.exit_code == 0
        told = " ".join(shown.output.split())
        assert "ACM101 a plug-in's rule failed" in told
        assert (
            "the plug-in acme (traceanalyze.rules) failed, so what it adds is missing: ACM101: AttributeError:" in told
        )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Finding()", "ValueError: a Finding of a plug-in has a text"),
        ("3", "TypeError: int is neither a Finding nor NotApplicable"),
        ("NotApplicable('because')", "ValueError: there is no reason because"),
        ("Finding(text='x', advice=('mine',))", "ValueError: there is no advice mine; a plug-in's own belongs into"),
        ("Finding(text='x', saving='much')", "TypeError: saving may not be str"),
        ("Finding(text='x', severity='high')", "TypeError: severity may not be str"),
        ("Finding(text='x', scope=Scope(ops=5))", "TypeError: evidence or scope is not of the types"),
        ("Finding(text='x', intervals=[1, 2])", "TypeError: intervals are no (n, 2) array of int64"),
        ("Finding(text='x', evidence=(1,))", "TypeError: evidence or scope is not of the types"),
    ],
)
def test_what_cannot_be_told_is_not(said, why, tmp_path):
    module = MODULE.replace("Evidence, Finding,", "Evidence, Finding, NotApplicable,")
    module = module.replace("    if facts", f"    yield {said}\n    if facts")
    with installed_with(tmp_path, {plugins.RULES: {"acme": "acme_odd"}}, {"acme_odd": module}):
        report = analyze(trace(tmp_path))
        assert [one.rule for one in report.ranks[0].findings if one.rule == "ACM101"] == []
        (told,) = plugins.faults(plugins.RULES)
    assert told.error.startswith(f"ACM101: {why}")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (MODULE.replace("ACM101", "DAT101"), "ValueError: two rules are called DAT101 or short-step"),
        (MODULE.replace("short-step", "loader-wait"), "ValueError: two rules are called ACM101 or loader-wait"),
        ("THRESHOLD = 3", "ValueError: acme_other has no rule"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (
            MODULE.replace("advice=()", "advice=('mine',)"),
            "ValueError: there is no advice mine; a plug-in's own belongs ",
        ),
    ],
)
def test_a_distribution_that_cannot_be_used_is_told_and_the_others_stay(module, why, tmp_path):
    entries = {plugins.RULES: {"acme": "acme_other", "zeta": "acme_fine"}}
    modules = {"acme_other": module, "acme_fine": MODULE.replace("ACM101", "ZET101").replace("short", "long")}
    with installed_with(tmp_path, entries, modules):
        assert {"DAT101", "ZET101"} <= {each.id for each in every_rule()}
        (told,) = plugins.faults(plugins.RULES)
        assert told.name == "acme"
        assert told.error.startswith(why)
        listed = CliRunner().invoke(app, ["rule", "--all"])
        assert f"note: the plug-in acme (traceanalyze.rules) failed, so what it adds is missing: {why}" in listed.stderr
        assert "ZET101" in listed.stdout


def test_without_the_distribution_there_is_no_such_rule():
    assert "ACM101" not in [rule.id for rule in every_rule()]
