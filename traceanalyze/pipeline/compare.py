"""Comparing two profiles: each side is read once, and of several ranks only the one that is compared is kept."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from traceanalyze.analyses.communication.collectives import description_rows, listed_ranks
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.frames import user_frames
from traceanalyze.analyses.idle.host_state import host_states
from traceanalyze.analyses.idle.idle import step_pieces
from traceanalyze.analyses.idle.syncs import held_up
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import SECTIONS, CompareOptions, Side, median_step, side
from traceanalyze.errors import Lost, Phrase, Unmatched, UsageError
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import coverage, merge
from traceanalyze.model.native import give_back
from traceanalyze.model.trace import Run, Trace
from traceanalyze.model.vocabulary import Cause, Detail, DeviceClass
from traceanalyze.pipeline.choices import Choices, Filters, PathLike, checked, path_text, several
from traceanalyze.pipeline.gather import ReadProgress, gather, without_events
from traceanalyze.pipeline.recordings import (
    IDS,
    MOST_TOGETHER,
    OF_TABLES,
    AnalysedRank,
    analysed,
    analysed_rank,
    for_rules,
    foreign,
    without_bulk,
    without_ids,
)
from traceanalyze.pipeline.run_report import SideBySide, side_by_side
from traceanalyze.pipeline.selection import Chosen, no_such_number, step_chooser
from traceanalyze.ranks.results import EVEN, Cluster, leading
from traceanalyze.readers.runs import group_runs
from traceanalyze.report.contents.changed import Beside
from traceanalyze.report.contents.compare import build_compare
from traceanalyze.report.model import CompareReport
from traceanalyze.rules.config import Plan
from traceanalyze.rules.finding import Outcome
from traceanalyze.version import __version__

MEDIAN = "median"


class SideChoices(NamedTuple):
    """What is compared of one side."""

    name: str
    """base or candidate, for messages."""
    path: str
    steps: Chosen | None = None
    """Numbers as of `analyze`, or `median`; None: all complete steps."""
    rank: int | None = None
    """None: the same on both sides, see `_wanted`."""

    def option(self, what: str) -> str:
        """Name of an option for this side on the command line."""
        return f"--{'base' if self.name == 'base' else 'comparison'}-{what}"

    def options(self, choices: Choices) -> Options:
        """For the analyses of this side."""
        common = choices.options()
        if self.steps is None:
            return common
        chosen = median_step if self.steps == MEDIAN else step_chooser(self.steps, self.option("step"))
        return common._replace(steps=chosen)


@dataclass(frozen=True)
class CompareChoices:
    """What is compared with what, and how."""

    base: SideChoices
    candidate: SideChoices
    common: Choices = field(default_factory=Choices)
    """Regular expressions and categories, for both sides."""
    options: CompareOptions = field(default_factory=CompareOptions)
    """Without names of operators, which are a text here."""
    op_name_map: str | None = None
    """JSON, a Python dictionary, or the name of a file that holds one."""

    def listed(self) -> dict[str, str]:
        """Options in effect, by their names on the command line."""
        options = self.options
        found = {
            **{side.option("step"): side.steps for side in (self.base, self.candidate)},
            **{side.option("rank"): side.rank for side in (self.base, self.candidate)},
            "sections": ", ".join(name for name in SECTIONS if name in options.sections),
            "--disable-details": not options.details,
            "--disable-module": not options.modules,
            "--max-kernel-num": options.max_kernel_num,
            "--op-name-map": self.op_name_map,
            "--use-input-shape": options.use_input_shape,
            "--rank-anyway": options.rank_anyway,
            "--step-marker": self.common.step_marker,
            "--data-regex": self.common.data_regex,
            "--comm-regex": self.common.comm_regex,
            "--not-comm-regex": self.common.not_comm_regex,
            "--category": ", ".join(several(self.common.categories)),
            "--device-peaks": self.common.device_peaks,
            "--streams": self.common.streams,
            "--name-regex": self.common.name_regex,
            "--time": self.common.time,
        }
        # Rank 0 is a choice.
        return {name: str(value) for name, value in found.items() if value is not False and value not in (None, "")}


def name_map(text: str) -> Mapping[str, str]:
    """Names of operators to other names: JSON, a Python dictionary as text, or a file that holds either."""
    content = text
    if not text.lstrip().startswith("{"):
        try:
            content = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or Phrase("not UTF-8")
            raise UsageError(
                "--op-name-map {text}: neither a dictionary nor a file that can be read: {why}", text, reason
            ) from error
    found = _literal(content)
    if not isinstance(found, dict) or not all(isinstance(name, str) for item in found.items() for name in item):
        raise UsageError('--op-name-map {text}: write names in braces: {{"npu::name": "aten::name"}}', text)
    return found


def _literal(content: str) -> object:
    """What JSON or a Python literal says; None when it is neither."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(content.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def compare(
    base: PathLike,
    candidate: PathLike,
    *,
    base_step: Chosen | None = None,
    comparison_step: Chosen | None = None,
    base_rank: int | None = None,
    comparison_rank: int | None = None,
    sections: str | Sequence[str] = (),
    details: bool = True,
    modules: bool = True,
    max_kernel_num: int | None = None,
    op_name_map: Mapping[str, str] | str | None = None,
    use_input_shape: bool = False,
    rank_anyway: bool = False,
    language: str = "en",
    **filters: Unpack[Filters],
) -> CompareReport:
    """What makes two profiles differ, from the whole step down to single operators.

    Args:
        base: The profile to compare with: a file or a folder.
        candidate: The profile under test.
        base_step: Steps of the base: `5`, `0,3-5`, `2:` or `median`; by default all complete steps, their mean.
        comparison_step: The same of the candidate.
        base_rank: Rank of the base; by default the same on both sides, of those that work longest the one that changed
            more.
        comparison_rank: The same of the candidate.
        sections: Any of profiling, operator, memory, communication, api, kernel; all by default.
        details: Match single calls too.
        modules: Compare module by module where both sides recorded modules.
        max_kernel_num: A matched pair of calls with more kernels than this is shown as the calls inside it.
        op_name_map: Names of operators → names to match them under, or a file (JSON) of them.
        use_input_shape: Match operators by shapes, too.
        rank_anyway: Rank causes although the sides do not do the same work.
        language: Of verdict, remarks and tables: en or zh.
        filters: What is what on both sides, and what of them counts, as of `analyze`: `step_marker`, `data_regex`,
            `comm_regex`, `not_comm_regex`, `categories`, `streams`, `name_regex`, `time`.

    Returns:
        The comparison; `report.tables["causes"].to_pandas()` and the like are its tables.

    Raises:
        InputError: A side cannot be read.
        UsageError: The options do not fit the input.
    """
    wanted = frozenset(several(sections)) or frozenset(SECTIONS)
    unknown = wanted - frozenset(SECTIONS)
    if unknown:
        raise UsageError("no section {names}; there is {known}", ", ".join(sorted(unknown)), ", ".join(SECTIONS))
    return compare_report(
        CompareChoices(
            base=SideChoices("base", path_text(base), base_step, base_rank),
            candidate=SideChoices("candidate", path_text(candidate), comparison_step, comparison_rank),
            common=Choices(**checked(filters, Filters)),
            options=CompareOptions(
                sections=wanted,
                details=details,
                modules=modules,
                max_kernel_num=max_kernel_num,
                use_input_shape=use_input_shape,
                rank_anyway=rank_anyway,
            ),
            op_name_map=op_name_map if isinstance(op_name_map, str | None) else json.dumps(op_name_map, default=str),
        )
    ).in_language(language)


