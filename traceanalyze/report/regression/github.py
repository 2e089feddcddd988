"""Annotations on a pull request: workflow commands of GitHub Actions, of which only ten per step are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.regression.definitions import Level
from traceanalyze.regression.results import Verdict
from traceanalyze.report.regression import words

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.regression.results import GateResult

SHOWN = 9
_WORTH = frozenset({Verdict.REGRESSION, Verdict.MISSING, Verdict.INCONCLUSIVE})


def render(result: GateResult, texts: Texts) -> str:
    """One line each for the worst metrics, and one that counts the others."""
    say = texts.messages
    worst = [each for each in result.metrics if each.verdict in _WORTH]
    lines = []
    for each in worst[:SHOWN]:
        error = each.rule.level == Level.ERROR and each.verdict == Verdict.REGRESSION
        text = say["gate_annotation"].format(
            metric=each.name, change=words.change(each), budget=words.budget(each), reason=words.reason(each, texts)
        )
        title = _property(f"traceanalyze gate: {words.verdict(each, texts)}")
        lines.append(f"::{'error' if error else 'warning'} title={title}::{_message(text)}")
    if len(worst) > SHOWN:
        lines.append(f"::warning::{_message(say['gate_annotations_more'].format(count=len(worst) - SHOWN))}")
    return "".join(f"{line}\n" for line in lines)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
