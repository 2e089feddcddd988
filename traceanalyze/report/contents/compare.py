"""The report of a comparison: its tables, and the sentences about them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from traceanalyze.analyses.steps.window import rounded, step_labels
from traceanalyze.comparison.attribution import HOST_SIDE, IDLE, OUTSIDE_CALLS, STEP, headline, headline_keys, to_check
from traceanalyze.comparison.calls import tensors
from traceanalyze.comparison.caveats import CAVEATS, SAID_FIRST
from traceanalyze.comparison.migration import TO_CHECK, TO_WAIT, TO_WAIT_FOR
from traceanalyze.comparison.noise import half_width
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.reasons import NOISE, WORDS
from traceanalyze.comparison.results import Caveat, Comparison, Part, SideInfo
from traceanalyze.comparison.same_work import OTHER_WORK
from traceanalyze.errors import Lost, Unmatched, some
from traceanalyze.model.table import Column, Kind, Layout, Message, NotMeasured, Table, Value, Word, declare, sentences
from traceanalyze.model.vocabulary import BUSY_PARTS, Cause
from traceanalyze.ranks.results import spans
from traceanalyze.report.contents.changed import Beside, Changed, changed, changed_table, in_verdict, ranks_table
from traceanalyze.report.contents.quality import typed
from traceanalyze.report.model import CompareReport, Side
from traceanalyze.report.view import distinct_names

_SAY = sentences(
    compare_same="No difference: both sides take {time} per step, part by part.",
    compare_even="No difference that matters: {candidate} instead of {base} per step ({diff}).",
    compare_noise=(
        "No difference beyond noise: {candidate} instead of {base} per step ({diff}; as the steps vary, ±{noise} may "
        "be chance)."
    ),
    compare_other_work=(
        "A step takes {candidate} instead of {base}; what makes the difference is not ranked (--rank-anyway does so)."
    ),
    compare_unexplained="What it is made of cannot be told from these profiles.",
    compare_explained_all="All of the difference is explained.",
    compare_explained="{share} of the difference is explained; {rest} is time of unknown cause.",
    compare_unknown="{rest} is time of unknown cause.",
    compare_largest="Largest single cause: {name} ({part}), {diff}.",
    compare_largest_next_op="Largest single cause: what the host does before {name} ({part}), {diff}.",
    compare_largest_in_op="Largest single cause: what the host does after it has waited in {name} ({part}), {diff}.",
    compare_linked="Device time whose launch or operator is known: base {base}, candidate {candidate}.",
    compare_matched="Matched {section}: {base} of the base's time, {candidate} of the candidate's.",
    compare_matched_by_name=(
        "Matched {section}: {base} of the base's time, {candidate} of the candidate's; other devices run {section} of "
        "other names, so look at their types."
    ),
    compare_left_out="Steps recorded but not compared: base {base}, candidate {candidate}.",
    compare_clocks="Clock resolution: base {base}, candidate {candidate}.",
    compare_levels="Profiler level: base {base}, candidate {candidate}.",
    side_note="{side}: {text}",
    side_lost="{side}: {text}.",
    side_only="rank {rank}",
    side_rank="rank {rank} of {ranks}",
    side_rank_same="rank {rank} of {ranks} as on the other side; rank {slowest} works longest",
    side_rank_decides="rank {rank}, the one of {ranks} that works longest",
    side_device="{device}",
    side_trace="{time}, no step marker",
    side_step="{time}, step {step}",
    side_step_median="{time}, median step {step}",
    side_steps="{time}, mean of {steps} steps (median {median})",
    side_steps_complete="{time}, mean of {steps} complete steps (median {median})",
    side_steps_cycles="{time}, mean of {steps} complete steps, whole cycles of {cycle} (median {median})",
    compare_advice="{part} {diff}: {check}.",
    compare_advice_record=(
        "record the other ranks that it communicates with, too ({ranks}), as only they tell waiting from transfer, "
        "then compare sizes and numbers of the collectives"
    ),
    compare_advice_moves="{time} of it moves data: compare sizes and numbers of the collectives, and the links",
    compare_advice_cause="{part} {diff} (largest: {cause} {cause_diff}): {check}.",
    compare_advice_cause_next_op="{part} {diff} (largest: before {cause} {cause_diff}): {check}.",
    compare_advice_work=(
        "{part} {diff} (largest: {cause} {cause_diff}): base {base_number} a step, the longest: {base}; candidate "
        "{candidate_number} a step, the longest: {candidate}."
    ),
    compare_advice_work_new=(
        "{part} {diff} (largest: {cause} {cause_diff}, only in the candidate): {candidate_number} a step, the longest: "
        "{candidate}."
    ),
    compare_advice_work_same=(
        "{part} {diff} (largest: {cause} {cause_diff}): {candidate_number} instead of {base_number} a step, the "
        "longest on both sides: {candidate}."
    ),
    compare_advice_work_longer=(
        "{part} {diff} (largest: {cause} {cause_diff}): {candidate_number} a step as in the base, each longer on "
        "average, the longest: {candidate}; on an equal device that points to a lower clock or to other work on it."
    ),
    compare_win="{op}: {win} to win, {candidate} instead of {base}: {to_do}.",
    compare_win_work=(
        "{op}: {win} to win, {candidate} instead of {base}: {to_do}. Base {base_tensors}; candidate {tensors}, "
        "{kernels} on {core}."
    ),
    compare_win_kernels="{op}: {win} to win, {candidate} instead of {base}: {to_do}. {kernels} on {core}.",
    compare_advice_cause_in_op="{part} {diff} (largest: after waiting in {cause} {cause_diff}): {check}.",
)

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
    Column("slowest_rank", Kind.COUNT, "the rank that works longest, by over 2 %, if another one"),
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
        "resolution_ns", Kind.DURATION, "finest time the file distinguishes", heading="clock resolution", scale="clock"
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


_AS_ONE = frozenset({IDLE, HOST_SIDE, OUTSIDE_CALLS})
"""Parts of which one side did not record the causes."""


def build_compare(
    comparison: Comparison,
    *,
    version: str,
    notes: Sequence[tuple[str, str]] = (),
    options: Mapping[str, str] | None = None,
    beside: tuple[Beside, Beside] = (Beside(), Beside()),
) -> CompareReport:
    """The report of a comparison; `options` are shown as they are, `notes` are remarks on the input of a side.

    `beside` is what else is known of base and candidate.
    """
    per, given = PerStep.of(comparison.base, comparison.candidate), options or {}
    apart = not any(part.key in _AS_ONE for part in comparison.parts)
    sums = {part.key: (part.base, part.candidate) for part in comparison.parts}
    means = {
        key: (per.base(old), per.candidate(new))
        for key, (old, new) in sums.items()
        if isinstance(old, int) and isinstance(new, int)
    }
    found = changed(*beside, means, idle=apart)
    chosen = _OPTIONS.fill(option=[*given], option_value=[*given.values()])
    table = _SIDES.fill_records([_cells("base", comparison.base), _cells("candidate", comparison.candidate)])
    both = {"base": comparison.base, "candidate": comparison.candidate}
    names = distinct_names(comparison.base.path, comparison.candidate.path)
    other = [each for each in comparison.caveats if each.key in OTHER_WORK]
    if other:
        other = [*(each for each in comparison.caveats if each.key == "whole_trace_on_one"), *other]
    other = other or [each for each in comparison.caveats if each.key in SAID_FIRST]
    return CompareReport(
        name=" → ".join(names),
        version=version,
        command="compare",
        resolution_ns=max(comparison.base.resolution_ns, comparison.candidate.resolution_ns),
        verdict_messages=(
            *map(_caveat, other),
            *(
                _verdict(comparison, per, found, (beside[0].named, beside[1].named))
                if comparison.tables["causes"].absent is None
                else [_of_both("compare_other_work", Kind.DURATION, *map(mean_step, both.values()))]
            ),
        ),
        sides=tuple(
            Side(key, key, side.path, name, tuple(_about_side(side)))
            for (key, side), name in zip(both.items(), names, strict=True)
        ),
        summary=(*_beside_causes(comparison.tables, found, beside), table, chosen),
        remarks={
            "advice": tuple(_advice(comparison, per, found)),
            "caveats": tuple(_caveat(caveat) for caveat in comparison.caveats if caveat not in other),
            "quality": tuple(_quality(comparison)),
        },
        note_messages=tuple(
            Message(
                _SAY["side_lost" if isinstance(text, Lost | Unmatched) else "side_note"],
                (("side", Kind.TERM, f"side_{side}"), ("text", Kind.TEXT, text)),
            )
            for side, text in notes
        ),
        comparison=comparison,
    )


def _beside_causes(
    tables: Mapping[str, Table], found: Sequence[Changed], beside: tuple[Beside, Beside]
) -> Iterator[Table]:
    """The tables, with the findings and ranks of both sides after the causes of the difference."""
    base, candidate = (side.cluster for side in beside)
    for key, table in tables.items():
        yield table
        if key == "causes" and found:
            yield changed_table(found)
        if key == "causes" and base is not None and candidate is not None:
            yield ranks_table(base, candidate)


def _about_side(side: SideInfo) -> Iterator[Message]:
    """One side in pieces: rank, device, step time, steps."""
    if side.rank is not None:
        known = side.rank_choice == "decides" or side.slowest is not None
        key = f"side_rank_{side.rank_choice}" if known else "side_rank" if side.ranks > 1 else "side_only"
        values = ("rank", side.rank), ("ranks", side.ranks), ("slowest", side.slowest)
        yield Message(_SAY[key], tuple((name, Kind.COUNT, value) for name, value in values if value is not None))
    if side.device_name:
        yield Message(_SAY["side_device"], (("device", Kind.TEXT, side.device_name),))
    time = ("time", Kind.DURATION, mean_step(side))
    if side.step_choice == "whole_trace":
        yield Message(_SAY["side_trace"], (time,))
    elif side.count == 1:
        key = "side_step_median" if side.step_choice == "median" else "side_step"
        yield Message(_SAY[key], (time, ("step", Kind.TEXT, "".join(step_labels(side.steps)))))
    else:
        counts = (("steps", Kind.COUNT, side.count), ("median", Kind.DURATION, side.median_step))
        cycle = (("cycle", Kind.COUNT, side.cycle),) if side.cycle > 1 else ()
        key = "side_steps" if side.step_choice == "asked" else f"side_steps_{'cycles' if cycle else 'complete'}"
        yield Message(_SAY[key], (time, *counts, *cycle))


def mean_step(side: SideInfo) -> int:
    """Mean time of the steps that count, ns."""
    return rounded(side.step_time, max(side.count, 1))


def _cells(key: str, side: SideInfo) -> dict[str, Value]:
    labels = step_labels(side.steps)
    return {
        "side": f"side_{key}",
        "path": side.path,
        "vendor": side.vendor,
        "device_name": side.device_name,
        "rank": side.rank,
        "ranks_in_run": side.ranks,
        "rank_choice": f"rank_{side.rank_choice}",
        "slowest_rank": side.slowest,
        "step_choice": f"steps_{side.step_choice}",
        "steps_compared": side.count,
        "step_labels": some(labels, _STEPS_NAMED),
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


def _exact(parts: Iterable[Part], per: PerStep) -> dict[str, int]:
    """By how much each part differs, see `PerStep.exact`; what one side cannot tell is left out."""
    return {
        part.key: per.exact(part.base, part.candidate)
        for part in parts
        if isinstance(part.base, int) and isinstance(part.candidate, int)
    }


NOISY = 0.01
"""Part of the step that single parts of equal programs may differ by: the gate's prior for two runs of one program."""


