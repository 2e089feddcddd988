"""`traceanalyze record`: this process becomes the script, recorded. Signals and exit status need no passing on."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, NoReturn

from traceanalyze.errors import UsageError
from traceanalyze.record.identity import refuse_recorded
from traceanalyze.record.python_command import recorded
from traceanalyze.record.requirements import require_this_package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceanalyze.record.options import RecordOptions

FOLDER, OPTIONS, QUIET = "TRACEANALYZE_RECORD_FOLDER", "TRACEANALYZE_RECORD_OPTIONS", "TRACEANALYZE_RECORD_QUIET"
"""Variables by which the recorded process learns what to do, through any launcher."""


def launch(command: Sequence[str], folder: Path, options: RecordOptions, *, quiet: bool) -> NoReturn:
    """Replace this process by the command, recorded.

    Raises:
        UsageError: The command cannot be recorded or does not exist, its Python does not have this package, or the
            folder holds a recording.
    """
    words = recorded(command, sys.executable)
    refuse_recorded(folder)
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(f"record: {words[0]}: command not found")
    if PurePath(program).name != "torchrun":
        require_this_package(program)
    environment = {**os.environ, FOLDER: str(folder.resolve()), OPTIONS: options.to_json(), QUIET: "1" if quiet else ""}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(words[0], words, environment)  # noqa: S606 - the user's own command, as a shell would start it
