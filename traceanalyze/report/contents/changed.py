"""What the rules find on both sides of a comparison (new, gone, or of another size), and their ranks side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from traceanalyze.comparison import columns
from traceanalyze.comparison.pairs import how_changed, partners
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.contents.findings import RULE_ID
from traceanalyze.report.contents.words import name_of
from traceanalyze.rules.facts import CLASSES, HOST_CLASSES
from traceanalyze.rules.finding import Finding, Outcome, Severity

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

_SAY = sentences(
    compare_finding_new="New in the candidate: {finding} ({candidate} per step).",
    compare_finding_gone="Gone in the candidate: {finding} ({base} per step).",
    compare_finding_changed="Behind it: {finding}, {candidate} instead of {base} per step.",
    compare_finding_new_at="New in the candidate: {finding} ({where}, {candidate} per step).",
    compare_finding_gone_at="Gone in the candidate: {finding} ({where}, {base} per step).",
    compare_rank_waits=(
        "Not all ranks were recorded, so waiting is at least this: all that a collective moves is taken as moved with "
        "nothing beside it. The table of a rank's collectives tells more exactly where its profile states their tasks."
    ),
    compare_finding_changed_at="Behind it: {finding} ({where}), {candidate} instead of {base} per step.",
)
_CHANGED = declare(
    "finding_compare",
    "Findings of both sides (per step)",
    Column("finding", Kind.TERM, "what was found"),
    Column("change", Kind.TERM, "whether both sides have it, and where it costs more", heading="how"),
    *columns.of_base(time_ns=""),
    *columns.of_candidate(time_ns=""),
    columns.DIFF,
    RULE_ID,
    Column("where", Kind.PLACE, "operator, call, kernel or source line"),
)
_PARTS = {
    "idle": "idle",
    "host": "idle",
    "compute": "compute",
    "comm_exposed": "communication",
    "mem_exposed": "memory_ops",
}
"""The part of the step that each class of savings is of."""


_TELLING = regex(r"rank \S+$|.*\.py\b")
"""Places that say where to look; of operators and kernels the finding says enough."""


class Beside(NamedTuple):
    """What else is known of a side."""

    outcome: Outcome = Outcome()
    """What the rules say of the rank that is compared, and of all ranks together."""
    cluster: "Cluster | None" = None
    """Its ranks side by side."""
    named: int = 0
    """Idle time in which the trace shows nothing of the host, and that a finding or a wait before it explains:
    sum over its steps, ns."""
    of_ranks: frozenset[str] = frozenset()
    """Rules whose findings are about all ranks together, and draw from the time of others than the one compared."""


WORTH, LEAST, MOST = 0.01, 0.25, 3
"""Share of the longer step from which the change of a finding is told, and what it may be of the change of the step."""


class Changed(NamedTuple):
    """A finding of one side, and the same of the other; None where a side has it not."""

    base: Finding | None
    candidate: Finding | None
    of_ranks: bool = False
    """Whether its class of time is that of other ranks than the one compared."""
    remains: bool = False
    """The side without it has as much of its class of time: nothing is known to be new or gone."""

    @property
    def costs(self) -> tuple[int, int]:
        """What it costs on either side, ns a step."""
        return _cost(self.base), _cost(self.candidate)

    @property
    def diff(self) -> int:
        """By how much more it costs in the candidate, ns a step."""
        return self.costs[1] - self.costs[0]

    @property
    def how(self) -> str:
        """In which way it has changed."""
        if self.remains:
            return "finding_base" if self.candidate is None else "finding_candidate"
        return how_changed(*(None if one is None else _cost(one) for one in self[:2]))

    @property
    def either(self) -> Finding:
        """The finding where it costs more."""
        one = max((self.base, self.candidate), key=_cost)
        if one is None:
            raise ValueError("one of the sides has it")
        return one


def _cost(one: Finding | None) -> int:
    return 0 if one is None else one.explains or 0


def changed(
    base: Beside, candidate: Beside, parts: Mapping[str, tuple[int, int]], *, idle: bool = True
) -> tuple[Changed, ...]:
    """Findings of both sides that cost time every step, by place and then by rule; largest change first.

    A finding that a side has not, as its rule could not be judged there, says nothing about a difference; nor do those
    about `idle` time where one side did not record what tells its causes apart. `parts` are those of both mean steps,
    ns.
    """
    classes = ("",) if idle else ("compute", "comm", "mem")
    sides = [
        sorted((one for one in each.outcome.findings if _told(one) and one.draws.startswith(classes)), key=_cost)
        for each in (base, candidate)
    ]
    unknown = [{one.rule for one in each.outcome.not_applicable} for each in (base, candidate)]
    places = (lambda one: one.key, lambda one: (one.rule, one.sentence), lambda one: one.rule)
    found = (Changed(*pair) for pair in partners(sides[0], sides[1], *places))
    found = (one._replace(of_ranks=one.either.rule in base.of_ranks | candidate.of_ranks) for one in found)
    found = (one._replace(remains=_remains(one, parts)) for one in found)
    found = (
        one
        for one in found
        if (one.base is not None or one.either.rule not in unknown[0])
        and (one.candidate is not None or one.either.rule not in unknown[1])
    )
    return tuple(sorted(found, key=lambda each: (-abs(each.diff), each.either.rule)))


def _remains(one: Changed, parts: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a finding of one side is about a class of time that is not shorter by half of it on the other."""
    whole = [parts[key] for key in _parts_of(one.either.draws) if key in parts]
    if None not in one[:2] or not whole or one.of_ranks:
        return False
    change = sum(new - old for old, new in whole)
    return 2 * change * (1 if one.diff > 0 else -1) < abs(one.diff)


