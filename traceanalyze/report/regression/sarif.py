"""Findings that have a source line, in SARIF, for code scanning; they never change the exit code."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from traceanalyze.rules.registry import every_rule

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.regression.results import GateResult
    from traceanalyze.regression.samples import Place

MOST_RESULTS = 5000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "https://pypi.org/project/traceanalyze/#{rule}"


def render(result: GateResult, texts: Texts) -> str:
    """One SARIF run with the findings of the candidate."""
    places = list(dict.fromkeys(place for run in result.candidate.runs for place in run.places))
    rules = sorted({(place.rule, place.slug) for place in places})
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "traceanalyze",
                        "version": result.tool_version,
                        "informationUri": _HELP.format(rule=""),
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
        "helpUri": _HELP.format(rule=rule.lower()),
    }


def _result(place: Place, texts: Texts) -> dict[str, Any]:
    where = {
        "artifactLocation": {"uri": place.file.replace("\\", "/")},
        "region": {"startLine": max(place.line, 1)},
    }
    mark = hashlib.sha256(f"{place.rule} {place.file} {place.line}".encode()).hexdigest()[:32]
    return {
        "ruleId": place.rule,
        "level": "error" if place.severe else "warning",
        "message": {"text": _title(place.rule, texts)},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"traceanalyze/v1": mark},
    }


def _title(rule: str, texts: Texts) -> str:
    every_rule()  # What rules say is known once they are loaded.
    return texts.terms.get(f"rule_{rule}", rule)