def _chance(comparison: Comparison, per: PerStep) -> tuple[int | None, frozenset[str]]:
    """By how much the step may differ by chance, if it differs by no more; and the parts that do not, either."""
    base, candidate = comparison.base, comparison.candidate
    noise = half_width(base.times, candidate.times, (base.cycle, candidate.cycle))
    rows = comparison.tables["step_difference"].records()
    changes, parts = _exact(headline(comparison.parts), per), {row.part: row.noise_ns for row in rows}
    within = (key for key, each in parts.items() if each is not None and abs(per.mean(changes.get(key, 0))) <= each)
    return None if noise is None or abs(per.mean(per.change)) > noise else noise, frozenset(within)


def _alike(comparison: Comparison, per: PerStep) -> bool:
    """Whether neither the step nor a part of it differs by more than chance, or than two runs of one program do."""
    noise, within = _chance(comparison, per)
    least = NOISY * max(mean_step(comparison.base), mean_step(comparison.candidate))
    changes = _exact(headline(comparison.parts), per).items()
    return noise is not None and all(key in {STEP, *within} or abs(per.mean(each)) <= least for key, each in changes)


def _verdict(
    comparison: Comparison, per: PerStep, found: Sequence[Changed], named_idle: tuple[int, int]
) -> tuple[Message, ...]:
    """What there is to say, most important first."""
    every = [(key, per.mean(exact)) for key, exact in _exact(headline(comparison.parts), per).items() if key != STEP]
    noise, within = _chance(comparison, per)

    def order(item: tuple[str, int]) -> tuple[bool, int]:
        # Of steps that are equally long what is unknown is the balance of what is known.
        return item[0] in within or (per.even and item[0] in UNEXPLAINED), -abs(item[1])

    changes = sorted([item for item in every if item[1]], key=order)
    whole = sum(abs(diff) for _, diff in changes)
    base, candidate = mean_step(comparison.base), mean_step(comparison.candidate)
    values: list[tuple[str, Kind, Value]] = [("base", Kind.DURATION, base), ("candidate", Kind.DURATION, candidate)]
    change = ("diff", Kind.CHANGE, per.mean(per.change))
    if per.change == 0 and not changes:
        return (Message(_SAY["compare_same"], (("time", Kind.DURATION, base),)),)
    if per.even and whole <= NOISY * max(base, candidate):
        return (Message(_SAY["compare_even"], (*values, change)),)
    whole_idle = sum(diff for key, diff in every if key not in BUSY_PARTS)
    syncs = comparison.tables.get("sync_compare")
    behind = in_verdict(found, syncs, {**dict(every), "idle": whole_idle}, per.mean(per.change), max(base, candidate))
    chance = () if noise is None else (("noise", Kind.DURATION, noise),)
    if chance and _alike(comparison, per):
        return (Message(_SAY["compare_noise"], (*values, change, *chance)), *behind)
    # Of steps that differ by chance, or not at all, only what does not is worth naming.
    named = [item for item in changes if abs(item[1]) >= WORTH_NAMING * whole and not (chance and item[0] in within)]
    named = named[:NAMED]
    for number, (key, diff) in enumerate(named, start=1):
        values += [(f"part{number}", Kind.TERM, key), (f"diff{number}", Kind.CHANGE, diff)]
    # Of steps that do not differ the largest part tells which way to look.
    way = named[0][1] if named and (per.even or chance) else per.change
    largest = _largest(comparison.tables["causes"], max((abs(diff) for _, diff in named), default=0), way)
    if per.even or chance:
        key, noise_said, more = ("equal", (), ()) if per.even else ("made", chance, behind)
        return (Message(f"compare_{key}_{len(named)}", (*values, change, *noise_said)), *largest, *more)
    word, step = "slower" if per.change > 0 else "faster", comparison.base.step_time
    share = abs(per.change) / (step * per.candidate_steps) if step else NotMeasured("empty_window")
    values += [("diff", Kind.DURATION, abs(per.mean(per.change))), ("share", Kind.SHARE, share)]
    first = Message(f"compare_{word}_{len(named)}", tuple(values))
    if not named:
        return (first, Message(_SAY["compare_unexplained"]))
    return (first, _explained(comparison, per, named_idle), *largest, *behind)


