"""Reports about memory: of a snapshot, of two against each other, of a timeline, and what a trace says of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.findings import MemoryFinding, findings_table, memory_findings
from traceanalyze.analyses.memory.groups import timeline_tables
from traceanalyze.analyses.memory.history import memory_history
from traceanalyze.analyses.memory.in_trace import PLACES, InTrace
from traceanalyze.analyses.memory.whatif import WHATIF
from traceanalyze.analyses.results import Check
from traceanalyze.model.snapshot import MemoryTimeline, Snapshot
from traceanalyze.model.table import Kind, Message, NotMeasured, Table, sentences
from traceanalyze.model.vocabulary import Level, Mode
from traceanalyze.report.contents.quality import doubts
from traceanalyze.report.contents.words import Said, Setting, of_memory
from traceanalyze.report.model import Late, RankReport, Report, headline, remark
from traceanalyze.version import __version__

_LONGER = 'record a longer history (max_entries) or shorter stacks (stacks="python")'
_INEXACT = (
    "bytes in blocks are the least that the requests need, and what was free inside segments before the dump is not "
    "measured"
)
_SAY = sentences(
    memory_state="{requested} in use, {reserved} reserved at the dump; the snapshot has no history.",
    memory_peak="Peak {requested} in use, {reserved} reserved.",
    memory_peak_step="Peak {requested} in use in step {step}, {reserved} reserved.",
    memory_peak_before=("At least {requested} in use, before the recorded history begins; {reserved} reserved."),
    memory_unused="That is {unused} more than was ever in blocks.",
    memory_unused_now="{unused} of that are in no block.",
    memory_rising="It was still rising when the snapshot was dumped.",
    memory_lever="To lower the peak: {lever} saves {saved}.",
    memory_lever_line="To lower the peak: {lever} saves {saved}, at {line}.",
    memory_missing="{missing} are missing for the request that failed.",
    memory_missing_lever="It fits with {lever}: {saved} less.",
    memory_missing_lever_line="It fits with {lever}: {saved} less, at {line}.",
    memory_missing_more="No single change frees so much; {lever} frees most: {saved}.",
    memory_missing_more_line="No single change frees so much; {lever} frees most: {saved}, at {line}.",
    memory_largest="The largest category is {category} ({share}), the largest holder {line} ({held}).",
    ran_out="The run ran out of memory.",
    memory_failed_first="Device {device} ran out of memory first, {time} before device {other}.",
    memory_failed_alone="Of {count} devices only device {device} ran out of memory.",
    memory_failed_unordered=(
        "{count} devices ran out of memory; the history has no times, so which was first is not known."
    ),
    memory_contradicts="The snapshot contradicts itself, so leaks and fragmentation are not judged.",
    timeline_peak="Peak {peak} of tensors (the allocator's blocks are larger).",
    timeline_largest="The largest part ({share}) is {category}.",
    trace_without_memory=(
        "The trace has no memory records: record with profile_memory=True, or dump a snapshot "
        "(torch.cuda.memory._dump_snapshot)."
    ),
    trace_without_records="The trace has no memory records (profile_memory=True).",
    trace_memory_beside="Peak {peak} allocated, {reserved} reserved.",
    trace_memory="Peak {peak} allocated, {reserved} reserved; a snapshot would tell who holds it.",
    trace_memory_relative=(
        "At its peak the recording had {peak} more allocated than at its start; the trace has no totals."
    ),
    trace_allocator_calls="{count} allocator call(s) inside the steps took {time} on the host.",
    compared_with="Compared with {path}.",
    memory_whatif_now="At most {reserved} were reserved, {used} were in blocks.",
    memory_whatif_unknown="What would change is not measured: {reason}.",
    memory_whatif_setting_unknown="{what}: not measured: {reason}.",
    memory_whatif_less="With {what} at most {then} would be reserved: {change} less.",
    memory_whatif_more="With {what} at most {then} would be reserved: {change} more.",
    memory_whatif_same="With {what} as much would be reserved.",
    memory_whatif_fits="In {limit} every request succeeds.",
    memory_whatif_fits_after="In {limit} every request succeeds; {retries} of them find the device full at first.",
    memory_whatif_fails="In {limit} a request of {request} fails at {line}: {missing} are missing.",
    memory_whatif_full="In {limit} there is no room for what lived before the history: {missing} are missing.",
    memory_diff_verdict="The peak is {change} {direction} than the base's {base}.",
    memory_diff_phase=(
        "The base's peak ({base}) is in the {phase}, the candidate's in the {own}: compared is the most that both hold "
        "in the {phase}, a change of {change}."
    ),
    memory_diff_equal="Both peaks are {base}.",
    memory_diff_line="The largest change is {change} at {line}.",
    no_memory_stacks="No call stacks were recorded: nobody can be named.",
    memory_reconciled="History and dump agree to the byte ({events} events).",
    memory_not_reconciled="History and dump do not agree ({what}): an edited or synthetic file?",
    memory_layout_before=(
        "Layout not exact: {number} block(s) from before the history (lies|lie) outside of the segments "
        "of their time or over "
        f"each other; {_INEXACT}."
    ),
    memory_layout_place=(f"Layout not exact: event {{number}} puts a block where too little was free; {_INEXACT}."),
    memory_layout_release=(f"Layout not exact: event {{number}} gives memory back that blocks use; {_INEXACT}."),
    memory_layout_sizes=(
        f"Layout not exact: {{number}} block(s) of the dump (is|are) of another size than the history "
        f"leads to; {_INEXACT}."
    ),
    memory_unknown_action="{count} event(s) of the unknown kind {name} (was|were) left out.",
    memory_capacity_unknown="The snapshot does not tell how much memory the device has; --capacity does.",
    memory_history_full=f"The history forgot its beginning, so the peak may have been higher; {_LONGER}.",
    memory_history_round=(
        "The history has just {events} events, as many as a ring holds: it may have forgotten its beginning; "
        f"{_LONGER}."
    ),
    memory_history_late=f"Memory in use was highest before the history begins: record from the start, or {_LONGER}.",
    memory_interval=(
        "Blocks in use at the peak may be up to {slack_bytes} more: blocks from before the history were freed in it."
    ),
    memory_retries_forgotten=(
        "The process had {all} allocation retries, of which the history still shows {seen}: memory_stats tells."
    ),
    memory_no_leak_check="Leaks were not looked for: the history shows no steps (profile steps, or record longer).",
)
RAN_OUT = Message(_SAY["ran_out"])

_NAMED_FINDINGS = 3
"""Findings that the verdict names."""


class MemoryFile(NamedTuple):
    """One snapshot or memory timeline."""

    path: str
    kind: str
    """snapshot or memory_timeline"""
    report: Report
    """What `traceanalyze memory` says of it."""
    analyses: tuple[AllocatorAnalysis, ...] = ()
    """One a device; none of a timeline."""
    findings: tuple[MemoryFinding, ...] = ()
    """Of all devices."""
    rank: int | None = None
    rank_source: str = ""
    """What tells the rank: run.json, file name, folder, only one (trace and snapshot); empty: nothing does."""

    @property
    def peak(self) -> int | None:
        """Bytes in blocks; None of a timeline."""
        return max((int(one.moments.array("block_bytes")[0]) for one in self.analyses), default=None)


def of_snapshot(snapshot: Snapshot, analyses: tuple[AllocatorAnalysis, ...]) -> MemoryFile:
    """What one snapshot says; its devices stand where the ranks of a run do."""
    found = [memory_findings(one) for one in analyses]
    devices = tuple(_device_report(snapshot, *each) for each in zip(analyses, found, strict=True))
    largest = max(range(len(analyses)), key=lambda at: int(analyses[at].moments.array("reserved_bytes")[0]))
    said = tuple(
        tuple(of_memory(one, Setting(path=snapshot.path, place=str(at))) for one in each)
        for at, each in enumerate(found)
    )
    first, order = _first_to_fail(analyses)
    leading, several = largest if first is None else first, range(len(devices))
    notes = tuple(map(remark, snapshot.notes))
    report = Report(
        snapshot.path,
        __version__,
        (*order, *devices[leading].verdict_messages),
        notes,
        (),
        devices,
        focus=(leading, *(at for at in several if at != leading)) if order else tuple(several),
        command="memory",
        said=tuple(chain(*said)),
        of_devices=said,
    )
    return MemoryFile(snapshot.path, "snapshot", report, analyses, tuple(chain(*found)))


def _first_to_fail(analyses: Sequence[AllocatorAnalysis]) -> tuple[int | None, tuple[Message, ...]]:
    """The device on which a request failed first, None where none did or nothing tells; and what is said of it."""
    failed = [at for at, one in enumerate(analyses) if one.ooms]
    if not failed or len(analyses) == 1:
        return (failed[0] if failed else None), ()
    if len(failed) == 1:
        values = (("device", Kind.COUNT, analyses[failed[0]].device), ("count", Kind.COUNT, len(analyses)))
        return failed[0], (Message(_SAY["memory_failed_alone"], values),)
    times = [one.time for one in analyses]
    known = [(int(time[analyses[at].ooms[0].event]), at) for at in failed if (time := times[at]) is not None]
    if len(known) < len(failed):
        return failed[0], (Message(_SAY["memory_failed_unordered"], (("count", Kind.COUNT, len(failed)),)),)
    (begin, first), (then, second), *_ = sorted(known)
    devices = (("device", Kind.COUNT, analyses[first].device), ("other", Kind.COUNT, analyses[second].device))
    return first, (Message(_SAY["memory_failed_first"], (*devices, ("time", Kind.DURATION, then - begin))),)


def of_timeline(timeline: MemoryTimeline) -> MemoryFile:
    """What the tensors of each category take, at the peak and over time."""
    tables = timeline_tables(timeline)
    top = next(tables[0].records())
    total = (tables[0].totals or {})["tensor_bytes"]
    verdict = (
        Message(_SAY["timeline_peak"], (("peak", Kind.MEMORY, total), ("changes", Kind.COUNT, timeline.rows))),
        Message(
            _SAY["timeline_largest"], (("share", Kind.SHARE, top.share), ("category", Kind.TERM, top.tensor_category))
        ),
    )
    report = _single(timeline.path, "about_timeline", timeline.rows, verdict, tables)
    return MemoryFile(timeline.path, "memory_timeline", report)


def difference_report(base: Snapshot, candidate: Snapshot, found: Table, apart: tuple[str, str] | None) -> Report:
    """Two snapshots against each other; `apart` are the phases of their peaks where these differ."""
    report = _single(candidate.path, "about_difference", 0, tuple(_difference_verdict(found, apart)), (found,))
    return replace(report, note_messages=(Message(_SAY["compared_with"], (("path", Kind.NAME, base.path),)),))


def whatif_report(snapshot: Snapshot, found: Sequence[tuple[Device, Table | NotMeasured]]) -> Report:
    """What the allocators of a snapshot's devices would do."""
    sides = tuple(_whatif_side(snapshot.path, *each) for each in found)
    most = max(range(len(found)), key=lambda at: found[at][0].reserved.peak[0])
    notes = tuple(map(remark, snapshot.notes))
    verdict = sides[most].verdict_messages
    return Report(snapshot.path, __version__, verdict, notes, (), sides, tuple(range(len(sides))), command="whatif")