def compare_report(choices: CompareChoices, *, progress: ReadProgress | None = None) -> CompareReport:
    """The comparison that the choices describe."""
    return compare_reports(choices, progress=progress)[0]


def compare_reports(
    choices: CompareChoices, *, progress: ReadProgress | None = None, unmarked: bool = False
) -> tuple[CompareReport, ...]:
    """The comparison that the choices describe; then if wanted that of the same ranks as if no steps were marked."""
    options, both = choices.options, (choices.base, choices.candidate)
    # What cannot be understood is an error before anything is read.
    if choices.op_name_map:
        options = replace(options, op_name_map=name_map(choices.op_name_map))
    marked = [choices.common, *((choices.common._replace(step_marker="(?!)"),) if unmarked else ())]
    analyses = [[each.options(common) for common in marked] for each in both]
    rules = choices.common.rules()
    read = [_read(each, wanted, rules, progress) for each, wanted in zip(both, analyses, strict=True)]
    chosen = zip(read, _wanted(read), analyses, strict=True)
    base, candidate = (_load(one, wanted, analysis, rules) for one, wanted, analysis in chosen)
    notes = [*(("base", note) for note in base.notes), *(("candidate", note) for note in candidate.notes)]
    given, beside = choices.listed(), (base.beside, candidate.beside)
    return tuple(
        build_compare(compare_sides(*sides, options), version=__version__, notes=notes, options=given, beside=beside)
        for sides in zip(base.sides, candidate.sides, strict=True)
    )