def _explained(comparison: Comparison, per: PerStep, named_idle: tuple[int, int]) -> Message:
    """How much of the difference is not mere time that neither the profiles show nor a finding names."""
    seen = sum(exact for key, exact in _exact(comparison.parts, per).items() if key not in UNEXPLAINED)
    unseen = per.change - seen
    # A finding of one side may be about more than what has changed, or about what the other has unnamed.
    low, high = sorted((0, unseen))
    rest = min(max(unseen - per.exact(*named_idle), low), high)
    share = max(0.0, 1 - abs(rest) / abs(per.change))
    if share > ALL:
        return Message(_SAY["compare_explained_all"])
    left: tuple[str, Kind, Value] = ("rest", Kind.CHANGE, round(rest / (per.base_steps * per.candidate_steps)))
    # Where more is unknown than differs in all, the known parts nearly cancel out, and no share says so.
    return (
        Message(_SAY["compare_explained"], (("share", Kind.SHARE, share), left))
        if share
        else Message(_SAY["compare_unknown"], (left,))
    )


CROWNED = 0.25
"""Share of the largest change of a part from which a single cause is told."""


def _largest(causes: Table, most: int, way: int) -> Iterator[Message]:
    """The largest single reason for a change in this direction, where there is one that makes much of a part."""
    for row in causes.records():
        if row.what == "rest" or row.change == NOISE or row.diff_ns * way < 0:
            continue
        # The part tells as much of waiting for data.
        if row.part != "data_loading" and abs(row.diff_ns) >= CROWNED * most:
            name, diff = ("name", Kind.PLACE, row.contribution), ("diff", Kind.CHANGE, row.diff_ns)
            yield Message(_SAY[f"compare_largest{_where(row)}"], (name, ("part", Kind.TERM, row.part), diff))
        return


