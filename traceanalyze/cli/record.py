"""`traceanalyze record`: run a training script under the profiler, unedited."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from traceanalyze.cli import options


def record(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND…", help="python train.py …, python -m module …, or torchrun … train.py …"),
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="RUN", help="Folder of the recording. Default: run_DATE_TIME."),
    ] = None,
    wait: Annotated[int, typer.Option(metavar="N", min=0, help="Steps before the profiler is switched on.")] = 5,
    warmup: Annotated[int, typer.Option(metavar="N", min=0, help="Steps under it that are thrown away.")] = 3,
    active: Annotated[int, typer.Option(metavar="N", min=1, help="Steps recorded.")] = 5,
    shapes: Annotated[bool, typer.Option("--shapes/--no-shapes", help="Shapes of operators' inputs.")] = True,
    stacks: Annotated[bool, typer.Option("--stacks", help="Python stacks; slows the host.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Every allocation as an event; slows the host.")] = False,
    snapshot: Annotated[
        bool, typer.Option("--snapshot/--no-snapshot", help="History and snapshot of the device's allocator.")
    ] = True,
    light: Annotated[
        bool, typer.Option("--light", help="Device activities and step marks alone: for timing gates.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only what went wrong.")] = False,
    lang: options.LangOfHelp = "en",
) -> None:
    """Run a script under PyTorch's profiler without editing it; a step is what its optimizer ends."""
    from traceanalyze.recording.bootstrap import launch
    from traceanalyze.recording.options import RecordOptions

    chosen = RecordOptions(wait, warmup, active, shapes, stacks, memory, snapshot, light)
    folder = output or f"run_{datetime.now():%Y%m%d_%H%M%S}"  # noqa: DTZ005, RUF100 - a name for people, in their time
    launch(command, Path(folder), chosen, quiet=quiet)
