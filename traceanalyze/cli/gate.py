"""`traceanalyze gate`: is the candidate slower or bigger than the baseline by more than the budget?"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.cli.guard import in_language, tell
from traceanalyze.cli.output import show, tell_written, write
from traceanalyze.errors import Phrase, UsageError, listed
from traceanalyze.locales import Texts
from traceanalyze.report.formats import FORMATS, TABLES, names
from traceanalyze.report.output import Target, once_each, refuse_input, refuse_other, rendered
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from traceanalyze.report.model import GateReport

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
_FORMATS = names("gate")


def wanted(
    formats: Sequence[str], outputs: Sequence[str], inputs: Sequence[str], *, overwrite: bool = False
) -> tuple[Target, ...]:
    """What `--format F[=PATH]` and `--output` ask for."""
    once_each(outputs)
    found = [Target.of(each, None, inputs=inputs, command="gate", overwrite=overwrite) for each in outputs]
    for text in formats or ("console",):
        name, equals, path = text.partition("=")
        if name not in _FORMATS or (equals and not path):
            raise UsageError("--format {text}: write F or F=PATH with one of {known}", text, listed(_FORMATS))
        if FORMATS[name].needs or FORMATS[name].binary or name in TABLES:
            found.append(Target.of(path or None, name, inputs=inputs, option=f"--format {name}=", overwrite=overwrite))
            continue
        if path:
            refuse_input(Path(path), inputs)
            if not overwrite:
                refuse_other(Path(path))
        found.append(Target(Path(path) if path and path != "-" else None, name))
    return tuple(found)


def write_gate(report: "GateReport", targets: Sequence[Target], texts: Texts, view: View) -> int:
    """Write every format; the exit code, 0 where all went well.

    A format that fails keeps none of the others from being written.
    """
    codes = [0]
    for target in targets:
        try:
            _write(report, target, texts, view)
        except BrokenPipeError:
            # The reader of the pipe is gone; the exit code still counts, so the rest goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except Exception as error:
            codes.append(tell(error, texts.language))
    return max(codes)


def _write(report: "GateReport", target: Target, texts: Texts, view: View) -> None:
    if target.path is not None:
        write([report], [target], texts, view)
        return
    content = str(rendered([report], target, texts, view))
    if target.format == "markdown" and os.environ.get(SUMMARY_VARIABLE):
        _append(Path(os.environ[SUMMARY_VARIABLE]), content)
    else:
        show(content)


def _append(path: Path, content: str) -> None:
    """Other steps of the job write to the same file."""
    try:
        with path.open("ab") as file:
            file.write(content.encode("utf-8", errors="replace"))
    except OSError as error:
        raise UsageError("{said}: cannot be written: {why}", f"{SUMMARY_VARIABLE} {path}", error.strerror) from error


def gate(
    candidate: Annotated[
        list[str],
        typer.Argument(metavar="CANDIDATE…", help="Runs under test: files, folders of one run or of several, globs."),
    ],
    *,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="BASELINE",
            help="Runs to compare with, or a baseline file; repeatable. Without it only absolute limits are checked.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Budget; default: traceanalyze.toml, then pyproject.toml, then built in."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="Name of the side with this path; repeatable.")
    ] = None,
    steps: Annotated[
        str | None, typer.Option(metavar="LIST", help="Steps to use: 5, 0,3-5, 2:. Then there is no warm-up.")
    ] = None,
    ranks: options.Ranks = None,
    warmup: options.Warmup = None,
    format_: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="F[=PATH]",
            help=f"console (default), {', '.join(_FORMATS[1:])}; repeatable. Markdown without a path goes to "
            "$GITHUB_STEP_SUMMARY where that is set.",
        ),
    ] = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Inconclusive metrics and regressions at level warn fail.")
    ] = False,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Report only: verdicts exit 0, errors still 2.")
    ] = False,
    write_baseline: Annotated[
        str | None, typer.Option(metavar="PATH", help="Write the baseline with the candidate's runs added.")
    ] = None,
    no_match: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Key of the environment that need not match; repeatable.")
    ] = None,
    top: options.Top = 5,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
    step_marker: options.StepMarker = None,
    data_regex: options.DataRegex = None,
    comm_regex: options.CommRegex = None,
    not_comm_regex: options.NotCommRegex = None,
    category: options.Category = None,
) -> None:
    """Judge runs against a baseline and exit 0 (fine), 1 (regression), 2 (cannot be judged) or 3 (inconclusive).

    Exit code 3 comes with --strict or on_inconclusive = "fail" only.
    """
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.gate import gate_report, write_refreshed
    from traceanalyze.regression.verdict import SAID

    inputs = (*candidate, *(baseline or ()))
    targets = wanted(format_ or (), output or (), inputs, overwrite=overwrite)
    view = View.of(top, quiet=quiet, verbose=verbose, whole=whole)
    words = texts(lang)
    choices = Choices(steps, ranks, step_marker, data_regex, comm_regex, not_comm_regex, tuple(category or ()))
    with Progress(words, wanted=not quiet) as progress:
        found = gate_report(
            candidate,
            baseline or (),
            choices,
            budget=budget,
            labels=label or (),
            warmup=warmup,
            strict=strict,
            exit_zero=exit_zero,
            waived=no_match or (),
            progress=progress,
        )
    failed = write_gate(found, targets, words, view)
    if write_baseline is not None:
        write_refreshed(write_baseline, baseline or (), found.result)
        tell_written(Phrase("Wrote {path}", write_baseline), lang)
    if found.exit_code:
        said = Phrase("{answer}: {reason}", SAID.get(found.overall, found.overall), found.reason)
        typer.echo(f"traceanalyze gate: {in_language(said, lang)}", err=True)
    # The verdict counts more than a report that could not be written.
    raise typer.Exit(found.exit_code or failed)
