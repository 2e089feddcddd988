"""The report of a run with changes: the step now, the step then, what limits it then, the gain of each and of all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from traceanalyze.model.table import Between, Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.replay.limits import LIMITS
from traceanalyze.report.contents.findings import RULE_ID
from traceanalyze.report.contents.verdict import IDLE_WORTH_NAMING, NOTHING
from traceanalyze.report.contents.words import ALIKE, amount_together
from traceanalyze.report.model import RankReport, Report

TOGETHER = "together"
_SAY = sentences(
    whatif_now="A step takes {step} now.",
    whatif_now_ranks="A step takes {step} now, the mean of {ranks} ranks.",
    whatif_now_trace="The recorded time is {step} now.",
    whatif_without='Without "{what}" it would be {then}: {gain} ({share}) less.',
    whatif_faster='With "{what}" {factor} times as fast it would be {then}: {gain} ({share}) less.',
    whatif_overlap='With "{what}" beside compute that does not need it, it would be {then}: {gain} ({share}) less.',
    whatif_rank='With rank "{what}" never the last it would be {then}: {gain} ({share}) less.',
    whatif_together_alone="With all of that it would be {then}: {gain} ({share}) less.",
    whatif_together_less=(
        "With all of that it would be {then}: {gain} ({share}) less, not {sum}, as one hides behind another."
    ),
    whatif_together_more=(
        "With all of that it would be {then}: {gain} ({share}) less, not {sum}, as each alone leaves others in the way."
    ),
    whatif_together_nothing="With all of that nothing would be gained.",
    whatif_nothing='"{what}": nothing would be gained.',
    whatif_all_unknown="All of that together: not measured: {reason}.",
    whatif_unknown='"{what}": not measured: {reason}.',
    whatif_unknown_rank="Rank {what}: not measured: {reason}.",
    whatif_nothing_rank="Rank {what} never the last: nothing would be gained.",
    whatif_limit_now="What limits it is {limit} ({limit_share} of the critical path).",
    whatif_limit_now_busy="What limits it is {limit}, with {limit_share} of the step.",
    whatif_limit_then=(
        "What limits it then is {limit} ({limit_share} of the critical path); the largest part of the step is {part} "
        "({part_share})."
    ),
    whatif_limit_then_busy=(
        "What limits it then is {limit}, with {limit_share} of the step; the largest part of the step is {part} "
        "({part_share})."
    ),
    whatif_shown=(
        "All ranks were replayed together; gains are means over them. The step below is that of rank {rank}, which "
        "waits least."
    ),
    whatif_unsure="The recording does not prove this: too few launches are linked, or clocks disagree.",
)
WHATIF = declare(
    "whatif",
    "What would change",
    Column("supposed", Kind.TERM, "What is supposed"),
    Column("subject", Kind.TERM, "Of what: a part of the step, a finding, kernels by their name, ranks"),
    replace(RULE_ID, minor=True),
    Column("factor", Kind.RATIO, "How many times as fast"),
    Column("gain_ns", Kind.DURATION, "By how much shorter the step would be", heading="gain"),
    Column("share", Kind.SHARE, "Gain over the step now"),
    Column("then_ns", Kind.DURATION, "The step then", heading="step then"),
    Column("low_ns", Kind.DURATION, "Gain at least", heading="at least", minor=True),
    Column("high_ns", Kind.DURATION, "Gain at most", heading="at most", minor=True),
    Column("limit", Kind.TERM, "What limits the step then", heading="limit then"),
    Column(
        "limit_share",
        Kind.SHARE,
        "Its part of the critical path; of the step, where the device works nearly all of it",
        machine=True,
    ),
    Column("largest_part", Kind.TERM, "Largest part of the step then", minor=True),
)
SPLIT_THEN = declare(
    "whatif_split",
    "The step now and then (mean step)",
    Column("part", Kind.TERM, "what the time is spent on"),
    Column("now_ns", Kind.DURATION, "mean of the recorded steps", heading="now"),
    Column("now_share", Kind.SHARE, "part of the step now", heading="share now"),
    Column("then_ns", Kind.DURATION, "mean of the steps then", heading="then"),
    Column("then_share", Kind.SHARE, "part of the step then", heading="share then"),
)
PATH = declare(
    "whatif_path",
    "The critical path now and then (mean step)",
    Column("decides", Kind.TERM, "what the step waits for at each instant", heading="on the path"),
    Column("now_ns", Kind.DURATION, "now, mean of the steps", heading="now"),
    Column("then_ns", Kind.DURATION, "then, mean of the steps", heading="then"),
    detail=True,
)


class State(NamedTuple):
    """A step by what it consists of and what limits it, ns a step."""

    split: Mapping[str, int]
    """Parts of the device's time: `compute`, `communication`, `memory_ops`, `idle`."""
    path: Mapping[str, int]
    """What decides how long it takes (`replay.limits`)."""
    rank: int = 0
    """Position of the rank."""

    @property
    def waiting(self) -> float:
        """Part of the path that is waiting for other ranks."""
        return self.path["waiting"] / max(sum(self.path.values()), 1)

    @property
    def busy(self) -> bool:
        """Whether the device works nearly all the time, whatever hands it the work."""
        return self.split["idle"] < IDLE_WORTH_NAMING * sum(self.split.values())

    @property
    def limit(self) -> tuple[str, float]:
        """Who limits it, and how much of its critical path that is, of a busy device how much of the step."""
        time = {name: sum(self.path[kind] for kind in kinds) for name, kinds in LIMITS.items()}
        if self.busy:
            late = time["ranks"] > time["communication"]
            work = self.split["communication"]
            time = {
                "device": sum(self.split.values()) - self.split["idle"] - work,
                "ranks" if late else "communication": work,
            }
        largest = max(time, key=lambda name: time[name])
        return largest, time[largest] / max(sum((self.split if self.busy else self.path).values()), 1)

    @property
    def largest(self) -> tuple[str, float]:
        """Its largest part, and that part's share of it."""
        whole = sum(self.split.values())
        part = max(self.split, key=lambda name: self.split[name])
        return part, self.split[part] / whole if whole else 0.0