def _parts_of(draws: str) -> Iterable[str]:
    """Parts of the step that a class of savings is of."""
    if draws in CLASSES:
        return [cause.key for cause in CLASSES[draws]]
    if draws.partition(".")[0] == "idle":
        return [cause.key for cause in Cause]
    return [HOST_CLASSES.get(draws) or _PARTS.get(draws.partition(".")[0], "")]


def _told(one: Finding) -> bool:
    return bool(_cost(one)) and not one.once and one.severity != Severity.INFO


def changed_table(found: Sequence[Changed]) -> Table:
    """All of them as a table."""
    return _CHANGED.fill_records(map(_row, found))


def _row(one: Changed) -> Mapping[str, Value]:
    base, candidate = (None if side is None else _cost(side) for side in one[:2])
    return {
        "change": one.how,
        "rule_id": one.either.rule,
        "finding": name_of(one.either),
        "base_time_ns": base,
        "candidate_time_ns": candidate,
        "diff_ns": None if one.remains else one.diff,
        "where": next(iter(one.either.scope.ops), None),
    }


def in_verdict(
    found: Sequence[Changed], syncs: Table | None, parts: Mapping[str, int], change: int, step: int
) -> Iterator[Message]:
    """The finding that explains most of a difference of two mean steps, ns, if it explains much of it, else the wait.

    Only if its class of time, unless that is of other ranks, changed as it did (`parts`, ns a step), and a wait only if
    all waiting and all idle time did: what can be saved of a part also changes with what hides it.
    """
    least = max(WORTH * step, LEAST * abs(change))

    def behind(diff: int, *wholes: int, times: int = 2) -> bool:
        """Whether it is much, and all of these changed as it did, and by enough."""
        right = all(diff * each > 0 for each in (change, *wholes))
        return right and abs(diff) >= least and all(abs(diff) <= times * abs(each) for each in wholes)

    for one in found:
        both = one.how in {"finding_grown", "finding_shrunk"}
        part = parts.get(_PARTS.get(one.either.draws.partition(".")[0], ""), 0 if both else change)
        part = change if one.of_ranks else part
        named = behind(one.diff, part) if both else behind(one.diff, part, change, times=MOST)
        if named and not one.remains and one.how != "finding_same":
            yield _said(one.how, name_of(one.either), one.costs, next(iter(one.either.scope.ops), None))
            return
    waits = [row for row in syncs.records() if isinstance(row.diff_ns, int)] if syncs is not None else []
    for row in waits:
        if behind(row.diff_ns, sum(each.diff_ns for each in waits), parts["idle"], change, times=MOST):
            costs = row.base_idle_ns or 0, row.candidate_idle_ns or 0
            yield _said(row.change, "compare_wait", costs, row.candidate_frame or row.base_frame or row.op)
            return


