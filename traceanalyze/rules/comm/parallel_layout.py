from typing import TYPE_CHECKING

from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    NotApplicable,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster, MatchedGroup

_INSIDE = frozenset({"tensor", "expert"})
"""Roles whose collectives lie on the critical path of every layer."""


@rule(
    "COM116",
    "parallel-layout",
    title="parallel groups across machines",
    sentence=(
        "Group {group} ({role}) spans machines; its collectives take {exposed} {per} ({share}) with no compute beside "
        "them."
    ),
    evidence={"role": "kind of group"},
    confidence=Confidence.MEDIUM,
    needs="RC",
    advice_texts={
        "groups_inside_node": (
            "Tensor and expert parallel groups inside one machine; pipeline stages and data parallel groups across "
            "them."
        )
    },
    options={"share": (0.05, "own: of the step, in exposed collectives of these groups")},
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """A tensor or expert parallel group spans machines.

    What it finds
        Groups that are named as tensor or expert parallel, whose ranks are on different machines or whose tasks go over
        a network, if their exposed collectives take 5 % of the step or more.
    Why it costs time
        These collectives lie between the layers and can hardly be hidden; links between machines are many times slower
        than those inside.
    How it is measured
        Names of the machines as the recordings state them, on Ascend also the links of the tasks; exposed time of the
        group's collectives, which is the most that can be saved. What they would take inside a machine cannot be told.
    What to do
        Tensor parallel inside a machine; pipeline stages across machines; data parallel reductions beside the backward.
        No more tensor parallelism than memory needs.

    References
        Ascend foundation-model tuning guide.
    """
    groups = [one for one in ranks.groups if one.role in _INSIDE]
    if not ranks.groups:
        raise UnmeasuredError("no_matched_collectives")
    unknown, time = False, ranks.step if ranks.steps else 0
    for one in groups:
        far = _spans(ranks, one)
        if far is None:
            unknown = True
            continue
        exposed = int(one.exposed.sum()) // (len(one.members) * max(len(ranks.steps), 1))
        if not far or not time or exposed < options.number("share") * time:
            continue
        yield Finding(
            bound=exposed,
            draws="comm_exposed",
            evidence=(
                Evidence("group", one.group, "NAME"),
                Evidence("role", f"role_{one.role}", "TERM"),
                *measured(exposed=exposed, share=exposed / time),
            ),
            scope=Scope(ops=(one.group,)),
            count=len(one),
            severity=Severity.MEDIUM,
        )
    if unknown:
        yield NotApplicable("no_machines")


def _spans(ranks: "Cluster", one: "MatchedGroup") -> bool | None:
    """Whether the group spans machines; None where nothing tells."""
    members = [ranks.ranks[position] for position in one.members]
    networked = [rank.networked for rank in members if rank.networked is not None]
    if networked:
        return any(one.group in labels for labels in networked)
    hosts = {rank.host for rank in members}
    if None not in hosts and len(hosts) > 1:
        return True
    return False if None not in hosts and one.complete else None
