"""`traceanalyze baseline`: the file that a gate compares with."""

from typing import Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.cli.guard import guarded, in_language
from traceanalyze.cli.help import Command, Group
from traceanalyze.errors import Phrase

app = typer.Typer(help="Keep the runs that a gate compares with in a small JSON file.", cls=Group, **options.GROUP)
_PATH = typer.Argument(metavar="BASELINE.json", help="The baseline file.")


def update(
    path: Annotated[str, _PATH],
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Runs to add: files, folders, globs.")],
    *,
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="Keep the newest N runs.")] = 20,
    label: Annotated[str, typer.Option(metavar="TEXT", help="Label of these runs.")] = "",
    accept: Annotated[
        bool, typer.Option("--accept", help="Take them in although they are a regression: a new level begins.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="FILE", help="Budget whose selectors are measured, too; found as by gate.")
    ] = None,
    warmup: options.Warmup = None,
    steps: Annotated[str | None, typer.Option(metavar="LIST", help="Steps to use: 5, 0,3-5, 2:.")] = None,
    ranks: options.Ranks = None,
    category: options.Category = None,
    lang: options.LangOfHelp = "en",
) -> None:
    """Add runs; those that are in it already are left out, and regressions are refused."""
    from traceanalyze.cli.output import Progress
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.gate import update as add_runs

    with Progress(wanted=True) as progress:
        baseline, count, known = add_runs(
            path,
            runs,
            Choices(steps=steps, ranks=ranks, categories=tuple(category or ())),
            keep=keep,
            label=label,
            budget=budget,
            accept=accept,
            warmup=warmup,
            progress=progress,
        )
    for name in known:
        typer.echo(in_language(Phrase("{name}: is in the baseline already, left out", name), lang), err=True)
    added = Phrase("1 run") if count == 1 else Phrase("{count} runs", count)
    said = Phrase("Wrote {path}: {added} added, {count} in it", path, added, len(baseline.runs))
    typer.echo(in_language(said, lang), err=True)


def show(path: Annotated[str, _PATH], *, lang: options.Lang = "en") -> None:
    """Print the runs and the noise floor of every metric."""
    import sys

    from traceanalyze.locales import texts
    from traceanalyze.regression.baseline import read_baseline
    from traceanalyze.report.console import Printer, style_for
    from traceanalyze.report.contents.gate_metrics import baseline_tables
    from traceanalyze.report.format import Formatter
    from traceanalyze.report.view import View

    baseline, words = read_baseline(path), texts(lang)
    printer = Printer(Formatter(words), style_for(sys.stdout), View(), {})
    tables = map(printer.table, baseline_tables(baseline)) if baseline.runs else [words.messages["baseline_empty"]]
    sys.stdout.write("\n\n".join(tables) + "\n")
    sys.stdout.flush()


def prune(
    path: Annotated[str, _PATH],
    *,
    older_than: Annotated[
        int | None, typer.Option(metavar="DAYS", min=0, help="Runs this much older than the newest.")
    ] = None,
    label: Annotated[str | None, typer.Option(metavar="TEXT", help="Runs with this label.")] = None,
    environment: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Runs of this environment; repeatable.")
    ] = None,
    lang: options.LangOfHelp = "en",
) -> None:
    """Remove the runs that fit every option given."""
    from traceanalyze.pipeline.gate import prune as remove

    removed = remove(path, older_than=older_than, label=label, environment=environment or ())
    typer.echo(in_language(Phrase("Wrote {path}: {count} runs removed", path, removed), lang), err=True)


@app.callback()
def _options(*, lang: options.LangOfHelp = "en") -> None:  # the group says its help in it
    """Options before a command."""


for _name, _command in (("update", update), ("show", show), ("prune", prune)):
    app.command(_name, cls=Command)(guarded(_command))
