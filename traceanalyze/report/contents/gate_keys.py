"""What the JSON of the gate had at its top before it had tables: kept for one release, then this module goes."""

from collections.abc import Sequence
from typing import Any

from traceanalyze.model.table import Message
from traceanalyze.regression.explain import WhyRow
from traceanalyze.regression.results import GateResult, MetricResult, SideSummary

SCHEMA_VERSION = 1


def former_keys(result: GateResult, headline: Message, reasons: Sequence[Message]) -> dict[str, Any]:
    """Plain values, and messages for texts. Times are in ns, `_ratio` and `change` are fractions of 1."""
    why = result.why
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": str(result.overall),
        "exit_code": result.exit_code,
        "text": headline,
        "budget": result.budget.source or None,
        "baseline": _side(result.baseline),
        "candidate": _side(result.candidate),
        "metrics": [_metric(each, text) for each, text in zip(result.metrics, reasons, strict=True)],
        "why": None
        if why is None
        else {
            "baseline_ns": why.baseline,
            "candidate_ns": why.candidate,
            "parts": list(map(_row, why.parts)),
            "reasons": list(map(_row, why.reasons)),
            "kernels": list(map(_row, why.kernels)),
        },
        "findings": {rule: {"baseline": old, "candidate": new} for rule, (old, new) in result.findings.items()},
        "environment_differences": [
            {"key": each.key, "baseline": list(each.baseline), "candidate": list(each.candidate)}
            for each in result.differences
        ],
        "waived": list(result.waived),
        "workload_similarity": result.similarity,
        "notes": [{"key": key, "values": dict(values)} for key, values in result.notes],
    }


def _side(side: SideSummary) -> dict[str, Any]:
    return {
        "label": side.label,
        "runs": [
            {
                "id": run.id,
                "name": run.name,
                "time": run.time or None,
                "commit": run.commit or None,
                "ranks": list(run.ranks),
                "usable_steps": run.usable_steps,
                "environment": dict(run.environment),
            }
            for run in side.runs
        ],
    }


def _metric(each: MetricResult, reason: Message) -> dict[str, Any]:
    rule, found = each.rule, each.statistics
    return {
        "metric": each.name,
        "kind": str(rule.metric.kind),
        "unit": rule.metric.unit,
        "better": "lower" if rule.metric.lower_is_better else "higher",
        "level": str(rule.level),
        "verdict": str(each.verdict),
        "reason": each.reason,
        "text": reason,
        "baseline": each.baseline,
        "candidate": each.candidate,
        "difference": each.difference,
        "change": each.change,
        "baseline_samples": list(each.baseline_runs),
        "candidate_samples": list(each.candidate_runs),
        "baseline_range": None if each.baseline_range is None else list(each.baseline_range),
        "candidate_range": None if each.candidate_range is None else list(each.candidate_range),
        "budget": {"value": rule.budget.value, "relative": rule.budget.relative},
        "min_effect": each.floor,
        "max": rule.highest,
        "min": rule.lowest,
        "statistics": None
        if found is None
        else {
            "e": found.effect,
            "h": found.half_width,
            "p": found.p,
            "p_holm": found.p_holm,
            "T": found.threshold,
            "df": found.df,
            "noise_floor": found.noise_floor,
            "significant": found.significant,
            "runs_needed": found.runs_needed,
            "assumed": found.assumed,
        },
        "notes": [{"key": key, "value": value} for key, value in each.notes],
    }


def _row(row: WhyRow) -> dict[str, Any]:
    return {
        "part": row.part or None,
        "what": row.what or None,
        "name": row.name,
        "baseline_ns": row.baseline,
        "candidate_ns": row.candidate,
        "diff_ns": row.change,
        "baseline_count": row.baseline_count,
        "candidate_count": row.candidate_count,
    }
