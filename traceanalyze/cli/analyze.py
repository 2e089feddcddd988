"""`traceanalyze analyze`: where every step's time went."""

from typing import Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.cli.analysis import LANG, TOP, Shown, history_of, merge_shares, report_on, share_out
from traceanalyze.errors import UsageError
from traceanalyze.report.formats import endings


def analyze(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…", help="Trace files (.json, .gz, .zip), folders, globs, or - for standard input."
        ),
    ],
    *,
    format_: options.TraceFormatOption = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR/",
            help=(
                f"Write to FILE ({endings('memory')}; .svg: call paths as a flame graph), or every table into the "
                "folder DIR/ (CSV or Parquet); repeatable."
            ),
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Steps to analyse, by number: 5, 0,3-5, 2: (from step 2 on); all: long first steps, too.",
        ),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Ranks to analyse, each in detail: 0,3-7. Default: all, the slowest."),
    ] = None,
    top: options.Top = TOP,
    lang: options.Lang = LANG,
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
    select: options.Select = None,
    ignore: options.Ignore = None,
    workers: options.Workers = None,
    cache: options.Cache = None,
    no_cache: options.NoCache = False,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask's scheduler (tcp://host:8786), whose workers do the work."),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep the tables of the run in a store (Parquet), too; see `history`."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Write share I (from 0) of N to -o DIR/, for `merge`; /N or auto: in arrays of Slurm or Kubernetes.",
        ),
    ] = None,
) -> None:
    """Say where every step's time went."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.pipeline import Choices

    what = step_marker, data_regex, comm_regex, not_comm_regex, tuple(category or ()), device_peaks
    choices = Choices(steps, ranks, *what, options.listed(select), options.listed(ignore), streams, name_regex, time)
    kept = None if no_cache else cache or ""
    shown = Shown(format_, output, top, lang, quiet, verbose, whole, overwrite)
    if shard is not None and (scheduler or record) is not None:
        raise UsageError("--shard {shard}: leave out --scheduler and --record", shard)
    if shard is not None:
        share_out(paths, choices, shard, shown, workers=workers, cache=kept)
    else:
        report_on(paths, choices, shown, workers=workers, cache=kept, scheduler=scheduler, record=record)


def history(
    store: Annotated[str, typer.Argument(metavar="DIR", help="Where analyze --record keeps runs.")],
    *,
    format_: options.FormatOption = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    lang: options.Lang = LANG,
    quiet: options.Quiet = False,
) -> None:
    """How the runs of a store went, and at which of them something changed."""
    history_of(store, Shown(format_, output, lang=lang, quiet=quiet, whole=not quiet, overwrite=overwrite))


def merge(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where the shares of a run lie, see analyze --shard.")],
    *,
    format_: options.TraceFormatOption = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    top: options.Top = TOP,
    lang: options.Lang = LANG,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
) -> None:
    """The report of a run from the shares that `analyze --shard` wrote."""
    merge_shares(folder, Shown(format_, output, top, lang, quiet, verbose, whole, overwrite))