class Gain(NamedTuple):
    """What one change, or all of them together, would gain, ns a step."""

    how: str
    """without, faster, overlap, rank or together"""
    what: str = ""
    """Term, or a name of the trace."""
    saving: int | NotMeasured = 0
    low: int = 0
    high: int = 0
    then: State | None = None
    """None where it was not replayed."""
    factor: float | None = None
    rule: str = ""
    same: object = None
    """What it changes: of several that change the same the largest gain counts."""


class Asked(NamedTuple):
    """What was asked about a recording, and the answers."""

    step: int
    """Mean step now, or the whole trace, ns."""
    now: State | None
    """None where nothing can be replayed."""
    each: tuple[Gain, ...]
    together: Gain | None
    """None of a single change."""
    whole: bool = False
    """The trace has no steps."""
    shown: str = ""
    """The rank whose step is shown, of several."""
    ranks: int = 1
    proven: bool = True
    """Whether the recording has what the replay rests on."""

    @property
    def last(self) -> Gain:
        """All together, or the only one."""
        return self.each[0] if self.together is None else self.together


def build_whatif(
    name: str,
    ranks: Sequence[RankReport],
    lead: int,
    asked: Asked,
    notes: Sequence[Message],
    doubts: Sequence[Message],
    *,
    version: str,
) -> Report:
    """The report on one recording, as replayed for the rank of it that leads; `doubts` are told beside the verdict."""
    every = (*asked.each, *(() if asked.together is None else (asked.together,)))
    table = WHATIF.fill_records(_row(each, asked.step) for each in every)
    state = () if asked.now is None or asked.last.then is None else _states(asked.now, asked.last.then)
    verdict = (*_verdict(asked), *doubts)
    return Report(
        name=name,
        version=version,
        command="whatif",
        verdict_messages=verdict,
        note_messages=(*notes, *_notes(asked)),
        summary=(table, *state),
        ranks=tuple(replace(rank, verdict_messages=verdict) if at == lead else rank for at, rank in enumerate(ranks)),
        focus=(lead,),
    )


def _verdict(asked: Asked) -> Iterator[Message]:
    if not asked.step:
        yield NOTHING
        return
    key = "whatif_now_trace" if asked.whole else "whatif_now_ranks" if asked.ranks > 1 else "whatif_now"
    yield Message(_SAY[key], (("step", Kind.DURATION, asked.step), ("ranks", Kind.COUNT, asked.ranks)))
    if asked.together is None:
        yield _sentence(asked.each[0], asked.step)
    else:
        yield from (_sentence(each, asked.step) for each in asked.each if isinstance(each.saving, NotMeasured))
        yield from _of_all(asked.together, asked)
    last = asked.last
    state = last.then if last.saving else asked.now
    if state is None or isinstance(last.saving, NotMeasured) or not (sum(state.path.values()) or state.busy):
        return
    (limit, limit_share), (part, part_share) = state.limit, state.largest
    yield Message(
        _SAY[f"whatif_limit_{'then' if last.saving else 'now'}{'_busy' if state.busy else ''}"],
        (
            ("limit", Kind.TERM, f"limit_{limit}"),
            ("limit_share", Kind.SHARE, limit_share),
            ("part", Kind.TERM, part if part != "idle" else "idle_sum"),
            ("part_share", Kind.SHARE, part_share),
        ),
    )