def _whatif_side(path: str, device: Device, found: Table | NotMeasured) -> RankReport:
    about = headline("about_snapshot_whatif", path, device.events, device=device.device.id)
    peaks = ("reserved", Kind.MEMORY, device.reserved.peak[0]), ("used", Kind.MEMORY, device.blocks.peak[0])
    said: Iterable[Message]
    if isinstance(found, NotMeasured):
        table, said = WHATIF.missing(found.reason), [Message(_SAY["memory_whatif_unknown"], (_reason(found),))]
    else:
        table, said = found, chain(*map(_supposed, islice(found.records(), 1, None)))
    verdict = (Message(_SAY["memory_whatif_now"], peaks), *said)
    return RankReport(None, path, Mode.MEMORY, 1000, about, verdict, (table,), (), ())


def _supposed(row: Any) -> Iterator[Message]:
    """What is reserved then, and whether every request succeeds."""
    change, values = (
        row.reserved_change_bytes,
        [("what", Kind.NAME, row.settings), ("limit", Kind.MEMORY, row.limit_bytes)],
    )
    if isinstance(change, NotMeasured):
        if row.settings is not None:
            yield Message(_SAY["memory_whatif_setting_unknown"], (*values, _reason(change)))
    elif row.settings is not None and change is not None:
        key = "less" if change < 0 else "more" if change > 0 else "same"
        amounts = ("then", Kind.MEMORY, row.then_reserved_bytes), ("change", Kind.MEMORY, abs(change))
        yield Message(_SAY[f"memory_whatif_{key}"], (*values, *amounts))
    if row.fits is None:
        return
    fits = "fits_after" if row.retries else "fits"
    kind = fits if row.fits else "full" if row.event is None else "fails"
    failure = ("request", Kind.MEMORY, row.failing_bytes), ("missing", Kind.MEMORY, row.missing_bytes)
    told = (*values, *failure, ("line", Kind.NAME, row.source_line), ("retries", Kind.COUNT, row.retries))
    yield Message(_SAY[f"memory_whatif_{kind}"], told)


