"""The recordings of a run one after the other, and what of them could not be judged."""

from collections.abc import Sequence
from dataclasses import replace

from traceanalyze.causes.results import Postmortem, RankPart, comparable, decider
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, Message, Table, Value, declare, sentences
from traceanalyze.ranks.results import spans
from traceanalyze.report.contents.causes import on_ranks
from traceanalyze.report.contents.ranks import RANKS
from traceanalyze.report.model import RankReport, Report

_SAY = sentences(
    step_grew="The step grew from {first} in recording {before} to {last} in recording {after} ({factor} times).",
    step_shrank=("The step shrank from {first} in recording {before} to {last} in recording {after} ({factor} times)."),
    not_judged_show="{count} rule(s): {reason}. To see it: {option}",
    not_judged="{count} rule(s): {reason}.",
)

_RECORDED = declare(
    "recordings",
    "The recordings, one after the other (share of the step)",
    Column("recording", Kind.COUNT, "Number of the recording, in the order of time"),
    Column("name", Kind.NAME, "Name of the file or folder"),
    Column("steps", Kind.TEXT, "Numbers of the complete steps, or how many there are"),
    Column("on_ranks", Kind.TEXT, "Ranks that have it", heading="ranks"),
    Column("step_ns", Kind.DURATION, "Mean step of all ranks"),
    Column(
        "deciding_rank",
        Kind.TEXT,
        "Rank with most time of its own, waiting for others left out; the shares are its own",
    ),
    *(column for column in RANKS.columns if column.key.endswith("_share")),
)
CHANGED = 0.05
"""Of the step: a smaller change between recordings is not worth a sentence."""


def recordings_table(found: Postmortem, reports: Sequence[Report]) -> Table:
    """One row a recording; the shares are those of the rank that decides how long its step is."""
    deciding = [decider(one.ranks) for one in found.recordings]
    parts = [_parts(report.ranks[at]) for report, at in zip(reports, deciding, strict=True)]
    keys = tuple(dict.fromkeys(key for each in parts for key in each))
    rows = [
        {
            "recording": number,
            "name": report.name,
            "steps": steps_text(one.ranks[at]),
            "on_ranks": on_ranks([rank.label for rank in one.ranks]),
            "step_ns": one.step_time,
            "deciding_rank": one.ranks[at].label if len(one.ranks) > 1 else None,
            **{f"{key}_share": shares.get(key) for key in keys},
        }
        for number, (one, report, at, shares) in enumerate(
            zip(found.recordings, reports, deciding, parts, strict=True), 1
        )
    ]
    others = (key for key in _RECORDED.keys if key.endswith("_share") and key.removesuffix("_share") not in keys)
    return replace(_RECORDED.drop(*others).fill_records(rows), notes=change(found), detail=len(rows) < 2)


def change(found: Postmortem) -> tuple[Message, ...]:
    """How the step went from the first recording to the last that can be compared, if it went anywhere."""
    places = comparable(found.recordings)
    if len(places) < 2:
        return ()
    first, last = (found.recordings[at].step_time for at in (places[0], places[-1]))
    if not first or abs(last - first) < CHANGED * first:
        return ()
    values = (
        ("first", Kind.DURATION, first),
        ("last", Kind.DURATION, last),
        ("before", Kind.COUNT, places[0] + 1),
        ("after", Kind.COUNT, places[-1] + 1),
        ("factor", Kind.RATIO, last / first),
    )
    return (Message(_SAY["step_grew"] if last > first else _SAY["step_shrank"], values),)


def steps_text(rank: RankPart) -> str:
    """`10-13`; their number where they have none."""
    return spans(rank.steps) if all(step.isdecimal() for step in rank.steps) else str(len(rank.steps))


def _parts(rank: RankReport) -> dict[str, Value]:
    """Shares of the step, by the key of the part."""
    split = next((table for table in rank.tables if table.key == "split"), None)
    if split is None or split.absent is not None:
        return {}
    return dict(zip(map(str, split.column(split.keys[0])), split.column("share"), strict=True))


_NOT_JUDGED = declare(
    "not_judged",
    "What could not be judged, and what would show it",
    Column("rules", Kind.COUNT, "How many rules it keeps from being judged"),
    Column("because_of", Kind.TERM, "What is missing", heading="because"),
    Column("record_with", Kind.TERM, "Option of the profiler, or what else to give"),
    Column("on_ranks", Kind.TEXT, "Ranks that have it", heading="ranks", minor=True),
    Column(
        "rule_ids", Kind.NAME, "Ids of the rules; `traceanalyze rule ID` explains them", heading="which", minor=True
    ),
    in_words=True,
)


def unjudged_table(found: Postmortem, platform: str) -> Table:
    """One row a reason, that which hides most first, with the option of the profiler that would show it."""
    options = [f"option_{one.reason}.{platform}" for one in found.not_evaluated]
    table = _NOT_JUDGED.fill(
        rules=[len(one.rules) for one in found.not_evaluated],
        because_of=[f"reason_{one.reason}" for one in found.not_evaluated],
        record_with=[option if option in texts().terms else None for option in options],
        on_ranks=[on_ranks(one.ranks) for one in found.not_evaluated],
        rule_ids=[", ".join(one.rules) for one in found.not_evaluated],
    )
    notes = []
    for one in table.records():
        values = ("count", Kind.COUNT, one.rules), ("reason", Kind.TERM, one.because_of)
        option = () if one.record_with is None else (("option", Kind.TERM, one.record_with),)
        notes.append(Message(_SAY["not_judged_show"] if option else _SAY["not_judged"], (*values, *option)))
    return replace(table, notes=tuple(notes))