class _Ranks:
    """What the analysis says of each of several traces, and one of them: that with the longest step."""

    def __init__(self, options: Sequence[Options], rules: Plan) -> None:
        self._options, self._rules = options, rules
        self._longest = 0
        self.kept: Trace | None = None
        self.analysed: list[dict[str, AnalysedRank]] = [{} for _ in options]
        """By path; empty where there is one trace. Rules look at the first."""

    def use(self, trace: Trace) -> Trace:
        """Look at a trace, and return what is needed to group it."""
        if self.kept is None:
            self.kept = trace
            return without_events(trace)
        if not self.analysed[0]:
            self._longest = self._analyse(self.kept)
        length = self._analyse(trace)
        if length > self._longest:
            self.kept, self._longest = trace, length
        return without_events(trace)

    def _analyse(self, trace: Trace) -> int:
        """Its mean step, ns."""
        few, path = len(self.analysed[0]) < MOST_TOGETHER, trace.origin.path
        one = analysed_rank(trace, self._options[0], self._rules, detail=Detail.NORMAL, together=few)
        self.analysed[0][path] = without_bulk(one)
        if not few:
            self.analysed[0] = {path: each._replace(program=None) for path, each in self.analysed[0].items()}
        for known, options in zip(self.analysed[1:], self._options[1:], strict=True):
            other = analysed_rank(trace, options, Plan(()), detail=Detail.NORMAL, together=False)
            known[path] = without_bulk(other)
        return _mean(one)


def _mean(one: AnalysedRank) -> int:
    window = window_of(one.analysis.steps)
    return window.mean(window.total)


_WORK_LOST = Lost(
    "the recording lacks work that the profile's own numbers tell of: what seems to be gone or new may be what is lost"
)


_BY_NOW = (host_states, PhaseRanges, user_frames)
"""What a side is computed from, and is large or holds what is."""
_OF_RULES = frozenset({"concrete", "blocks_per_sm"})
"""Arguments that only rules look at."""


class _Loaded(NamedTuple):
    sides: tuple[Side, ...]
    """By each of the options."""
    notes: tuple[str, ...]
    """Remarks on its input."""
    beside: Beside


class _Read(NamedTuple):
    """A side that was read; which rank is compared the other one tells, too."""

    run: Run
    notes: tuple[str, ...]
    """Remarks on its input."""
    ranks: _Ranks
    beside: SideBySide
    """Without its ranks."""
    clusters: tuple[Cluster | None, ...]
    """How its ranks compare, by each of the options."""
    asked: int | None
    """Position of the rank asked for."""
    lead: int
    """Of the one that works longest: the others wait for it."""
    times: Mapping[int, int]
    """By rank how long it works by itself, ns, else its step; of recordings that are whole, if any is."""