def _reason(unknown: NotMeasured) -> tuple[str, Kind, str]:
    return "reason", Kind.TERM, f"reason_{unknown.reason}"


def _single(path: str, about: str, steps: int, verdict: tuple[Message, ...], tables: tuple[Table, ...]) -> Report:
    """A report of one part."""
    about_it = headline(about, path, steps, device=None)
    side = RankReport(None, path, Mode.MEMORY, 1000, about_it, verdict, tables, (), ())
    return Report(path, __version__, verdict, (), (), (side,), (0,), command="memory")


def _difference_verdict(found: Table, apart: tuple[str, str] | None) -> Iterator[Message]:
    totals: Any = found.totals
    change, base = totals["change_bytes"], ("base", Kind.MEMORY, totals["base_block_bytes"])
    if apart is not None:
        wanted, own = (("phase", Kind.TERM, f"phase_{apart[0]}"), ("own", Kind.TERM, f"phase_{apart[1]}"))
        yield Message(_SAY["memory_diff_phase"], (wanted, own, ("change", Kind.MEMORY_CHANGE, change), base))
    elif change == 0:
        yield Message(_SAY["memory_diff_equal"], (base,))
    else:
        direction = ("direction", Kind.TERM, "higher" if change > 0 else "lower")
        yield Message(_SAY["memory_diff_verdict"], (("change", Kind.MEMORY, abs(change)), direction, base))
    top = next(found.records(), None)
    if top and top.change_bytes:
        values = (("change", Kind.MEMORY_CHANGE, top.change_bytes), ("line", Kind.NAME, top.source_line))
        yield Message(_SAY["memory_diff_line"], values)


