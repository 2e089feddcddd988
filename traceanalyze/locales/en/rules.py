"""Texts around what rules say; their own stand beside their code."""

from __future__ import annotations

from traceanalyze.locales.en import named

TERMS = {
    **named("severity_", "high medium low"),
    **named("confidence_", "high medium low"),
    "severity_info": "note",
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

MESSAGES = {
    "rule_facts": "Facts",
    "rule_facts_line": "confidence {confidence}; since {since}; on {platforms}",
    "rule_options": "Options (traceanalyze.toml, table rules.{slug})",
    "rule_advice": "Advice",
    "rule_definitions": "The definitions are in English.",
}