def _read(chosen: SideChoices, options: Sequence[Options], rules: Plan, progress: ReadProgress | None) -> _Read:
    ranks, (path, name) = _Ranks(options, rules), _named_run(chosen.path)
    inputs = gather([path], ranks.use, progress=progress)
    run = _only(group_runs(inputs.traces, inputs.lost), chosen, path, name)
    found, *others = (
        [known[one.origin.path].with_trace(one) for one in run.traces if known] for known in ranks.analysed
    )
    beside, numbers, notes = side_by_side(found, rules), [one.origin.rank for one in run.traces], run.notes
    clusters = beside.cluster, *(side_by_side(each, None).cluster for each in others)
    asked = _asked(chosen, run.name, numbers)
    if not found:
        times = {rank: 0 for rank in numbers if rank is not None}
        return _Read(run, (*inputs.notes, *notes), ranks, beside, clusters, asked, 0, times)
    # Imported here: many profiles have one rank.
    from traceanalyze.report.contents.ranks import whole_recordings

    steps, whole = list(map(_mean, found)), whole_recordings([one.analysis for one in found])
    own = beside.by_rank(beside.cluster.own_time) if beside.cluster is not None else [None] * len(found)
    rows = [row for row in zip(numbers, steps, own, whole, strict=True) if row[3] or not any(whole)]
    told = all(alone is not None for _, _, alone, _ in rows)
    times = {rank: alone if told and alone is not None else step for rank, step, alone, _ in rows if rank is not None}
    lead = leading(steps, own, whole)
    for known in ranks.analysed:
        known.clear()
    return _Read(run, (*inputs.notes, *notes), ranks, beside._replace(ranks=()), clusters, asked, lead, times)


class _Wanted(NamedTuple):
    """The rank of a side that is compared."""

    at: int
    choice: str
    """See `SideInfo.rank_choice`."""
    slowest: int | None = None
    """The rank that works longest, if it is another one."""


def _wanted(read: Sequence[_Read]) -> Iterator[_Wanted]:
    """Of each side the rank that was asked for, else the same on both, so that one rank's work is compared.

    Of those that work longest on either side it is the one whose own time differs more: that is what changed. Where
    none of these is on both sides, it is on each the one that works longest.
    """
    ranks = [[trace.origin.rank for trace in one.run.traces] for one in read]
    places = [one.lead if one.asked is None else one.asked for one in read]
    free = [one for one in read if one.asked is None]
    deciding = [one.asked is not None or len(free) == len(read) for one in read]
    named = [own[at] for own, at, decides in zip(ranks, places, deciding, strict=True) if decides]
    common = [rank for rank in named if rank is not None and all(rank in one.times for one in free)]
    if free and common:
        base, candidate = (one.times for one in read)
        chosen = max(common, key=lambda rank: abs(candidate.get(rank, 0) - base.get(rank, 0)))
        places = [own.index(chosen) for own in ranks]
    for one, own, at in zip(read, ranks, places, strict=True):
        if one.asked is not None or len(own) == 1 or at == one.lead:
            yield _Wanted(at, "asked" if one.asked is not None else "only" if len(own) == 1 else "decides")
        else:
            rank, lead = own[at], own[one.lead]
            slower = rank is not None and lead is not None and one.times[lead] > EVEN * one.times[rank]
            yield _Wanted(at, "same", lead if slower else None)


def _load(read: _Read, wanted: _Wanted, options: Sequence[Options], rules: Plan) -> _Loaded:
    ranks, beside, found = read.ranks, read.beside, read.run.traces[wanted.at]
    (trace, ranks.kept), file = (ranks.kept, None), found.origin.path
    if trace is None or trace.origin.path != file:
        # Which rank is compared only all of them tell, and one is in memory at a time.
        (trace,) = gather([file], lambda one: one, progress=None).traces
    trace = replace(trace, origin=found.origin)
    sides = [side(trace, each, ranks=len(read.run.traces), rank_choice=wanted.choice) for each in options]
    del trace
    for at, (one, cluster) in enumerate(zip(sides, read.clusters, strict=True)):
        waited = _waited(cluster, wanted.at, one.info.steps)
        unrecorded = _unrecorded(one.context, {each.origin.rank for each in read.run.traces})
        info = replace(one.info, waited=waited, slowest=wanted.slowest, unrecorded=unrecorded)
        context = one.context if foreign(rules) else for_rules(without_ids(one.context))
        sides[at] = one._replace(info=info, context=context)
    context = sides[0].context
    own = (note for note in context.trace.read.notes if isinstance(note, Lost | Unmatched))
    lost = [_WORK_LOST] if context.doubt == "work_lost" else []
    outcome, across = (beside.outcomes or [_outcome(context, rules)])[wanted.at], beside.across or Outcome()
    outcome = outcome._replace(
        findings=(*across.findings, *outcome.findings), not_applicable=(*across.not_applicable, *outcome.not_applicable)
    )
    of_ranks = frozenset(each.rule for each in across.findings)
    about = Beside(outcome, beside.cluster, _named(context, outcome), of_ranks)
    del context
    bulk = IDS | OF_TABLES | _OF_RULES
    connected = tuple(one._replace(context=one.context.connected(_BY_NOW, bulk)) for one in sides)
    del sides
    give_back()
    return _Loaded(connected, (*read.notes, *own, *lost), about)