def _device_report(snapshot: Snapshot, analysis: AllocatorAnalysis, found: tuple[MemoryFinding, ...]) -> RankReport:
    checks = tuple(_checks(snapshot, analysis))
    return RankReport(
        rank=None,
        path=snapshot.path,
        mode=Mode.MEMORY,
        resolution_ns=1000,
        headline=headline(_about(analysis), snapshot.path, analysis.events, device=analysis.device),
        verdict_messages=tuple(_verdict(analysis, found)),
        tables=(*analysis.held, findings_table(found), *analysis.state),
        checks=doubts(checks),
        hints=tuple(check.message for check in checks),
        memory=Late(lambda: (memory_history(analysis.source),)),
    )


def _about(analysis: AllocatorAnalysis) -> str:
    """Sentence on the file: with or without a history, and whether it agrees with itself."""
    extent = "about_snapshot" if analysis.events > 1 else "about_snapshot_state"
    return f"{extent}_off" if not analysis.reconciled else f"{extent}_inexact" if analysis.lost else extent


def _verdict(analysis: AllocatorAnalysis, found: Sequence[MemoryFinding]) -> Iterator[Message]:
    """That memory ran out, the peak and what holds it, then the worst findings."""
    if any(one.key.startswith("oom") and one.severity == "critical" for one in found):
        yield RAN_OUT
    peak = next(analysis.moments.records())
    values = (
        ("requested", Kind.MEMORY, peak.requested_bytes),
        ("reserved", Kind.MEMORY, analysis.most_reserved),
        ("step", Kind.TEXT, peak.step or ""),
    )
    if analysis.events <= 1:
        yield Message(_SAY["memory_state"], values)
    elif peak.event is None:
        yield Message(_SAY["memory_peak_before"], values)
    else:
        yield Message(_SAY["memory_peak_step"] if peak.step is not None else _SAY["memory_peak"], values)
    if analysis.unused is not None:
        unused = "memory_unused" if analysis.events > 1 else "memory_unused_now"
        yield Message(_SAY[unused], (("unused", Kind.MEMORY, analysis.unused),))
    if analysis.rising:
        yield Message(_SAY["memory_rising"])
    kinds = next((each for each in analysis.held if each.key == "memory_categories"), analysis.at_peak)
    for top in islice(analysis.at_peak.records(), 1):
        own = [one for one in kinds.records() if one.memory_category != "category_cached"]
        kind, used = max(own, key=attrgetter("block_bytes")), sum(one.block_bytes for one in own)
        category = ("category", Kind.TERM, kind.memory_category), ("share", Kind.SHARE, kind.block_bytes / max(used, 1))
        holder = ("line", Kind.NAME, top.source_line), ("held", Kind.SHARE, top.share)
        yield Message(_SAY["memory_largest"], (*category, *holder))
    yield from _levers(analysis)
    yield from [one.advice for one in found if one.severity != "info"][:_NAMED_FINDINGS]
    if not analysis.reconciled:
        yield Message(_SAY["memory_contradicts"])


