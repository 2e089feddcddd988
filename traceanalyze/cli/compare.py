"""`traceanalyze compare`: what makes two profiles differ. Takes the options of `msprof-analyze compare`, too."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.cli.guard import DEBUG_VARIABLE
from traceanalyze.cli.output import show, write
from traceanalyze.errors import UsageError
from traceanalyze.locales import Texts
from traceanalyze.report.formats import FORMATS, TABLES, endings, names
from traceanalyze.report.output import Target, once_each, refuse_input, rendered
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from traceanalyze.report.model import CompareReport

_NAME = "performance_comparison_result_"
"""What msprof-analyze calls its workbook, before the time."""


class Layout(StrEnum):
    """Whose workbook is written."""

    OWN = "own"
    MSPROF = "msprof"


def sides(paths: Sequence[str], *, base: str | None, candidate: str | None) -> tuple[str, str]:
    """Base and candidate: both by position, or each by its option."""
    rest = list(paths)
    if base is None and rest:
        base = rest.pop(0)
    if candidate is None and rest:
        candidate = rest.pop(0)
    if base is None or candidate is None:
        raise UsageError("compare: give two profiles, BASE CANDIDATE, or -bp BASE -d CANDIDATE")
    if rest:
        raise UsageError("compare: two profiles at a time; there is also {path}", rest[0])
    return base, candidate


def compare_target(
    output: str | None, format_: str | None, *, inputs: Sequence[str], overwrite: bool = False
) -> Target:
    """Where the comparison is written beside the console, if anywhere, checked before any work is done."""
    if output is None or output == "-" or format_ in TABLES:
        return Target.of(output, format_, inputs=inputs, overwrite=overwrite)
    path = Path(output)
    is_folder = path.is_dir() or output.endswith(("/", "\\"))
    files = {FORMATS[name].ending for name in names("compare") if name not in TABLES} - {""}
    if not is_folder and (path.suffix.lower() in files or (format_ and path.exists())):
        return Target.of(output, format_, inputs=inputs, overwrite=overwrite)
    refuse_input(path, inputs)
    if not is_folder and (path.suffix or path.exists()):
        known = endings("compare", choice=True)
        raise UsageError("{output}: end the name in {known} (a file) or in / (a folder)", output, known)
    chosen = format_ or "xlsx"
    ending = FORMATS[chosen].ending or ".md"
    name = f"{_NAME}{datetime.now(UTC):%Y%m%d%H%M%S}{ending}"
    return Target(path / name, chosen, make_folder=path)


def in_layout_of_msprof(target: Target) -> Target:
    """The workbook as msprof-analyze lays it out; nothing else has such a layout."""
    if target.format != "xlsx":
        raise UsageError("--layout msprof: is of a workbook; give -o FILE.xlsx or a folder")
    return target._replace(format="msprof")


def write_compare(
    report: "CompareReport", targets: Sequence[Target], texts: Texts, view: View, *, written: "CompareReport"
) -> None:
    """Show the comparison, and write it, or one like it, where it belongs."""
    if all(target.path is not None for target in targets):
        show(rendered([report], Target(None, "console"), texts, view))
    for folder in (target.make_folder for target in targets if target.make_folder is not None):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError("{path}: cannot be made: {why}", folder, error.strerror) from error
    write([written], targets, texts, view)


def compare(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BASE CANDIDATE]", help="The profile to compare with, and the one under test."),
    ] = None,
    *,
    candidate: Annotated[str | None, options.both("--profiling_path", "The candidate.", "-d", metavar="PATH")] = None,
    base: Annotated[str | None, options.both("--benchmark_profiling_path", "The base.", "-bp", metavar="PATH")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            *options.spelled("--output_path"),
            metavar="DIR|FILE",
            help=(
                "Write the workbook into DIR (made if need be), named by the time, or to FILE "
                f"({endings('compare')}). Repeatable. Default: only the console."
            ),
        ),
    ] = None,
    format_: Annotated[
        options.CompareFormat | None,
        typer.Option("--format", help="What to write; default: by the name of the output, else xlsx, else console."),
    ] = None,
    overwrite: options.Overwrite = False,
    layout: Annotated[
        Layout,
        typer.Option(
            help=(
                "Of the workbook: ours, or that of msprof-analyze for scripts that read it (sheets, headings, units "
                "and sums over all steps)."
            )
        ),
    ] = Layout.OWN,
    profiling: Annotated[bool, options.both("--enable_profiling_compare", "The overall table.")] = False,
    operator: Annotated[bool, options.both("--enable_operator_compare", "Operators and modules.")] = False,
    memory: Annotated[bool, options.both("--enable_memory_compare", "Memory of operators.")] = False,
    communication: Annotated[bool, options.both("--enable_communication_compare", "Collectives.")] = False,
    api: Annotated[bool, options.both("--enable_api_compare", "Host operators and runtime calls.")] = False,
    kernel: Annotated[bool, options.both("--enable_kernel_compare", "Kernels, of any vendors.")] = False,
    disable_details: Annotated[bool, options.both("--disable_details", "Totals only, no single calls.")] = False,
    disable_module: Annotated[
        bool, options.both("--disable_module", "Operators only, even if modules are recorded.")
    ] = False,
    base_step: Annotated[
        str | None,
        options.both(
            "--base-step",
            "Steps of the base: 5, 0,3-5, 2:, or median. Default: all complete steps, their mean.",
            metavar="LIST",
        ),
    ] = None,
    comparison_step: Annotated[
        str | None,
        typer.Option(
            *options.spelled("--comparison-step"),
            "--comparsion_step",
            metavar="LIST",
            help="Steps of the candidate, written the same way.",
        ),
    ] = None,
    base_rank: Annotated[
        int | None,
        options.both(
            "--base-rank",
            "Rank of the base. Default: the same on both sides, of the slowest the one that changed more.",
            metavar="N",
        ),
    ] = None,
    comparison_rank: Annotated[
        int | None, options.both("--comparison-rank", "Rank of the candidate.", metavar="N")
    ] = None,
    max_kernel_num: Annotated[
        int | None,
        options.both(
            "--max-kernel-num",
            "Show the calls inside a matched pair that launches more than N kernels, instead of the pair.",
            metavar="N",
            min=1,
        ),
    ] = None,
    op_name_map: Annotated[
        str | None,
        options.both(
            "--op-name-map",
            'Operators to match under other names: {"npu::a": "aten::a"}, or a file that holds this.',
            metavar="MAP|FILE",
        ),
    ] = None,
    use_input_shape: Annotated[bool, options.both("--use-input-shape", "Match operators by shapes, too.")] = False,
    rank_anyway: Annotated[
        bool, options.both("--rank-anyway", "Rank causes although the sides do not do the same work.")
    ] = False,
    use_kernel_type: Annotated[
        bool, options.both("--use-kernel-type", "Accepted: kernels by type are always compared, too.")
    ] = False,
    gpu_flow_cat: Annotated[
        str | None,
        options.both(
            "--gpu-flow-cat",
            "Accepted, obsolete: launches are found by their correlation, whatever flows are called.",
            metavar="CAT",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Accepted: there are no checks of owner or size to skip.")
    ] = False,
    top: options.Top = 5,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
    streams: options.Streams = None,
    name_regex: options.NameRegex = None,
    time: options.Time = None,
    step_marker: options.StepMarker = None,
    data_regex: options.DataRegex = None,
    comm_regex: options.CommRegex = None,
    not_comm_regex: options.NotCommRegex = None,
    category: options.Category = None,
    device_peaks: options.DevicePeaks = None,
    debug: Annotated[bool, typer.Option("--debug", hidden=True)] = False,
) -> None:
    """Say what makes two profiles differ: any device against any other.

    With `-o` the workbook is written, too. Sections: all, unless some are named by `--enable_…`.
    """
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress
    from traceanalyze.comparison.side import SECTIONS, CompareOptions
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.compare import CompareChoices, SideChoices, compare_reports
    from traceanalyze.report.view import View

    if debug:
        os.environ[DEBUG_VARIABLE] = "1"
    base_path, candidate_path = sides(paths or [], base=base, candidate=candidate)
    flags = profiling, operator, memory, communication, api, kernel
    # No single call stands on it.
    one_screen = not (whole or verbose or output or layout == Layout.MSPROF) and format_ in {None, "console"}
    what = step_marker, data_regex, comm_regex, not_comm_regex, tuple(category or ()), device_peaks
    choices = CompareChoices(
        base=SideChoices("base", base_path, base_step, base_rank),
        candidate=SideChoices("candidate", candidate_path, comparison_step, comparison_rank),
        common=Choices(None, None, *what, streams=streams, name_regex=name_regex, time=time),
        options=CompareOptions(
            sections=frozenset(compress(SECTIONS, flags)) or frozenset(SECTIONS),
            details=not disable_details and not one_screen,
            modules=not disable_module,
            max_kernel_num=max_kernel_num,
            use_input_shape=use_input_shape,
            rank_anyway=rank_anyway,
        ),
        op_name_map=op_name_map,
    )
    if layout == Layout.MSPROF:
        # Where nothing is said, msprof-analyze writes into the folder one is in.
        output = output or ["./"]
    once_each(output or ())
    inputs = base_path, candidate_path
    targets = [compare_target(each, format_, inputs=inputs, overwrite=overwrite) for each in output or (None,)]
    if layout == Layout.MSPROF:
        targets = [in_layout_of_msprof(target) for target in targets]
    words = texts(lang)
    view = View.of(top, quiet=quiet, verbose=verbose, whole=whole)
    with Progress(words, wanted=not quiet) as progress:
        # There nothing is a step: all that was recorded is compared.
        unmarked = layout == Layout.MSPROF and not (step_marker or base_step or comparison_step)
        found = compare_reports(choices, progress=progress, unmarked=unmarked)
    write_compare(found[0], targets, words, view, written=found[-1])