def _sentence(one: Gain, step: int) -> Message:
    what, of = ("what", Kind.TERM, one.what), "_rank" if one.how == "rank" else ""
    if isinstance(one.saving, NotMeasured):
        return Message(_SAY[f"whatif_unknown{of}"], (what, _reason(one.saving)))
    if one.saving == 0:
        return Message(_SAY[f"whatif_nothing{of}"], (what,))
    return Message(_SAY[f"whatif_{one.how}"], (what, ("factor", Kind.RATIO, one.factor), *_amounts(one, step)))


def _of_all(one: Gain, asked: Asked) -> Iterator[Message]:
    if isinstance(one.saving, NotMeasured):
        # Where nothing of it is measured, that was said of each.
        known = any(not isinstance(each.saving, NotMeasured) for each in asked.each)
        yield from (Message(_SAY["whatif_all_unknown"], (_reason(one.saving),)),) * known
        return
    largest: dict[object, int] = {}
    for each in asked.each:
        if isinstance(each.saving, int):
            largest[each.same] = max(each.saving, largest.get(each.same, 0))
    amount = amount_together(one.saving, largest.values()) if one.saving else "nothing"
    every = sum(largest.values())
    yield Message(_SAY[f"whatif_together_{amount}"], (*_amounts(one, asked.step), ("sum", Kind.DURATION, every)))


def _reason(unknown: NotMeasured) -> tuple[str, Kind, str]:
    return "reason", Kind.TERM, f"reason_{unknown.reason}"


def _amounts(one: Gain, step: int) -> Iterator[tuple[str, Kind, Value]]:
    saving = one.saving if isinstance(one.saving, int) else 0
    yield "then", Kind.DURATION, _then(one, step)
    yield "gain", Kind.DURATION, _gain(one)
    yield "share", Kind.SHARE, saving / step if step else 0.0


def _gain(one: Gain) -> int | NotMeasured:
    """With its range, where that is one."""
    if isinstance(one.saving, NotMeasured) or not one.saving or one.high - one.low <= ALIKE * one.high:
        return one.saving
    return Between.of(one.saving, one.low, one.high)


def _then(one: Gain, step: int) -> int | NotMeasured:
    gain = _gain(one)
    if isinstance(gain, NotMeasured):
        return gain
    return Between.of(step - gain, step - gain.high, step - gain.low) if isinstance(gain, Between) else step - gain


def _row(one: Gain, step: int) -> dict[str, Value]:
    absent = one.saving if isinstance(one.saving, NotMeasured) else None
    unknown = absent or NotMeasured("saving_not_replayed")
    saving = one.saving if isinstance(one.saving, int) else 0
    return {
        "supposed": f"whatif_{one.how}",
        "subject": one.what or None,
        "rule_id": one.rule or None,
        "factor": one.factor,
        "gain_ns": _gain(one),
        "share": absent or (saving / step if step else 0.0),
        "then_ns": _then(one, step),
        "low_ns": absent or one.low,
        "high_ns": absent or one.high,
        "limit": unknown if one.then is None else f"limit_{one.then.limit[0]}",
        "limit_share": unknown if one.then is None else one.then.limit[1],
        "largest_part": unknown if one.then is None else one.then.largest[0],
    }


def _states(now: State, then: State) -> tuple[Table, Table]:
    sums = sum(now.split.values()) or 1, sum(then.split.values()) or 1
    split = SPLIT_THEN.fill(
        part=["idle_sum" if part == "idle" else part for part in now.split],
        now_ns=list(now.split.values()),
        now_share=[time / sums[0] for time in now.split.values()],
        then_ns=list(then.split.values()),
        then_share=[time / sums[1] for time in then.split.values()],
    )
    path = PATH.fill(
        decides=[f"path_{kind}" for kind in now.path],
        now_ns=list(now.path.values()),
        then_ns=[then.path[kind] for kind in now.path],
    )
    return split, path


def _notes(asked: Asked) -> Iterator[Message]:
    if asked.shown and asked.now is not None:
        yield Message(_SAY["whatif_shown"], (("rank", Kind.TEXT, asked.shown),))
    if not asked.proven and asked.now is not None:
        yield Message(_SAY["whatif_unsure"])