def _said(how: str, name: str, costs: tuple[int, int], where: str | None) -> Message:
    key = how if how in {"finding_new", "finding_gone"} else "finding_changed"
    base, candidate = ((side, Kind.DURATION, cost) for side, cost in zip(("base", "candidate"), costs, strict=True))
    at = (("where", Kind.PLACE, where),) if where and _TELLING.match(where) else ()
    return Message(_SAY[f"compare_{key}{'_at' if at else ''}"], (("finding", Kind.TERM, name), base, candidate, *at))


_RANKS = declare(
    "rank_compare",
    "Ranks of both sides (mean step)",
    Column("rank", Kind.TEXT, "rank of the process"),
    *columns.of_base(time_ns="", own_ns="", wait_ns=""),
    *columns.of_candidate(time_ns="", own_ns="", wait_ns=""),
    columns.DIFF,
    *columns.minor(
        *columns.of_base(compute_ns="", exposed_ns="", free_ns=""),
        *columns.of_candidate(compute_ns="", exposed_ns="", free_ns=""),
    ),
)


def ranks_table(base: "Cluster", candidate: "Cluster") -> Table:
    """Step, own time, waiting and parts of each rank on both sides, by rank."""
    sides = [{one["rank"]: one for one in _ranks(cluster)} for cluster in (base, candidate)]
    rows: list[dict[str, Value]] = []
    for label in dict.fromkeys((*sides[0], *sides[1])):
        old, new = (side.get(label, {}) for side in sides)
        row: dict[str, Value] = {f"base_{key}": old.get(key) for key in _OF_RANK}
        row |= {f"candidate_{key}": new.get(key) for key in _OF_RANK}
        diff = new["time_ns"] - old["time_ns"] if old and new else None
        rows.append({"rank": label, **row, "diff_ns": diff})
    waits = [cluster.exposed_waits for cluster in (base, candidate)]
    bound = any(not isinstance(each, NotMeasured) and each.bound for each in waits)
    return replace(_RANKS.fill_records(rows), notes=(Message(_SAY["compare_rank_waits"]),) if bound else ())


_OF_RANK = ("time_ns", "own_ns", "wait_ns", "compute_ns", "exposed_ns", "free_ns")


def _ranks(cluster: "Cluster") -> Iterator[dict[str, Any]]:
    waits = cluster.exposed_waits
    steps = max(len(cluster.steps), 1)
    times = (cluster.step_time.sum(axis=1) // steps).tolist()
    waited = [waits] * len(times) if isinstance(waits, NotMeasured) else waits.mean.tolist()
    untold = [NotMeasured("no_device_events")] * len(times)
    found = [cluster.part(key) for key in ("compute", "communication", "memory_ops")]
    busy = [part for part in found if part is not None]
    free = cluster.step_time - sum(busy) if len(busy) == len(found) else None
    parts = (untold if part is None else (part.sum(axis=1) // steps).tolist() for part in (*found[:2], free))
    for rank, *own in zip(cluster.ranks, times, cluster.own_time, waited, *parts, strict=True):
        cells = dict(zip(_OF_RANK, own, strict=True))
        yield {"rank": rank.label, **cells, "own_ns": waits if own[1] is None else own[1]}
