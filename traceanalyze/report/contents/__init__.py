"""What a report contains: from the analyses of a run's ranks to the sentences and tables of its `Report`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.window import Window, window_of
from traceanalyze.model.table import Kind, Message, Table, sentences
from traceanalyze.model.vocabulary import Detail, Mode
from traceanalyze.report.contents.unexplained import done_once, not_explained
from traceanalyze.report.contents.verdict import verdict
from traceanalyze.report.model import Late, RankReport, Report, Said, headline, remark
from traceanalyze.rules.finding import FindingKey, Outcome

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt import Excerpt, Place
    from traceanalyze.ranks.results import Cluster


class Scope(NamedTuple):
    """What the user wants in detail."""

    every_rank: bool = False
    """Show each rank in detail, not only the one to look at first."""
    detail: Detail = Detail.VERBOSE
    """How much of it."""


_SAY = sentences(
    ranks_in_full=(
        "{count} of {ranks} ranks are analysed in full, the others in summary; the table of ranks says which, and why."
    ),
    waits_alone="This rank waits {waiting} {per} ({share}) in collectives for other ranks, which are not here.",
    waits_alone_siblings=(
        "This rank waits at least {waiting} {per} ({share}) in collectives for other ranks, which are not here."
    ),
    waits_alone_rank=(
        "This rank waits {waiting} {per} ({share}) in collectives for other ranks, longest for rank {rank}, which is "
        "not here."
    ),
)


def build_report(
    name: str,
    analyses: Sequence[RankAnalysis],
    *,
    version: str,
    notes: Sequence[str] = (),
    scope: Scope | None = None,
    outcomes: Sequence[Outcome | None] = (),
    cluster: "Cluster | None" = None,
    across: Outcome | None = None,
    places: "Sequence[Mapping[FindingKey, Place]]" = (),
    whys: Sequence[str | None] = (),
    timelines: "Sequence[Excerpt | None]" = (),
) -> Report:
    """The report of a run from the analyses of its ranks, and from what the rules say about each, if they were run.

    Of several ranks also from their comparison (`cluster`), and what the rules say about that (`across`). `places` are
    where each rank's findings show in its trace, `whys` why each of many ranks was analysed in full, None where it was
    not; `timelines` all of each trace.
    """
    scope = scope or Scope()
    verdict_only = scope.detail == Detail.QUIET
    found, shown = outcomes or [None] * len(analyses), places or [{}] * len(analyses)
    whole = timelines or [None] * len(analyses)
    reports = tuple(
        _rank_report(*each, f"?{at}", across, verdict_only=verdict_only)
        for at, each in enumerate(zip(analyses, found, shown, whole, strict=True))
    )
    lead, summary, told = 0, tuple[Table, ...](), tuple[Said, ...]()
    about: tuple[Message, ...] = ()
    remarks, judged = (
        [remark(note) for note in notes],
        [at for at, why in enumerate(whys or analyses) if why is not None],
    )
    if len(reports) > 1:
        # Imported here: many runs have one rank.
        from traceanalyze.report.contents.ranks import across_ranks

        lead, label, about, summary, told = across_ranks(
            analyses, cluster, across, whys or [""] * len(analyses), verdict_only=verdict_only
        )
        if any(whys):
            counts = ("count", Kind.COUNT, len(whys) - whys.count(None)), ("ranks", Kind.COUNT, len(whys))
            remarks.append(Message(_SAY["ranks_in_full"], counts))
        if not scope.every_rank:
            remarks.append(Message("details_of_rank", (("rank", Kind.TEXT, label),)))
    if not verdict_only:
        from traceanalyze.report.contents.rank_tables import files_table

        summary = (*summary, files_table([analysis.trace for analysis in analyses]))
    return Report(
        name=name,
        version=version,
        verdict_messages=(*about, *reports[lead].verdict_messages),
        note_messages=tuple(remarks),
        summary=summary,
        ranks=reports,
        focus=(lead, *(at for at in judged if scope.every_rank and at != lead)),
        analyses=tuple(analyses),
        about_ranks=about,
        run_findings=() if across is None else across.findings,
        said=tuple(sorted((*told, *chain(*(one.said for one in reports))), key=attrgetter("order"))),
    )


def _rank_report(
    analysis: RankAnalysis,
    outcome: Outcome | None,
    places: "Mapping[FindingKey, Place]",
    whole: "Excerpt | None",
    name: str,
    across: Outcome | None,
    *,
    verdict_only: bool,
) -> RankReport:
    window = window_of(analysis.steps)
    open_parts = (*done_once(outcome, window.mean(window.total)), *not_explained(outcome, across))
    report = RankReport(
        rank=analysis.trace.origin.rank,
        path=analysis.trace.origin.path,
        mode=analysis.mode,
        resolution_ns=analysis.trace.resolution_ns,
        headline=_headline(analysis, window),
        verdict_messages=Late(
            lambda: (*(_waits(outcome, analysis) if across is None else ()), *verdict(analysis), *open_parts)
        ),
        tables=(),
        checks=(),
        hints=(),
        open_parts=open_parts,
    )
    if verdict_only:
        return report
    # Imported here: a verdict needs no tables.
    from traceanalyze.report.contents.rank_tables import timeline, with_tables

    made = with_tables(report, analysis, window, outcome, places, name)
    return made if whole is None else replace(made, timeline=timeline(whole, analysis.steps, window))


_OF_ONE = "COM120"


def _waits(outcome: Outcome | None, analysis: RankAnalysis) -> tuple[Message, ...]:
    """That a rank waits for others of which nothing was recorded, where most of its step but compute is that."""
    window = window_of(analysis.steps)
    for one in () if outcome is None else outcome.findings:
        if one.rule == _OF_ONE and analysis.partitions:
            rest = window.total - window.sum(analysis.partitions[0].compute)
            if 2 * window.count * (one.cost or 0) >= rest:
                values = tuple((each.label, Kind[each.kind], each.value) for each in one.evidence)
                return (Message(_SAY[f"waits_alone_{one.sentence}" if one.sentence else "waits_alone"], values),)
    return ()


def _headline(analysis: RankAnalysis, window: Window) -> Message:
    """File, rank, device and how many windows were analysed."""
    trace = analysis.trace
    device = "" if analysis.device is None else trace.device_name(analysis.device) or ""
    left_out = len(analysis.steps) - window.count
    key, where = _headline_key(analysis.mode, window.count, left_out), trace.origin
    if analysis.steps.iterations is not None and not left_out:
        key = key.replace("_step", "_iteration")
    return headline(
        key, where.path, window.count, device=analysis.device, name=device, rank=where.rank, left_out=left_out
    )


def _headline_key(mode: Mode, count: int, left_out: int) -> str:
    """Which sentence fits: steps or the whole trace, the device or only the host, one or several, all or some."""
    where = "about" if mode in {Mode.STEPS, Mode.WHOLE_TRACE} else "about_host"
    if mode == Mode.WHOLE_TRACE or (mode != Mode.STEPS and count <= 1):
        return f"{where}_trace"
    amount = "step" if count == 1 else "steps"
    return f"{where}_{amount}_partial" if left_out else f"{where}_{amount}"
