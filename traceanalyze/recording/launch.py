"""`traceanalyze record`: this process becomes the script, recorded. Signals and exit status need no passing on."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NoReturn

from traceanalyze.errors import InputError, UsageError
from traceanalyze.model.patterns import regex
from traceanalyze.recording.options import (
    RecordOptions,
    installed,
    refuse_recorded,
    require_this_package,
    require_torch,
)

BOOTSTRAP = "traceanalyze.recording.bootstrap"
_PYTHON = regex(r"(?:python|pypy)[0-9.]*t?(?:\.exe)?")
_CLUSTER = regex(r"-([^cmWX]*)([cmWX]?)(.*)", re.DOTALL)
_LONG_WITH_VALUE = "--check-hash-based-pycs"
_TORCHRUN_MODULES = {"torch.distributed.run", "torch.distributed.launch"}


def recorded(command: Sequence[str], interpreter: str) -> list[str]:
    """The command that runs the same script recorded; `interpreter` is for a script that is given alone.

    Known are `python [options] script.py …`, `python -m module …`, `script.py …` and `torchrun … script.py …`.
    """
    name = PurePath(command[0]).name
    if name.endswith(".py"):
        return [interpreter, "-m", BOOTSTRAP, *command]
    if name == "torchrun":
        return [command[0], *_torchrun(command[1:])]
    if not _PYTHON.fullmatch(name):
        raise UsageError(
            "record: {command} is neither python, a .py file nor torchrun; with other launchers use "
            "traceanalyze.record() in the script",
            command[0],
        )
    options, rest = _split_options(command)
    if rest[0] != "-m":
        return [*options, "-m", BOOTSTRAP, *rest]
    module = rest[1:]
    if not module:
        raise UsageError("record: python -m names no module")
    if module[0] in _TORCHRUN_MODULES:
        return [*options, "-m", module[0], *_torchrun(module[1:])]
    return [*options, "-m", BOOTSTRAP, *rest]


def _split_options(command: Sequence[str]) -> tuple[list[str], list[str]]:
    """Python and its options; then the script, or `-m` and the module, with what follows."""
    options, rest = [command[0]], list(command[1:])
    while rest:
        word = rest[0]
        if not word.startswith("-"):
            return options, rest
        rest = rest[1:]
        flags, letter, value = _letters(word)
        if word == "-" or letter == "c":
            raise UsageError("record: records a script or a module, not python -c or standard input")
        if letter == "m":
            return options + ([f"-{flags}"] if flags else []), ["-m", *([value] if value else []), *rest]
        options.append(word)
        if word == _LONG_WITH_VALUE or (letter and not value):
            options += rest[:1]
            rest = rest[1:]
    raise UsageError("record: no script to run; write traceanalyze record -- python train.py …")


def _letters(word: str) -> tuple[str, str, str]:
    """Of `-uXdev`: flags `u`, the letter `X` that takes a value, its value `dev`; each empty if there is none."""
    found = None if word.startswith("--") else _CLUSTER.fullmatch(word)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def _torchrun(arguments: Sequence[str]) -> list[str]:
    """The arguments of torchrun with the script replaced by the one that records it, in every rank's process."""
    require_torch()
    from torch.distributed.run import parse_args

    try:
        parsed = parse_args(list(arguments))
    except SystemExit as error:
        raise UsageError("record: torchrun does not understand these arguments") from error
    if parsed.no_python:
        raise UsageError("record: torchrun --no-python starts something else than Python, which cannot be recorded")
    script = len(arguments) - len(parsed.training_script_args) - 1
    options = [word for word in arguments[:script] if word not in {"-m", "--module"}]
    return [*options, "-m", BOOTSTRAP, *(["-m"] if parsed.module else []), *arguments[script:]]


FOLDER, OPTIONS, QUIET = "TRACEANALYZE_RECORD_FOLDER", "TRACEANALYZE_RECORD_OPTIONS", "TRACEANALYZE_RECORD_QUIET"
"""Variables by which the recorded process learns what to do, through any launcher."""


def launch(command: Sequence[str], folder: Path, options: RecordOptions, *, quiet: bool) -> NoReturn:
    """Replace this process by the command, recorded."""
    words = recorded(command, sys.executable)
    refuse_recorded(folder)
    program = shutil.which(words[0])
    if program is None:
        raise UsageError("record: {command}: command not found", words[0])
    if PurePath(program).name != "torchrun":
        require_this_package(program)
    environment = {**os.environ, FOLDER: str(folder.resolve()), OPTIONS: options.to_json(), QUIET: "1" if quiet else ""}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(words[0], words, environment)  # noqa: S606 - the user's own command, as a shell would start it


_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
"""What the plugin looks for; it passes over everything else without a word."""


def open_tensorboard(folder: str, port: int) -> NoReturn:
    """Become TensorBoard over the folder."""
    command = tensorboard_command(folder, port)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 - this interpreter


def tensorboard_command(folder: str, port: int) -> list[str]:
    """The command that opens the folder; errors as `open_tensorboard`."""
    path = Path(folder)
    if not path.exists():
        raise InputError("{folder}: does not exist", folder)
    if not path.is_dir():
        raise InputError("{folder}: TensorBoard opens folders; give the one this file lies in", folder)
    if not any(file.name.endswith(_ENDINGS) for file in path.rglob("*")):
        raise InputError(
            "{folder}: holds no {endings}, and TensorBoard's plugin shows nothing else; traceanalyze record "
            "writes such files",
            folder,
            " or ".join("*" + ending for ending in _ENDINGS),
        )
    missing = [name.replace("_", "-") for name in ("tensorboard", "torch_tb_profiler") if not installed(name)]
    if missing:
        names = " and ".join(missing)
        raise UsageError(
            "{missing} not installed for {python}: pip install 'traceanalyze[tensorboard]'", names, sys.executable
        )
    # What lies in the folder one is in is data (-P), not modules to run.
    return [sys.executable, "-P", "-m", "tensorboard.main", "--logdir", str(path), "--port", str(port)]
