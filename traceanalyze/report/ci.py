"""The gate for CI systems: annotations on a pull request of GitHub, JUnit XML, SARIF."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Table, Value
from traceanalyze.regression.metrics import Level
from traceanalyze.regression.results import BAD, GateResult, MetricResult, Verdict
from traceanalyze.regression.samples import Place, distinct
from traceanalyze.regression.verdict import fails_gate
from traceanalyze.report.console import Style, render_all
from traceanalyze.report.contents.gate_metrics import CHANGE, budget, change, reason, verdict
from traceanalyze.report.contents.words import PAGE, Setting, said
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import GateReport, formatter_over
from traceanalyze.report.view import View
from traceanalyze.rules.registry import every_rule

SHOWN, PLACES = 9, 3
"""GitHub shows only ten annotations of a step; of so many the place of a finding may be one."""


def github(reports: Sequence[GateReport], texts: Texts) -> str:
    """Workflow commands of GitHub Actions: the worst metrics, lines of new findings, and how many more there are."""
    say, result, formatter = texts.messages, reports[0].result, formatter_over(reports[0], texts)
    worst = [each for each in result.metrics if each.verdict in BAD]
    grown = {rule for rule, (before, after) in result.findings.items() if after > before}
    places = [place for place in _places(result) if place.finding.rule in grown]
    shown = worst[: SHOWN - min(len(places), PLACES)]
    lines = []
    for each in shown:
        error = each.rule.level == Level.ERROR and each.verdict == Verdict.REGRESSION
        changed = formatter.cell(CHANGE, change(each), None)
        why = formatter.message(reason(each))
        plain = each.verdict == Verdict.MISSING or each.reason == "varies"
        key = "gate_annotation_plain" if plain else "gate_annotation"
        text = say[key].format(metric=each.name, change=changed, budget=budget(each), reason=why)
        title = _property(f"traceanalyze gate: {_verdict(each, texts)}")
        lines.append(f"::{'error' if error else 'warning'} title={title}::{_message(text)}")
    for place in places[: SHOWN - len(shown)]:
        where = f"file={_property(place.file)},line={max(place.line, 1)}"
        title = _property(f"{place.finding.rule} {_title(place.finding.rule, texts)}")
        lines.append(f"::warning {where},title={title}::{_message(_in_words(place, texts))}")
    left_out = len(worst) + len(places) - len(lines)
    if left_out:
        lines.append(f"::warning::{_message(say['gate_annotations_more'].format(count=left_out))}")
    return "".join(f"{line}\n" for line in lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


_INVALID = regex("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(reports: Sequence[GateReport], texts: Texts) -> str:
    """A test suite, which GitLab, Jenkins and Azure show: failures are what fails the gate.

    Skipped is what could not be evaluated, or only warns.
    """
    result, formatter = reports[0].result, formatter_over(reports[0], texts)
    tables = [one for key, one in reports[0].tables.items() if key in {"gate_metrics", "gate_not_judged"}]
    numbers = {row[0]: _numbers(table, row, formatter) for table in tables for row in table.known_rows}
    kinds = [_outcome(each, result) for each in result.metrics]
    failures, skipped = kinds.count("failure"), kinds.count("skipped")
    counts = f'tests="{len(kinds)}" failures="{failures}" errors="0" skipped="{skipped}" time="0"'
    told = (numbers.get(each.name, "") for each in result.metrics)
    body = "".join(map(partial(_case, formatter), result.metrics, kinds, told))
    page = _text(render_all(reports, texts, Style(width=100), View(whole=True)))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="traceanalyze" {counts}>\n'
        f'<testsuite name="gate" {counts}>\n{body}<system-out>{page}</system-out>\n</testsuite>\n</testsuites>\n'
    )


def _outcome(each: MetricResult, result: GateResult) -> str:
    doubt = each.verdict == Verdict.INCONCLUSIVE and each.rule.level == Level.ERROR
    strict = result.strict or result.budget.settings.on_inconclusive == "fail"
    if fails_gate(each, result.budget, strict=result.strict) or (doubt and strict):
        return "failure"
    return "skipped" if each.verdict in BAD or each.verdict == Verdict.NOT_MEASURED else ""


def _verdict(each: MetricResult, texts: Texts) -> str:
    return texts.terms[verdict(each)]


def _numbers(table: Table, row: Sequence[Value], formatter: Formatter) -> str:
    """The cells of a metric in words."""
    cells = ((column, formatter.cell(column, value, None)) for column, value in zip(table.columns, row, strict=True))
    return formatter.texts.messages["list_mark"].join(
        f"{formatter.texts.heading(table, column)} {cell}" for column, cell in cells if cell and not column.machine
    )


def _case(formatter: Formatter, each: MetricResult, kind: str, numbers: str) -> str:
    message = _attribute(f"{_verdict(each, formatter.texts)}: {formatter.message(reason(each))}")
    inside = {
        "failure": f'<failure message={message} type="{each.verdict}">{_text(numbers)}</failure>',
        "skipped": f"<skipped message={message}/>",
    }.get(kind, "")
    head = f'<testcase classname="gate" name={_attribute(each.name)} time="0">'
    return f"{head}{inside}<system-out>{_text(numbers)}</system-out></testcase>\n"


def _text(text: str) -> str:
    return escape(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))


def _attribute(text: str) -> str:
    return quoteattr(_INVALID.sub("\N{REPLACEMENT CHARACTER}", text))


MOST_RESULTS = 5000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"high": "error", "medium": "warning", "low": "warning", "note": "note"}
_PROPERTIES = frozenset({"saving", "cost_ns", "share", "severity", "confidence", "once"})


def sarif(reports: Sequence[GateReport], texts: Texts) -> str:
    """Findings of the candidate that have a source line, for code scanning; they never change the exit code."""
    result = reports[0].result
    places = _places(result)
    rules = sorted({(place.finding.rule, place.finding.slug) for place in places})
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "traceanalyze",
                        "version": result.tool_version,
                        "informationUri": PAGE.format(rule=""),
                        "rules": [_rule(rule, slug, texts) for rule, slug in rules],
                    }
                },
                "results": [_result(place, texts) for place in places[:MOST_RESULTS]],
                "properties": {"resultsLeftOut": max(len(places) - MOST_RESULTS, 0)},
            }
        ],
    }
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _rule(rule: str, slug: str, texts: Texts) -> dict[str, Any]:
    return {
        "id": rule,
        "name": slug,
        "shortDescription": {"text": _title(rule, texts)},
        "helpUri": PAGE.format(rule=rule.lower()),
    }


def _places(result: GateResult) -> tuple[Place, ...]:
    return distinct(place for run in result.candidate.runs for place in run.places)


def _in_words(place: Place, texts: Texts) -> str:
    (one,) = said((place.finding,), Setting(place.step, place.platform))
    told = one.in_words(texts)
    return " ".join(filter(None, (f"{told.title}:", told.sentence, told.price, *(f"→ {each}" for each in told.advice))))


def _result(place: Place, texts: Texts) -> dict[str, Any]:
    (one,) = said((place.finding,), Setting(place.step, place.platform))
    told = one.in_words(texts)
    where = {"artifactLocation": {"uri": place.file.replace("\\", "/")}, "region": {"startLine": max(place.line, 1)}}
    mark = hashlib.sha256(f"{told.rule} {place.file} {place.line}".encode()).hexdigest()[:32]
    return {
        "ruleId": told.rule,
        "level": _LEVELS[told.severity],
        "message": {"text": _in_words(place, texts)},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"traceanalyze/v1": mark},
        "properties": {key: value for key, value in told.as_json().items() if key in _PROPERTIES},
    }


def _title(rule: str, texts: Texts) -> str:
    every_rule()  # What rules say is known once they are loaded.
    return texts.terms.get(f"rule_{rule}", rule)
