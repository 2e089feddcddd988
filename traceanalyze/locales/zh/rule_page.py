"""What `traceanalyze rule` says around the document of a rule."""

from __future__ import annotations

MESSAGES = {
    "rule_facts": "概况",
    "rule_facts_line": "置信度{confidence}；自 {since} 起；适用于 {platforms}",
    "rule_options": "选项（traceanalyze.toml 的 rules.{slug} 表）",
    "rule_advice": "建议",
}