def _where(row: Any) -> str:
    """Ending of the sentence about a cause: the name of time that shows nothing is not of what takes it."""
    return f"_{row.what}" if row.part in UNEXPLAINED and row.what in {"next_op", "in_op"} else ""


MOST_ADVICE = 3
"""Parts that are spoken of."""
WORTH_ADVICE = 0.05
"""Share of all changes from which a part is."""


def _advice(comparison: Comparison, per: PerStep, found: Sequence[Changed]) -> Iterator[Message]:
    """The parts that take longer in the candidate, most first; nothing where both steps are alike but for noise.

    Each comes with what makes most of it, if that is known.
    """
    changes = _exact(headline(comparison.parts), per)
    whole = sum(map(abs, changes.values()))
    longest = max(comparison.base.step_time * per.candidate_steps, comparison.candidate.step_time * per.base_steps)
    if (
        comparison.tables["causes"].absent is not None
        or (per.even and whole <= NOISY * longest)
        or _alike(comparison, per)
    ):
        return
    if "migration" in comparison.tables:
        yield from _to_win(comparison.tables["migration"], longest / (per.base_steps * per.candidate_steps))
        return
    keys, causes = headline_keys(comparison.parts), list(comparison.tables["causes"].records())
    _, within = _chance(comparison, per)
    worth = [key for key, each in changes.items() if key not in within and each > 0 and each >= WORTH_ADVICE * whole]
    for key in sorted(worth, key=lambda key: -changes[key])[:MOST_ADVICE]:
        named = (
            row
            for row in causes
            if keys.get(row.part, row.part) == key
            and (row.what not in WORDS or row.candidate_work)
            and row.change != NOISE
        )
        least = max(WORTH_ADVICE * changes[key], 1)
        top = next((row for row in named if per.exact(row.base_sum_ns, row.candidate_sum_ns) >= least), None)
        values: list[tuple[str, Kind, Value]] = [
            ("part", Kind.TERM, key),
            ("diff", Kind.CHANGE, per.mean(changes[key])),
            ("check", *_to_check(comparison, key, top, found)),
        ]
        if top is not None:
            values += [("cause", Kind.PLACE, top.contribution), ("cause_diff", Kind.CHANGE, top.diff_ns)]
        yield Message(*_advised(top, values))


