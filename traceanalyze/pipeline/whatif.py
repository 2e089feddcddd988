"""What a step would take if something about the program were different: parts, findings, kernels, ranks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

from traceanalyze.errors import UsageError, listed
from traceanalyze.model.trace import Run
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.choices import Choices, Filters, PathLike, checked, not_a_pattern, path_texts, several
from traceanalyze.pipeline.gather import ReadProgress, gather
from traceanalyze.pipeline.memory import hold_memory_files, memory_whatif_reports
from traceanalyze.pipeline.run_report import with_notes
from traceanalyze.pipeline.selection import Chosen
from traceanalyze.pipeline.whatif_answers import Wanted, answers
from traceanalyze.readers.runs import group_runs
from traceanalyze.replay.parts import PARTS, WAITS
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.contents.quality import doubts, start_left_out
from traceanalyze.report.contents.ranks import left_out, rank_label
from traceanalyze.report.contents.verdict import damage
from traceanalyze.report.contents.whatif import build_whatif
from traceanalyze.report.model import Report
from traceanalyze.rules.registry import every_rule
from traceanalyze.version import __version__

_SHORT = {"memory": "memory_ops"}
"""Other names of parts."""
_MOST = 1_000_000
"""Factor of what is faster, which then takes next to no time."""
OVERLAP = "communication"
_EMPTY_CACHE = "MEM102"
"""The rule on calls of empty_cache, whose slug names them."""
MEDIAN = "median"
Key = TypeVar("Key")
Value = TypeVar("Value")


def whatif(
    path: PathLike | Sequence[PathLike],
    *,
    without: str | Sequence[str] = (),
    faster: Mapping[str, float] | None = None,
    overlap: str | Sequence[str] = (),
    ranks: Mapping[int, str] | None = None,
    alloc_conf: str | Sequence[str] = (),
    capacity: int | str | None = None,
    steps: Chosen | None = None,
    language: str = "en",
    **filters: Unpack[Filters],
) -> Report:
    """How long a step would take if something were different, as the replay of the recorded program answers it.

    Of an allocator snapshot: what its allocator would do.

    Args:
        path: A trace, or the folder or files of the ranks of one run; or a snapshot.
        without: What would take no time: parts of the step (`data_loading`, `communication`, `sync`, `dispatch` …), or
            findings, by the id or the slug of their rule; of a snapshot `empty_cache`.
        faster: What would be so many times as fast: parts, or regular expressions of names of device work.
        overlap: `communication`: it runs beside compute that does not need it, as far as there is any.
        ranks: `{3: "median"}`: rank 3 comes when the others do, so that they never wait for it.
        alloc_conf: Of a snapshot: values of PYTORCH_ALLOC_CONF, each a question of its own.
        capacity: Of a snapshot: memory of the device, in bytes or as `40GiB`.
        steps: Steps to analyse: `5`, `0,3-5`, `2:`.
        language: Of verdict and tables: en or zh.
        filters: What is what in a recording, and what of it counts, as of `analyze`: `step_marker`, `data_regex`,
            `comm_regex`, `not_comm_regex`, `categories`, `device_peaks`, `streams`, `name_regex`, `time`.

    Returns:
        The report; `report.tables["whatif"].to_pandas()` has the gain of each and of all together.

    Raises:
        InputError: The input cannot be used.
        UsageError: Nothing is called so, or the input holds several runs.
    """
    paths, of_memory = path_texts(path), bool(alloc_conf or capacity is not None)
    pairs = _pairs("faster", faster, str), several(overlap), _pairs("ranks", ranks, int)
    wanted = asked_for(several(without), *pairs, of_memory=of_memory)
    choices = Choices(steps=steps, **checked(filters, Filters))
    if of_memory or hold_memory_files(paths):
        found = whatif_of_snapshots(paths, wanted, choices, several(alloc_conf), capacity)
    else:
        found = whatif_reports(paths, wanted, choices)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError("the input holds {count} runs ({names}); name one of them", len(found), names)
    return found[0].in_language(language)


def _pairs(name: str, given: Mapping[Key, Value] | None, kind: type) -> tuple[tuple[Key, Value], ...]:
    """What stands before and after each `=` on the command line."""
    if given is None or (isinstance(given, Mapping) and all(isinstance(key, kind) for key in given)):
        return tuple((given or {}).items())
    example = '{"communication": 1.5}' if kind is str else '{3: "median"}'
    raise UsageError("{name}={value}: write it as {name}={example}", name, str(given), example)


def whatif_reports(
    paths: Sequence[str], wanted: Wanted, choices: Choices, *, progress: ReadProgress | None = None
) -> tuple[Report, ...]:
    """A report for every run found under the paths."""
    read = gather(paths, lambda trace: trace, progress=progress)
    runs = with_notes(group_runs(read.traces, read.lost), read.notes)
    return tuple(_report(run, wanted, choices) for run in runs)


def whatif_of_snapshots(
    paths: Sequence[str],
    wanted: Wanted,
    choices: Choices,
    alloc_confs: Sequence[str],
    capacity: int | str | None,
    *,
    progress: ReadProgress | None = None,
) -> tuple[Report, ...]:
    """A report for every snapshot under the paths."""
    if not hold_memory_files(paths):
        raise UsageError("--alloc-conf and --capacity ask about allocator snapshots, and {path} is none", paths[0])
    of_traces = wanted.faster or wanted.overlap or wanted.ranks or choices != Choices()
    if of_traces or {*wanted.without} - {_EMPTY_CACHE}:
        raise UsageError("{path}: of a snapshot ask --alloc-conf, --capacity or --without empty_cache", paths[0])
    return memory_whatif_reports(
        paths, alloc_confs=alloc_confs, capacity=capacity, empties=not wanted.without, progress=progress
    )


def asked_for(
    without: Sequence[str],
    faster: Sequence[tuple[str, float]],
    overlap: Sequence[str],
    ranks: Sequence[tuple[int, str]],
    *,
    of_memory: bool = False,
) -> Wanted:
    """What users ask by names as they write them; `of_memory`: they ask more, about a snapshot."""
    if not (without or faster or overlap or ranks or of_memory):
        raise UsageError(
            "say what would be different: --without, --faster, --overlap or --rank; of a snapshot --alloc-conf or "
            "--capacity"
        )
    for name in overlap:
        if _part_name(name) != OVERLAP:
            raise UsageError("--overlap {name}: only {known} can be overlapped", name, OVERLAP)
    for rank, what in ranks:
        if what != MEDIAN:
            raise UsageError("--rank {rank}={what}: write {rank}={known}", rank, what, MEDIAN)
    return Wanted(
        tuple(dict.fromkeys(map(_without, without))),
        tuple(_faster(*each) for each in faster),
        tuple(dict.fromkeys(map(_part_name, overlap))),
        tuple(dict.fromkeys(rank for rank, _ in ranks)),
    )


def _part_name(text: str) -> str:
    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    return _SHORT.get(name, name)


def _without(text: str) -> str:
    """A part, or the id of a rule."""
    if _part_name(text) in PARTS:
        return _part_name(text)
    known = {name.lower(): rule.id for rule in every_rule() for name in (rule.id, rule.slug)}
    found = known.get(text.strip().lower().replace("_", "-"))
    if found is None:
        raise UsageError(
            "--without {text}: no part of the step and no rule is called so; parts are {known}; `traceanalyze rule` "
            "lists the rules",
            text,
            listed(PARTS),
        )
    return found


def _faster(text: str, factor: float) -> tuple[str, float]:
    """A part or a pattern, with its factor."""
    if not isinstance(factor, int | float) or not 1 < factor <= _MOST:
        written = f"{factor:g}" if isinstance(factor, float) else factor
        raise UsageError("--faster {text}={factor}: write a factor above 1, of {most} at most", text, written, _MOST)
    name = _part_name(text)
    if name in WAITS:
        raise UsageError("--faster {text}: waiting cannot be faster, only gone: --without {text}", text)
    if name in PARTS:
        return name, factor
    try:
        re.compile(text)
    except re.error as error:
        raise not_a_pattern("--faster", text, error) from error
    return text, factor


def _report(run: Run, wanted: Wanted, choices: Choices) -> Report:
    asked, lead, analyses = answers(run.traces, wanted, choices)
    used = {one.trace.origin.path for one in analyses}
    unused = [rank_label(one.origin, at) for at, one in enumerate(run.traces) if one.origin.path not in used]
    base = build_report(run.name, analyses, version=__version__, notes=run.notes, scope=Scope(True, Detail.QUIET))
    told = [*left_out(unused), *(told for one in analyses for told in damage(one))]
    ranks = [replace(rank, checks=doubts(one.checks)) for rank, one in zip(base.ranks, analyses, strict=True)]
    beside = (*start_left_out(analyses[lead]), *dict.fromkeys(told))
    return build_whatif(run.name, ranks, lead, asked, base.note_messages, beside, version=__version__)
