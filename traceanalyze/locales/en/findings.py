"""Texts around what rules say; their own stand beside their code."""

from __future__ import annotations

TABLES = {
    "findings": "Findings",
    "capture_findings": "Findings on the recording",
    "finding_evidence": "What the findings rest on",
    "rules_not_judged": "Rules that could not be judged",
}

COLUMNS = {
    "rule_id": "rule",
    "finding": "finding",
    "saving_ns": "saving",
    "bound_ns": "at most",
    "confidence": "confidence",
    "where": "where",
    "duration_ns": "time",
    "figure": "number",
    "text": "text",
}

COLUMN_MEANINGS = {
    "rule_id": "Id of the rule; `traceanalyze rule ID` explains it",
    "findings.severity": (
        "By its share of the step: high from 20 %, medium from 5 %; of those without a saving by the rule"
    ),
    "findings.finding": "What was found",
    "findings.saving_ns": "Estimate of the time per step without it; different findings save different time",
    "findings.share": "Saving over the mean step",
    "findings.count": "Instances in the analysed steps",
    "capture_findings.severity": "How far it touches the numbers",
    "capture_findings.finding": "What was found",
    "capture_findings.saving_ns": "None: the recording costs the program nothing",
    "capture_findings.share": "None",
    "capture_findings.count": "Instances",
    "bound_ns": "What it can save at most, per step",
    "confidence": "How safely the recording alone proves it",
    "where": "Operator, call, kernel or source line",
    "finding_evidence.evidence": "What was measured",
    "finding_evidence.duration_ns": "Its value, where it is a time",
    "finding_evidence.share": "Its value, where it is a share",
    "finding_evidence.figure": "Its value, where it is a number",
    "finding_evidence.bytes": "Its value, where it is a size",
    "text": "Its value, where it is a name",
    "finding_evidence.start_ns": "Where to look in the trace: begin",
    "finding_evidence.end_ns": "Where to look in the trace: end",
    "finding_evidence.source_line": "Line of the program",
    "rules_not_judged.finding": "What the rule finds",
    "rules_not_judged.saving_ns": "Not measured, with the reason",
}

TERMS = {
    "severity_high": "high",
    "severity_medium": "medium",
    "severity_low": "low",
    "severity_info": "note",
    "confidence_high": "high",
    "confidence_medium": "medium",
    "confidence_low": "low",
}

REASONS = {
    "no_snapshot": "needs a snapshot of the allocator",
    "no_environment": "the profile does not tell the settings of the program",
    "unknown_capacity": "the profile does not say how much memory the device has",
    "no_other_ranks": "needs the recordings of the other ranks",
    "no_first_step": "needs a recording that begins with the first step of the program",
    "no_kernel_shapes": "not all ranks have kernels that run often and tell their shapes or launch configuration",
    "no_machines": "the recordings do not tell which machine each rank ran on",
    "unknown_links": "the bandwidth of these links is not known, and there are no other groups to compare with",
}

MESSAGES = {"finding_other": "{rule}: {text}"}
