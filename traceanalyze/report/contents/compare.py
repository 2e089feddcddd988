"""The report of a comparison: its tables, and the sentences about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.comparison.attribution import CALLS, STEP, headline, headline_keys
from traceanalyze.comparison.compare import tables
from traceanalyze.comparison.pairs import EVEN, PerStep, rounded
from traceanalyze.comparison.reasons import WORDS, contribution_name
from traceanalyze.comparison.results import Comparison, Contribution, Part, SideInfo, Unmatched
from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table, Value, declare
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.contents.quality import typed
from traceanalyze.report.model import CompareReport

_STEPS_NAMED = 12
_SIDES = declare(
    "compare_sides",
    "What was compared",
    Column("side", Kind.TERM, "which side"),
    Column("path", Kind.NAME, "file as it was given", heading="file"),
    Column("vendor", Kind.TEXT, "whose device it is"),
    Column("device_name", Kind.TEXT, "name of the device as recorded", heading="name"),
    Column("rank", Kind.COUNT, "rank of the process; ?n where the profile does not tell"),
    Column("ranks_in_run", Kind.COUNT, "how many ranks the run has", heading="ranks in the run"),
    Column("rank_choice", Kind.TERM, "why this rank was compared", heading="rank chosen as"),
    Column("step_choice", Kind.TERM, "why these steps were compared", heading="steps chosen as"),
    Column("steps_compared", Kind.COUNT, "how many steps the means are taken over"),
    Column("step_labels", Kind.TEXT, "which steps they are", heading="steps"),
    Column("steps_left_out", Kind.COUNT, "recorded, but not compared"),
    Column("mean_step_ns", Kind.DURATION, "mean time of the steps compared"),
    Column("median_step_ns", Kind.DURATION, "median time of the steps compared"),
    Column(
        "device_work_ns",
        Kind.DURATION,
        "sum of durations of all device events in the steps compared",
        heading="device time",
    ),
    Column(
        "linked_share",
        Kind.SHARE,
        "share of it whose launch or operator is known",
        heading="device time with a known launch",
    ),
    Column(
        "resolution_ns",
        Kind.DURATION,
        "finest time the file distinguishes",
        heading="clock resolution",
        scale="clock",
    ),
    Column("profiler_level", Kind.TEXT, "level of the Ascend profiler"),
    layout=Layout.RECORD,
    detail=True,
)
_OPTIONS = declare(
    "compare_options",
    "Options",
    Column("option", Kind.TEXT, "name of the option"),
    Column("option_value", Kind.NAME, "what it was set to", heading="value"),
    detail=True,
)


def build_compare(
    comparison: Comparison,
    *,
    version: str,
    notes: Sequence[tuple[str, str]] = (),
    options: Mapping[str, str] | None = None,
) -> CompareReport:
    """The report of a comparison; `options` are shown as they are, `notes` are remarks on the input of a side."""
    per = PerStep.of(comparison.base, comparison.candidate)
    return CompareReport(
        version=version,
        paths=(comparison.base.path, comparison.candidate.path),
        resolution_ns=max(comparison.base.resolution_ns, comparison.candidate.resolution_ns),
        verdict=_verdict(comparison, per),
        sides=(tuple(_about_side(comparison.base)), tuple(_about_side(comparison.candidate))),
        listing=(*tables(comparison, per), _sides_table(comparison), _options_table(options or {})),
        caveats=_caveats(comparison),
        quality=tuple(_quality(comparison.base, comparison.candidate, comparison)),
        notes=tuple(_note(side, text) for side, text in notes),
        advice=_advice(comparison, per),
        comparison=comparison,
    )


def _note(side: str, text: str) -> Message:
    return Message("side_note", (("side", Kind.TERM, f"side_{side}"), ("text", Kind.TEXT, text)))


def _about_side(side: SideInfo) -> Iterator[Message]:
    """One side in pieces: file, rank, device, step time, steps."""
    yield Message("side_path", (("path", Kind.NAME, side.path),))
    if side.rank is not None:
        key = "side_rank_decides" if side.rank_choice == "decides" else "side_rank" if side.ranks > 1 else "side_only"
        yield Message(key, (("rank", Kind.COUNT, side.rank), ("ranks", Kind.COUNT, side.ranks)))
    if side.device_name:
        yield Message("side_device", (("device", Kind.TEXT, side.device_name),))
    time = ("time", Kind.DURATION, mean_step(side))
    if side.step_choice == "whole_trace":
        yield Message("side_trace", (time,))
    elif side.count == 1:
        key = "side_step_median" if side.step_choice == "median" else "side_step"
        yield Message(key, (time, ("step", Kind.TEXT, "".join(step_labels(side.steps)))))
    else:
        counts = (("steps", Kind.COUNT, side.count), ("median", Kind.DURATION, side.median_step))
        yield Message("side_steps" if side.step_choice == "asked" else "side_steps_complete", (time, *counts))


def _sides_table(comparison: Comparison) -> Table:
    """Everything about both sides, one record each."""
    sides = (("base", comparison.base), ("candidate", comparison.candidate))
    return _SIDES.fill_records(_side_cells(key, side) for key, side in sides)


def _options_table(options: Mapping[str, str]) -> Table:
    """Options in effect, as given."""
    return _OPTIONS.fill(option=list(options), option_value=list(options.values()))


def mean_step(side: SideInfo) -> int:
    """Mean time of the steps that count, ns."""
    return rounded(side.step_time, max(side.count, 1))


def _side_cells(key: str, side: SideInfo) -> dict[str, Value]:
    labels = step_labels(side.steps)
    more = ", …" if len(labels) > _STEPS_NAMED else ""
    return {
        "side": f"side_{key}",
        "path": side.path,
        "vendor": side.vendor,
        "device_name": side.device_name,
        "rank": side.rank,
        "ranks_in_run": side.ranks,
        "rank_choice": f"rank_{side.rank_choice}",
        "step_choice": f"steps_{side.step_choice}",
        "steps_compared": side.count,
        "step_labels": ", ".join(labels[:_STEPS_NAMED]) + more,
        "steps_left_out": side.left_out,
        "mean_step_ns": mean_step(side),
        "median_step_ns": side.median_step,
        "device_work_ns": side.device_time,
        "linked_share": side.linked_time / side.device_time if side.device_time else None,
        "resolution_ns": side.resolution_ns,
        "profiler_level": side.level,
    }


NAMED = 4
"""Parts named in the verdict."""
WORTH_NAMING = 0.02
"""Share of all changes from which a part is named."""
ALL = 0.999
"""Explained share of the difference from which it is called all."""
UNEXPLAINED = ("untraced", "idle", "outside_calls")
"""Parts that say only that the profile does not tell."""


def _verdict(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """What there is to say, most important first."""
    changes = _changes(comparison, per)
    base, candidate = mean_step(comparison.base), mean_step(comparison.candidate)
    step = comparison.base.step_time, comparison.candidate.step_time
    values: list[tuple[str, Kind, Value]] = [("base", Kind.DURATION, base), ("candidate", Kind.DURATION, candidate)]
    if per.change == 0 and not changes:
        return (Message("compare_same", (("time", Kind.DURATION, base),)),)
    if per.even and sum(abs(diff) for _, diff in changes) <= EVEN * max(base, candidate):
        return (Message("compare_even", (*values, ("diff", Kind.CHANGE, per.diff(*step)))),)
    named = _named(changes)
    for number, (part, diff) in enumerate(named, start=1):
        values += [(f"part{number}", Kind.TERM, part.key), (f"diff{number}", Kind.CHANGE, diff)]
    if per.even:
        return (Message(f"compare_equal_{len(named)}", (*values, ("diff", Kind.CHANGE, per.diff(*step)))),)
    word = "slower" if per.change > 0 else "faster"
    share = abs(per.change) / (step[0] * per.candidate_steps) if step[0] else NotMeasured("empty_window")
    values += [("diff", Kind.DURATION, abs(per.diff(*step))), ("share", Kind.SHARE, share)]
    first = Message(f"compare_{word}_{len(named)}", tuple(values))
    if not named:
        return (first, Message("compare_unexplained"))
    return (first, *_explained(comparison, per), *_largest(comparison, named, per))


def _changes(comparison: Comparison, per: PerStep) -> list[tuple[Part, int]]:
    """Parts that differ, largest change first; what one side cannot tell is left out."""
    known = [
        (part, per.diff(part.base, part.candidate))
        for part in headline(comparison.parts)
        if part.key != STEP and isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    return sorted([item for item in known if item[1]], key=lambda item: -abs(item[1]))


def _named(changes: list[tuple[Part, int]]) -> list[tuple[Part, int]]:
    whole = sum(abs(diff) for _, diff in changes)
    return [item for item in changes[:NAMED] if abs(item[1]) >= WORTH_NAMING * whole]


def _explained(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """How much of the difference is not mere time that the profiles do not show."""
    unknown = [
        per.exact(part.base, part.candidate)
        for part in comparison.parts
        if part.key in UNEXPLAINED and isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    rest = sum(unknown)
    share = max(0.0, 1 - abs(rest) / abs(per.change))
    if share > ALL:
        return (Message("compare_explained_all"),)
    scale = per.base_steps * per.candidate_steps
    left: tuple[str, Kind, Value] = ("rest", Kind.CHANGE, round(rest / scale))
    if not share:
        # More is unknown than differs in all: the known parts nearly cancel out, and no share says so.
        return (Message("compare_unknown", (left,)),)
    return (Message("compare_explained", (("share", Kind.SHARE, share), left)),)


def _largest(comparison: Comparison, named: list[tuple[Part, int]], per: PerStep) -> tuple[Message, ...]:
    """The largest single reason, if it says more than its part does."""
    found = [row for row in comparison.contributions if row.what != "rest"]
    if not found:
        return ()
    top: Contribution = max(found, key=lambda row: abs(per.exact(row.base, row.candidate)))
    diff = per.diff(top.base, top.candidate)
    if not diff or any(part.key == top.part and change == diff for part, change in named):
        return ()
    values = (("name", Kind.NAME, contribution_name(top)), ("part", Kind.TERM, top.part), ("diff", Kind.CHANGE, diff))
    return (Message("compare_largest", values),)


MOST_ADVICE = 3
"""Parts that are spoken of."""
WORTH_ADVICE = 0.05
"""Share of all changes from which a part is."""


def _advice(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """The parts that take longer in the candidate, most first; nothing where both steps are made up alike."""
    keys = headline_keys(comparison.parts)
    changes = [
        (per.exact(part.base, part.candidate), part.key)
        for part in headline(comparison.parts)
        if isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    whole = sum(abs(change) for change, _ in changes)
    longest = max(comparison.base.step_time * per.candidate_steps, comparison.candidate.step_time * per.base_steps)
    if whole <= EVEN * longest:
        return ()
    worth = [item for item in changes if item[0] > 0 and item[0] >= WORTH_ADVICE * whole]
    longer = sorted(worth, key=lambda item: -item[0])
    return tuple(_advice_on(key, change, comparison, keys, per) for change, key in longer[:MOST_ADVICE])


def _advice_on(key: str, change: int, comparison: Comparison, keys: Mapping[str, str], per: PerStep) -> Message:
    """One part, with what makes most of it, if that is known."""
    values: list[tuple[str, Kind, Value]] = [
        ("part", Kind.TERM, key),
        ("diff", Kind.CHANGE, rounded(change, per.base_steps * per.candidate_steps)),
        ("check", Kind.TERM, f"check_{_check(key, change, comparison, per)}"),
    ]
    causes = [row for row in comparison.contributions if keys.get(row.part, row.part) == key and row.what not in WORDS]
    top = max(causes, key=lambda row: per.exact(row.base, row.candidate), default=None)
    if top is None or per.exact(top.base, top.candidate) <= 0:
        return Message("compare_advice", tuple(values))
    cause = (("cause", Kind.NAME, top.name), ("cause_diff", Kind.CHANGE, per.diff(top.base, top.candidate)))
    return Message("compare_advice_cause", (*values, *cause))


def _check(key: str, change: int, comparison: Comparison, per: PerStep) -> str:
    """What to check about a part: of dispatch the host operators, where they are most of its change."""
    if key == CALLS:
        return "dispatch"
    for part in comparison.parts if key == "dispatch" else ():
        if part.key == Cause.HOST_OP.key and isinstance(part.base, int) and isinstance(part.candidate, int):
            return part.key if 2 * per.exact(part.base, part.candidate) > change else key
    return key


def _caveats(comparison: Comparison) -> tuple[Message, ...]:
    """What makes sections less comparable."""
    return tuple(
        Message(caveat.key, tuple(_caveat_value(name, value) for name, value in caveat.values))
        for caveat in comparison.caveats
    )


def _caveat_value(name: str, value: float | str) -> tuple[str, Kind, Value]:
    """As of a check; which side is meant is a word of the language."""
    return (name, Kind.TERM, value) if name == "side" else typed(name, value)


def _quality(base: SideInfo, candidate: SideInfo, comparison: Comparison) -> Iterator[Message]:
    """How far the numbers can be trusted: linked and matched time, steps left out, clocks and levels."""
    if base.device_time and candidate.device_time:
        yield _of_both("compare_linked", Kind.SHARE, _linked(base), _linked(candidate))
    yield from _matched(comparison)
    if base.left_out or candidate.left_out:
        yield _of_both("compare_left_out", Kind.COUNT, base.left_out, candidate.left_out)
    clocks = base.resolution_ns, candidate.resolution_ns
    if max(clocks) > 1:
        yield _of_both("compare_clocks", Kind.DURATION, *clocks)
    if base.level or candidate.level:
        yield _of_both("compare_levels", Kind.TEXT, base.level or "–", candidate.level or "–")


def _of_both(key: str, kind: Kind, base: Value, candidate: Value) -> Message:
    return Message(key, (("base", kind, base), ("candidate", kind, candidate)))


def _linked(side: SideInfo) -> float:
    return side.linked_time / side.device_time


def _matched(comparison: Comparison) -> Iterator[Message]:
    """Of every section how much of both sides' time found its partner."""
    by_section: dict[str, dict[str, Unmatched]] = {}
    for row in comparison.unmatched:
        by_section.setdefault(row.section, {})[row.side] = row
    for section, sides in by_section.items():
        shares = {side: 1 - row.time / row.of_time for side, row in sides.items() if row.of_time}
        if set(shares) == {"base", "candidate"}:
            foreign = section == "kernels" and comparison.base.vendor != comparison.candidate.vendor
            yield Message(
                "compare_matched_by_name" if foreign else "compare_matched",
                (
                    ("section", Kind.TERM, f"section_{section}"),
                    ("base", Kind.SHARE, shares["base"]),
                    ("candidate", Kind.SHARE, shares["candidate"]),
                ),
            )