def _to_check(comparison: Comparison, key: str, top: Any, found: Sequence[Changed]) -> tuple[Kind, Value]:
    """The same; of communication what of it is waiting, and for whom, or which ranks tell."""
    sides = comparison.base, comparison.candidate
    missing = sorted({rank for side in sides for rank in side.unrecorded or ()})
    known = key == "communication" and all(side.unrecorded == () and side.ranks > 1 for side in sides)
    if key == "communication" and (told := tuple(_of_communication(comparison.tables, found, known=known))):
        return Kind.LIST, told
    if key == "communication" and not known and comparison.candidate.vendor == "ascend":
        return Kind.TERM, "check_communication_tasks"
    if key == "communication" and missing:
        ranks = ("ranks", Kind.TEXT, spans(list(map(str, missing))))
        return Kind.LIST, (Message(_SAY["compare_advice_record"], (ranks,)),)
    return Kind.TERM, f"check_{'communication_ranks' if known else _check(comparison, key, top)}"


def _of_communication(tables: Mapping[str, Table], found: Sequence[Changed], *, known: bool) -> Iterator[Message]:
    """By how much more it waits and moves data, where both sides tell; whether all ranks are `known`."""
    rows = [*tables["overall_metrics"].records()] if "overall_metrics" in tables else []
    more = [[row.diff_ns for row in rows if row.index == key] for key in ("comm_wait", "comm_transfer")]
    if any(isinstance(each, NotMeasured) for each in chain(*more)):
        return
    wait, moved = map(sum, more)
    # Where the other part is shorter, all of it is the one.
    wait, moved, least = min(wait, wait + moved), min(moved, wait + moved), max(WORTH_ADVICE * (wait + moved), 1)
    if wait >= least and known:
        yield Message(TO_CHECK, (("check", Kind.TERM, "check_communication_ranks"),))
    elif wait >= least:
        places = (one.candidate.scope.ops for one in found if one.candidate and one.candidate.rule == "COM120")
        rank = next((ops[0].removeprefix("rank ") for ops in places if ops and ops[0].startswith("rank ")), None)
        whom = () if rank is None else (("rank", Kind.TEXT, rank),)
        yield Message(TO_WAIT_FOR if whom else TO_WAIT, (("time", Kind.DURATION, wait), *whom))
    if moved >= least:
        yield Message(_SAY["compare_advice_moves"], (("time", Kind.DURATION, moved),))


