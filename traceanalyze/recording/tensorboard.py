"""The recording in TensorBoard's PyTorch profiler plugin."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from traceanalyze.errors import InputError, UsageError
from traceanalyze.recording.options import installed

_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
"""What the plugin looks for; it passes over everything else without a word."""


def open_tensorboard(folder: str, port: int) -> NoReturn:
    """Become TensorBoard over the folder.

    Raises:
        UsageError: TensorBoard or its plugin is not installed.
        InputError: The folder holds nothing that the plugin shows.
    """
    command = tensorboard_command(folder, port)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - this interpreter


def tensorboard_command(folder: str, port: int) -> list[str]:
    """The command that opens the folder; errors as `open_tensorboard`."""
    path = Path(folder)
    if not path.exists():
        raise InputError(f"{folder}: does not exist")
    if not path.is_dir():
        raise InputError(f"{folder}: TensorBoard opens folders; give the one this file lies in")
    if not any(file.name.endswith(_ENDINGS) for file in path.rglob("*")):
        raise InputError(
            f"{folder}: holds no {' or '.join('*' + ending for ending in _ENDINGS)}, and TensorBoard's plugin shows "
            "nothing else; traceanalyze record writes such files"
        )
    missing = [
        name
        for package, name in (("tensorboard", "tensorboard"), ("torch_tb_profiler", "torch-tb-profiler"))
        if not installed(package)
    ]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} not installed for {sys.executable}: pip install 'traceanalyze[tensorboard]'"
        )
    return [sys.executable, "-m", "tensorboard.main", "--logdir", str(path), "--port", str(port)]
