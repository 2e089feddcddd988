"""Comparing two profiles: each side is read once, and of several ranks only the one that is compared is kept."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, Unpack

from traceanalyze.analyses.options import Options
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import SECTIONS, CompareOptions, Side, mean_step, median_step, side
from traceanalyze.errors import Lost, Phrase, Unmatched, UsageError
from traceanalyze.model.trace import Run, Trace
from traceanalyze.pipeline.choices import Choices, Filters, PathLike, checked, path_text, several
from traceanalyze.pipeline.gather import ReadProgress, gather, sampled
from traceanalyze.pipeline.selection import Chosen, no_such_number, step_chooser
from traceanalyze.readers.runs import group_runs
from traceanalyze.report.contents.compare import build_compare
from traceanalyze.report.model import CompareReport
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
    """None: the rank whose step takes longest."""

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
            "--step-marker": self.common.step_marker,
            "--data-regex": self.common.data_regex,
            "--comm-regex": self.common.comm_regex,
            "--not-comm-regex": self.common.not_comm_regex,
            "--category": ", ".join(several(self.common.categories)),
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
    language: str = "en",
    **filters: Unpack[Filters],
) -> CompareReport:
    """What makes two profiles differ, from the whole step down to single operators.

    Args:
        base: The profile to compare with: a file or a folder.
        candidate: The profile under test.
        base_step: Steps of the base: `5`, `0,3-5`, `2:` or `median`; by default all complete steps, their mean.
        comparison_step: The same of the candidate.
        base_rank: Rank of the base; by default the one whose step takes longest.
        comparison_rank: The same of the candidate.
        sections: Any of profiling, operator, memory, communication, api, kernel; all by default.
        details: Match single calls too.
        modules: Compare module by module where both sides recorded modules.
        max_kernel_num: A matched pair of calls with more kernels than this is shown as the calls inside it.
        op_name_map: Names of operators → names to match them under, or a file (JSON) of them.
        use_input_shape: Match operators by shapes, too.
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
            ),
            op_name_map=op_name_map if isinstance(op_name_map, str | None) else json.dumps(op_name_map, default=str),
        )
    ).in_language(language)


def compare_report(choices: CompareChoices, *, progress: ReadProgress | None = None) -> CompareReport:
    """The comparison that the choices describe."""
    options, both = choices.options, (choices.base, choices.candidate)
    # What cannot be understood is an error before anything is read.
    if choices.op_name_map:
        options = replace(options, op_name_map=name_map(choices.op_name_map))
    analyses = [each.options(choices.common) for each in both]
    (base, base_notes), (candidate, candidate_notes) = (
        _load(each, wanted, progress) for each, wanted in zip(both, analyses, strict=True)
    )
    notes = [*(("base", note) for note in base_notes), *(("candidate", note) for note in candidate_notes)]
    comparison = compare_sides(base, candidate, options)
    return build_compare(comparison, version=__version__, notes=notes, options=choices.listed())


class _Keeper:
    """Keeps one trace of those that are read: that of the rank asked for, else that with the longest mean step.

    One that is cut short only where no other is whole.
    """

    def __init__(self, rank: int | None, options: Options) -> None:
        self._rank, self._options = rank, options
        self._mean: Fraction | None = None
        self.kept: Trace | None = None

    def use(self, trace: Trace) -> Trace:
        """Look at a trace, keep it if it is the one, and return what is needed to group it."""
        small = sampled(trace)
        if self._rank is not None:
            if trace.origin.rank == self._rank:
                self.kept = trace
        elif self.kept is None or trace.read.whole > self.kept.read.whole:
            self.kept, self._mean = trace, None
        elif trace.read.whole == self.kept.read.whole:
            # The steps of the only trace need no look.
            self._mean = mean_step(self.kept, self._options) if self._mean is None else self._mean
            mean = mean_step(trace, self._options)
            if mean > self._mean:
                self.kept, self._mean = trace, mean
        return small


_WORK_LOST = Lost(
    "the recording lacks work that the profile's own numbers tell of: what seems to be gone or new may be what is lost"
)


def _load(chosen: SideChoices, options: Options, progress: ReadProgress | None) -> tuple[Side, tuple[str, ...]]:
    """One side, and the remarks on its input."""
    keeper = _Keeper(chosen.rank, options)
    inputs = gather([chosen.path], keeper.use, progress=progress)
    runs = group_runs(inputs.traces, inputs.lost)
    if len(runs) > 1:
        where, names = f"{chosen.name} {chosen.path}", ", ".join(run.name for run in runs)
        raise UsageError("{where}: holds {count} runs ({names}); name one of them", where, len(runs), names)
    run = runs[0]
    choice = "asked" if chosen.rank is not None else "decides" if len(run.traces) > 1 else "only"
    found = side(_kept(chosen, keeper.kept, run), options, ranks=len(run.traces), rank_choice=choice)
    own = (note for note in found.context.trace.read.notes if isinstance(note, Lost | Unmatched))
    lost = [_WORK_LOST] if found.context.doubt == "work_lost" else []
    return found, (*inputs.notes, *run.notes, *own, *lost)


def _kept(chosen: SideChoices, kept: Trace | None, run: Run) -> Trace:
    """The trace that was kept, with the rank that its run gives it."""
    if chosen.rank is None and kept is not None:
        origins = {trace.origin.path: trace.origin for trace in run.traces}
        return replace(kept, origin=origins.get(kept.origin.path, kept.origin))
    wanted = [trace for trace in run.traces if trace.origin.rank == chosen.rank]
    if not wanted:
        known = [rank for rank in run.ranks if rank is not None]
        option = Phrase("{option} {rank}", chosen.option("rank"), chosen.rank)
        if not known:
            raise UsageError("{option}: the profile of {run} does not tell any rank", option, run.name)
        raise no_such_number(option, Phrase("rank"), str(chosen.rank), known)
    if kept is None:
        # Its rank follows only from the names of all files together.
        kept = gather([wanted[0].origin.path], lambda trace: trace, progress=None).traces[0]
    return replace(kept, origin=wanted[0].origin)