def _named_run(path: str) -> tuple[str, str]:
    """A path, and which of several runs below it is meant: `folder#name`."""
    below, mark, name = path.rpartition("#")
    return (below, name) if mark and not Path(path).exists() and Path(below).exists() else (path, "")


def _only(runs: Sequence[Run], chosen: SideChoices, path: str, name: str) -> Run:
    """The run that is named; without a name the only one there is."""
    found = [run for run in runs if not name or run.name == name]
    if len(found) == 1:
        return found[0]
    where, names = f"{chosen.name} {path}", ", ".join(run.name for run in runs)
    if not found:
        raise UsageError("{where}: holds no run {name}; there is {known}", where, name, names)
    raise UsageError(
        "{where}: holds {count} runs ({names}); name one of them: {example}",
        *(where, len(runs), names, f"{path}#{runs[0].name}"),
    )


def _waited(cluster: Cluster | None, rank: int, steps: Sequence[str]) -> int | None:
    """How long a rank waits for the others in its communication, ns over some steps; None where not all ranks tell."""
    if cluster is None or cluster.waits is None or cluster.waits.bound or rank not in cluster.places:
        return None
    of_rank, known = cluster.waits.by_step[cluster.places.index(rank)], list(cluster.steps)
    return int(of_rank[[known.index(step) for step in steps]].sum()) if set(steps) <= set(known) else None


def _unrecorded(context: Context, recorded: Set[int | None]) -> tuple[int, ...] | None:
    """Members of the groups of its collectives that are not among the recordings; None where no member is known."""
    event = context.once(device_work).event
    rows = description_rows(context, event[context.device.klass[event] == DeviceClass.COMM])
    codes = {
        field: distinct(context.trace.events.numbers(field, rows, -1)).tolist() for field in ("group_ranks", "group")
    }
    text = context.trace.strings.text
    members = {rank for code in codes["group_ranks"] if code >= 0 for rank in listed_ranks(text(code))}
    # Where the ranks are not listed, a group has a name.
    members |= {rank for code in codes["group"] if code >= 0 for rank in context.trace.groups.get(text(code), ())}
    return tuple(sorted(members - recorded)) if members else None


def _named(context: Context, outcome: Outcome) -> int:
    """Idle time of the analysed steps in which the trace shows nothing of the host, and that has a reason, ns.

    A finding is about it, or the host has waited for the device before.
    """
    if not context.devices:
        return 0
    pieces, _ = context.once(step_pieces)
    untraced = pieces.cause == Cause.UNTRACED
    told = [one.intervals for one in outcome.findings if one.intervals is not None and one.explains and not one.once]
    spans = np.concatenate((np.zeros((0, 2), np.int64), *told))
    covered = coverage(merge(spans[:, 0], spans[:, 1]), pieces.start, pieces.end)
    return int(np.where(held_up(context, pieces) >= 0, pieces.end - pieces.start, covered)[untraced].sum())


def _outcome(context: Context, rules: Plan) -> Outcome:
    """What the rules say of a rank that is alone."""
    # What only the rules need is dropped with them.
    one = analysed(context.apart(), rules, detail=Detail.NORMAL, alone=True)
    return side_by_side([one], rules).outcomes[0]


def _asked(chosen: SideChoices, run: str, known: Sequence[int | None]) -> int | None:
    """Position of the rank asked for, if one was."""
    if chosen.rank is None:
        return None
    if chosen.rank in known:
        return known.index(chosen.rank)
    option = Phrase("{option} {rank}", chosen.option("rank"), chosen.rank)
    if not any(rank is not None for rank in known):
        raise UsageError("{option}: the profile of {run} does not tell any rank", option, run)
    raise no_such_number(option, Phrase("rank"), str(chosen.rank), [rank for rank in known if rank is not None])