def _levers(analysis: AllocatorAnalysis) -> Iterator[Message]:
    """What is missing for a request that failed and what frees it, else the change that saves most."""
    # Copies to the host and back cost more time than anything else here does.
    found = sorted(analysis.levers.records(), key=lambda one: bool(one.lever == "lever_offload"))
    missing, kind = analysis.missing, "memory_lever"
    if missing is not None:
        yield Message(_SAY["memory_missing"], (("missing", Kind.MEMORY, missing),))
        enough = [one for one in found if one.saved_bytes >= missing]
        kind = "memory_missing_lever" if enough else "memory_missing_more"
        found = enough or sorted(found, key=attrgetter("saved_bytes"))[-1:]
    for one in found[: _NAMED_FINDINGS if kind == "memory_missing_lever" else 1]:
        values = (("lever", Kind.TERM, one.lever), ("saved", Kind.MEMORY, one.saved_bytes))
        line = ("line", Kind.NAME, one.source_line)
        yield Message(_SAY[f"{kind}_line"], (*values, line)) if one.source_line else Message(_SAY[kind], values)


def _checks(snapshot: Snapshot, analysis: AllocatorAnalysis) -> Iterator[Check]:
    """Self-check, always said."""
    if analysis.reconciled:
        yield Check("M01", Level.INFO, _SAY["memory_reconciled"], (("events", analysis.events),))
    else:
        yield Check("M01", Level.WARN, _SAY["memory_not_reconciled"], (("what", _disagreement(analysis)),))
    if analysis.reconciled and analysis.lost:
        lost = analysis.lost
        yield Check("M09", Level.WARN, _SAY[f"memory_layout_{lost.key}"], (("number", lost.number),))
    histories = [device.history for device in snapshot.devices if device.id == analysis.device]
    for name, number in chain(*(history.unknown.items() for history in histories)):
        yield Check("M02", Level.WARN, _SAY["memory_unknown_action"], (("name", name), ("count", number)))
    counted = snapshot.statistics
    retries = len(analysis.retries)
    if counted is not None and counted.retries is not None and counted.retries > retries:
        yield Check("M08", Level.WARN, _SAY["memory_retries_forgotten"], (("all", counted.retries), ("seen", retries)))
    if analysis.capacity is None:
        yield Check("M03", Level.INFO, _SAY["memory_capacity_unknown"])
    if analysis.truncation:
        yield Check("M04", Level.INFO, _SAY[f"memory_history_{analysis.truncation}"], (("events", analysis.events),))
    peak = next(analysis.moments.records())
    if analysis.lost is None and peak.block_most_bytes > peak.block_bytes:
        slack = peak.block_most_bytes - peak.block_bytes
        yield Check("M05", Level.INFO, _SAY["memory_interval"], (("slack_bytes", slack),))
    if isinstance(analysis.leaks, NotMeasured) and analysis.events > 1:
        yield Check("M06", Level.INFO, _SAY["memory_no_leak_check"])
    if "no_memory_stacks" in analysis.settings:
        yield Check("M07", Level.INFO, _SAY["no_memory_stacks"])


def _disagreement(analysis: AllocatorAnalysis) -> str:
    """What does not agree, by the names of the columns of the self-check."""
    check = next(analysis.check.records())
    parts = {"baseline_agrees": "baseline"}
    agree = ("blocks_tile", "sums_agree", "segments_follow", "baseline_agrees")
    wrong = [parts.get(part, part) for part in agree if not getattr(check, part)]
    return ", ".join(wrong) or f"{check.disorder + check.mismatched} events"


_UNSPECIFIC = (None, "phase_other", "phase_unknown")
_PART_OF = {"phase_recompute": "phase_backward", "phase_zero_grad": "phase_optimizer"}


def places_of(found: InTrace | NotMeasured) -> Table:
    """Peaks, failed requests, and the calls of the device's allocator by place in the program."""
    return PLACES.missing(found.reason) if isinstance(found, NotMeasured) else found.places


