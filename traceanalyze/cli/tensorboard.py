"""`traceanalyze tensorboard`: a recording in TensorBoard's PyTorch profiler plugin."""

from __future__ import annotations

from typing import Annotated

import typer


def tensorboard(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder that traceanalyze record wrote.")],
    *,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0: any that is free.")] = 6006,
) -> None:
    """Open a recording in TensorBoard's PyTorch profiler plugin, or say why that is not possible."""
    from traceanalyze.record.tensorboard import open_tensorboard

    open_tensorboard(folder, port)