def _check(comparison: Comparison, key: str, top: Any) -> str:
    """What to check about a part with its largest cause."""
    check = to_check(comparison.base, comparison.candidate, comparison.parts, key)
    if top is not None and _where(top) == "_in_op":
        # What the device does without after the host has waited for it comes of the waiting.
        return "sync"
    of_memory = check.startswith("dispatch") and top is not None and top.part == Cause.DISPATCH_ALLOC.key
    return str(top.part) if of_memory else check


def _advised(top: Any, values: list[tuple[str, Kind, Value]]) -> tuple[str, tuple[tuple[str, Kind, Value], ...]]:
    """Sentence about a part with its largest cause; of compute what it is on both sides."""
    if top is None or top.candidate_work is None:
        return _SAY["compare_advice" if top is None else f"compare_advice_cause{_where(top)}"], tuple(values)
    alike = "_longer" if top.base_number == top.candidate_number else "_same"
    kind = "_new" if top.base_work is None else alike if top.base_work == top.candidate_work else ""
    work = [("candidate_number", Kind.NUMBER, top.candidate_number), ("candidate", Kind.NAME, top.candidate_work)]
    if top.base_work is not None:
        work += [("base_number", Kind.NUMBER, top.base_number), ("base", Kind.NAME, top.base_work)]
    return _SAY[f"compare_advice_work{kind}"], (*values, *work)