def with_places(rank: RankReport, found: InTrace | NotMeasured) -> RankReport:
    """The report of a snapshot's device with the table, after that of the moments, and the peak's place."""
    at = next(index for index, each in enumerate(rank.tables) if each.key == "memory_moments") + 1
    tables = (*rank.tables[:at], places_of(found), *rank.tables[at:])
    said = rank.verdict_messages
    verdict = said if isinstance(found, NotMeasured) else tuple(_peak(one, found) for one in said)
    return replace(rank, tables=tables, verdict_messages=verdict)


def _peak(sentence: Message, found: InTrace) -> Message:
    """The sentence on the peak, with step, phase and operator of the trace as far as it tells them."""
    peak = next(found.places.records(), None)
    if peak is None or peak.moment != "moment_peak" or not found.inside[0]:
        return sentence
    places = (
        ("step", Kind.TEXT, peak.step),
        ("phase", Kind.TERM, None if peak.phase in _UNSPECIFIC else _PART_OF.get(peak.phase, peak.phase)),
        ("op", Kind.NAME, peak.op),
    )
    known = [place for place in places if place[2] is not None]
    if not known or not sentence.key.startswith("memory_peak"):
        return sentence
    sizes = (value for value in sentence.values if value[0] in {"requested", "reserved"})
    return Message("_".join(("memory_peak_at", *(name for name, _, _ in known))), (*sizes, *known))


_TABLES = (
    *("memory", "memory_peak_place", "step_memory", "memory_curve"),
    *("allocator_calls", "allocator_sites", "module_memory"),
)


_ON_MEMORY = ("MEM", "CAP")
"""Families of the rules about memory, and about the recording itself."""


def memory_view(report: Report, *, beside_snapshot: bool = False) -> Report:
    """The report restricted to memory, with a verdict of its own, which may ask for a snapshot."""
    ranks = tuple(_memory_of_rank(rank, beside_snapshot) for rank in report.ranks)
    said = {id(one) for rank in ranks for one in rank.said}
    return replace(
        report,
        ranks=ranks,
        summary=(),
        verdict_messages=ranks[report.focus[0]].verdict_messages,
        said=tuple(one for one in report.said if id(one) in said),
    )


def _memory_of_rank(rank: RankReport, beside_snapshot: bool) -> RankReport:
    tables = tuple(_shown(table) for table in rank.tables if table.key in _TABLES)
    return replace(
        rank,
        tables=tables,
        checks=(),
        hints=(),
        verdict_messages=tuple(_trace_verdict(tables, beside_snapshot)),
        findings=tuple(one for one in rank.findings if one.rule.startswith(_ON_MEMORY)),
        said=tuple(one for one in rank.said if isinstance(one, Said) and one.found.rule.startswith(_ON_MEMORY)),
        excerpts=tuple(one for one in rank.excerpts if one.rule.startswith(_ON_MEMORY)),
        together=None,
    )


def _shown(table: Table) -> Table:
    """The curve of the device that uses most is drawn; the rest is read."""
    if table.key != "memory_curve" or table.absent is not None:
        return replace(table, detail=False)
    rows = list(table.records())
    # Of the first two columns, which tell whose memory it is.
    top = max(rows, key=lambda row: row.in_use_bytes, default=())[:2]
    own = [at for at, row in enumerate(rows) if row[:2] == top]
    return replace(table.take(own).drop("memory_of", "device"), plot=("in_use_bytes", "in_use_bytes"), ranked=False)


def _trace_verdict(tables: tuple[Table, ...], beside_snapshot: bool) -> Iterator[Message]:
    rows = {table.key: list(table.records()) for table in tables}
    peaks, calls = rows.get("memory"), rows.get("allocator_calls")
    if not peaks:
        yield Message(_SAY["trace_without_records"] if beside_snapshot else _SAY["trace_without_memory"])
        return
    top = next((row for row in peaks if row.memory_of == "memory_of_device"), peaks[0])
    if isinstance(top.peak_allocated_bytes, NotMeasured):
        yield Message(_SAY["trace_memory_relative"], (("peak", Kind.MEMORY, top.relative_peak_bytes),))
    else:
        values = (("peak", Kind.MEMORY, top.peak_allocated_bytes), ("reserved", Kind.MEMORY, top.peak_reserved_bytes))
        yield Message(_SAY["trace_memory_beside"] if beside_snapshot else _SAY["trace_memory"], values)
    if calls:
        count, time = sum(row.count for row in calls), sum(row.host_time_ns for row in calls)
        yield Message(_SAY["trace_allocator_calls"], (("count", Kind.COUNT, count), ("time", Kind.DURATION, time)))
