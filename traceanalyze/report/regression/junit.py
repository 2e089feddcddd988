"""The gate as a test suite in JUnit XML, which GitLab, Jenkins and Azure show: one test case a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from traceanalyze.model.patterns import regex
from traceanalyze.regression.definitions import Level
from traceanalyze.regression.results import Verdict
from traceanalyze.report.console.style import Style
from traceanalyze.report.regression import words
from traceanalyze.report.regression.console import render as render_console

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.regression.results import GateResult, MetricResult

_INVALID = regex("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(result: GateResult, texts: Texts) -> str:
    """The document: failures are what fails the gate, skipped is what could not be judged or only warns."""
    cases = [(each, _outcome(each, result)) for each in result.metrics]
    failures = sum(kind == "failure" for _, kind in cases)
    skipped = sum(kind == "skipped" for _, kind in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'
    body = "".join(_case(each, kind, texts) for each, kind in cases)
    table = _text(render_console(result, texts, Style(width=100)))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="traceanalyze" {counts}>\n'
        f'<testsuite name="gate" {counts}>\n{body}<system-out>{table}</system-out>\n</testsuite>\n</testsuites>\n'
    )


def _outcome(each: MetricResult, result: GateResult) -> str:
    settings, error = result.budget.settings, each.rule.level == Level.ERROR
    fails = {
        Verdict.REGRESSION: error or result.strict,
        Verdict.IMPROVEMENT: error and settings.on_improvement == "fail",
        Verdict.MISSING: error and settings.on_missing == "fail",
        Verdict.INCONCLUSIVE: error and (result.strict or settings.on_inconclusive == "fail"),
    }
    if fails.get(each.verdict):
        return "failure"
    skips = {Verdict.REGRESSION, Verdict.MISSING, Verdict.INCONCLUSIVE, Verdict.NOT_MEASURED}
    return "skipped" if each.verdict in skips else ""


def _case(each: MetricResult, kind: str, texts: Texts) -> str:
    line = words.line(each, texts)
    start = f'<testcase classname="gate" name={_attribute(each.name)} time="0"'
    message = f"{words.verdict(each, texts)}: {words.reason(each, texts)}"
    told = ", ".join(f"{name} {cell}" for name, cell in zip(words.COLUMNS, line.cells(), strict=True) if cell)
    out = f"<system-out>{_text(told)}</system-out>"
    if kind == "failure":
        inside = f'<failure message={_attribute(message)} type="{each.verdict}">{_text(told)}</failure>'
        return f"{start}>{inside}{out}</testcase>\n"
    if kind == "skipped":
        return f"{start}><skipped message={_attribute(message)}/>{out}</testcase>\n"
    return f"{start}>{out}</testcase>\n"


def _text(text: str) -> str:
    return escape(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))


def _attribute(text: str) -> str:
    return quoteattr(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))