def _to_win(table: Table, step: float) -> Iterator[Message]:
    """What there is to win on the NPU, most first, with the tensors and kernels of operators."""
    worth = (cells for cells in map(dict[str, Any], (zip(table.keys, row, strict=True) for row in table.known_rows)))
    known = (each for each in worth if not isinstance(each["win_ns"], NotMeasured))
    for cells in [each for each in known if each["win_ns"] >= WORTH_ADVICE * step][:MOST_ADVICE]:
        values = (
            ("op", Kind.TERM if isinstance(cells["op"], Word) else Kind.NAME, cells["op"]),
            ("win", Kind.DURATION, cells["win_ns"]),
            ("base", Kind.DURATION, cells["base_time_ns"]),
            ("candidate", Kind.DURATION, cells["candidate_time_ns"]),
            ("to_do", Kind.LIST, cells["to_do"]),
        )
        if cells["kernels"] is None:
            yield Message(_SAY["compare_win"], values)
            continue
        both = (
            (side, Kind.NAME, tensors(cells[f"{of}_shapes"], cells[f"{of}_dtypes"]) or "?")
            for side, of in (("base_tensors", "base"), ("tensors", "candidate"))
        )
        work = (("kernels", Kind.NAME, cells["kernels"]), ("core", Kind.TEXT, cells["core"] or "?"))
        sized = cells["base_shapes"] or cells["candidate_shapes"]
        key = f"compare_win_{'work' if sized else 'kernels'}"
        yield Message(_SAY[key], (*values, *(both if sized else ()), *work))


def _caveat(caveat: Caveat) -> Message:
    """A sentence; values are as of a check, but which side is meant is a word of the language."""
    values = ((name, Kind.TERM, value) if name == "side" else typed(name, value) for name, value in caveat.values)
    return Message(CAVEATS.get(caveat.key, caveat.key), tuple(values))


def _quality(comparison: Comparison) -> Iterator[Message]:
    """How far the numbers can be trusted: linked and matched time, steps left out, clocks and levels."""
    base, candidate = comparison.base, comparison.candidate
    if base.device_time and candidate.device_time:
        shares = (side.linked_time / side.device_time for side in (base, candidate))
        yield _of_both("compare_linked", Kind.SHARE, *shares)
    yield from _matched(comparison)
    if base.left_out or candidate.left_out:
        yield _of_both("compare_left_out", Kind.COUNT, base.left_out, candidate.left_out)
    clocks = base.resolution_ns, candidate.resolution_ns
    if max(clocks) > 1:
        yield _of_both("compare_clocks", Kind.DURATION, *clocks)
    if base.level or candidate.level:
        yield _of_both("compare_levels", Kind.TEXT, base.level or "–", candidate.level or "–")


def _of_both(key: str, kind: Kind, base: Value, candidate: Value) -> Message:
    return Message(_SAY[key], (("base", kind, base), ("candidate", kind, candidate)))


def _matched(comparison: Comparison) -> Iterator[Message]:
    """Of every section how much of both sides' time found its partner."""
    shares: dict[str, list[float]] = {}
    unmatched = comparison.tables.get("unmatched")
    for row in unmatched.records() if unmatched else ():
        if row.of_ns:
            shares.setdefault(row.section, []).append(1 - row.unmatched_share)
    for section, of_sides in shares.items():
        if len(of_sides) == 2:
            foreign = section == "section_kernels" and comparison.base.vendor != comparison.candidate.vendor
            key = "compare_matched_by_name" if foreign else "compare_matched"
            both = _of_both(key, Kind.SHARE, *of_sides)
            yield Message(_SAY[key], (("section", Kind.TERM, section), *both.values))
