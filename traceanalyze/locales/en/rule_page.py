"""What `traceanalyze rule` says around the document of a rule."""

from __future__ import annotations

MESSAGES = {
    "rule_facts": "Facts",
    "rule_facts_line": "confidence {confidence}; since {since}; on {platforms}",
    "rule_options": "Options (traceanalyze.toml, table rules.{slug})",
    "rule_advice": "Advice",
}
