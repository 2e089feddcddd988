"""What snapshots tell about memory, as causes beside those that cost time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.causes.parts import in_order
from traceanalyze.causes.results import Cause
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.causes.parts import Trouble

SEVERITIES = {"critical": Severity.HIGH, "warn": Severity.MEDIUM, "info": Severity.INFO}
RULES = {
    "churn": "MEM101",
    "empty_cache": "MEM102",
    "leak": "MEM108",
    "fragmentation": "MEM104",
    "retry": "MEM103",
    "spike": "MEM114",
    "held_gradients": "MEM117",
    "activation_peak": "MEM107",
    "near_limit": "MEM109",
    "rounding": "MEM120",
    "growing_sizes": "MEM105",
    "oversized_blocks": "MEM106",
    "small_blocks": "MEM115",
}
"""What is found in a snapshot → the rule that finds the same in a trace with its snapshot."""
FAILED = "MEM112"


def rule_of(key: str) -> str:
    """Id of the rule that finds the same; empty where there is none."""
    return FAILED if key.startswith("oom") else RULES.get(key, "")


def memory_causes(troubles: Sequence[Trouble]) -> tuple[Cause, ...]:
    """One for each thing and source line, of whichever ranks; the largest amount is shown."""
    places: dict[tuple[str, str], list[Trouble]] = {}
    for one in troubles:
        places.setdefault((one.key, one.line), []).append(one)
    return tuple(_cause(found) for found in places.values())


def _cause(found: Sequence[Trouble]) -> Cause:
    worst = max(found, key=lambda one: (SEVERITIES[one.severity], one.amount or 0))
    return Cause(
        finding=None,
        severity=SEVERITIES[worst.severity],
        ranks=in_order(one.rank for one in found if one.rank),
        judged=len({one.place[0] for one in found}),
        recording=0,
        rank=worst.rank,
        trouble=worst,
    )


def without_repeats(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """Without the findings of rules that a snapshot tells better: the same thing, which costs no time, on its rank.

    A snapshot that does not tell its rank may be of any.
    """
    told = {
        (rule_of(one.trouble.key), rank) for one in causes if one.trouble is not None for rank in one.ranks or ("",)
    }
    return tuple(
        one
        for one in causes
        if one.finding is None
        or one.gain is not None
        or not any((one.finding.rule, rank) in told for rank in ("", *one.ranks))
    )
