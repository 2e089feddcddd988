"""`python -m traceanalyze.recording.bootstrap script.py …` (or `-m module …`): the script, unedited, profiled.

Started by `traceanalyze record`, in every rank's process. The script sees the arguments, the import path and the
`__main__` it would have seen alone. Whatever ends it, the recording is written before; its exit status is passed on.

`launch` is what that command does: its process becomes the script, so signals and exit status need no passing on.
"""

import os
import re
import runpy
import shutil
import signal
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from types import FrameType, MethodType
from typing import Any, NoReturn

from traceanalyze.errors import InputError, TraceAnalyzeError, UsageError
from traceanalyze.model.patterns import regex
from traceanalyze.recording.context import Recording
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


def mark_steps(step: Callable[[], None]) -> Callable[[], None]:
    """Call `step` after every step of the first optimizer that steps; returns what ends it.

    One optimizer counts, so that a loop with several has one mark a step; if it is dropped, the next one takes over.
    torch calls its hooks while the range it records around `Optimizer.step` is still open. A mark there would cut the
    range in two, and the last one would be lost with the end of the recording. So the hook replaces the optimizer's own
    `step` by one that marks after its return; where that is passed by (a caller kept the old one), the hook marks.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    marking: weakref.ref[Any] | None = None
    inside = ended = False

    def wrap(optimizer: Any) -> None:
        original = optimizer.step

        def marked(_optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if ended:
                return original(*args, **kwargs)
            inside = True
            try:
                result = original(*args, **kwargs)
            finally:
                inside = False
            step()
            return result

        # Learning-rate schedulers replace a step that must be a method, and look for their mark on it afterwards.
        vars(marked).update(vars(original))
        optimizer.step = MethodType(marked, optimizer)

    def stepped(optimizer: Any, _args: object, _kwargs: object) -> None:
        nonlocal marking
        first = marking() if marking is not None else None
        if first is None:
            marking = weakref.ref(optimizer)
            wrap(optimizer)
            step()
        elif first is optimizer and not inside:
            step()

    handle = register_optimizer_step_post_hook(stepped)

    def end() -> None:
        nonlocal ended
        ended = True
        handle.remove()

    return end


def outcome(recording: Recording, *, quiet: bool = False) -> Iterator[str]:
    """Lines: what went wrong, even if quiet, then what was written and how to read it."""
    yield from recording.troubles
    options, steps = recording.options, recording.steps
    if not steps:
        found = "the recording is one stretch without steps" if recording.files else "nothing was recorded"
        yield (
            f"no optimizer stepped, so there are no steps: {found}; mark them in your loop: "
            "`with traceanalyze.record('run') as recording:` around it, `recording.step()` at the end of each step"
        )
    elif steps < options.steps:
        shorter = "the recording is shorter, and what follows its last step is marked as one more"
        found = shorter if recording.files else "nothing was recorded"
        yield (
            f"the script ended after {_steps(steps)}, and --wait {options.wait} --warmup {options.warmup} "
            f"--active {options.active} take {options.steps}: {found}; train longer or wait less"
        )
    if quiet or not recording.files:
        return
    written = ", ".join([*recording.files, *recording.snapshots])
    yield f"wrote {written} to {recording.folder}; read it with: traceanalyze {recording.folder}"


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"


NOTHING_RECORDED = 2
"""Exit status of a script that ended well without leaving a recording."""


class _Terminated(BaseException):
    """SIGTERM as an exception: the script's own `finally` blocks run, and the recording is written."""


def main(arguments: Sequence[str]) -> None:
    """Run the script recorded; ends as the script ends, or with 2 where it ended well but nothing was recorded."""
    if arguments[0] != "-m" and not Path(arguments[0]).exists():
        _refuse(f"{arguments[0]}: no such script", 2)
    if arguments[0] != "-m" and not getattr(sys.flags, "safe_path", False):
        # Before torch is loaded: of the folder one is in a script would load nothing.
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
    recording = _prepared()
    end_marks = mark_steps(recording.step)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
        os.register_at_fork(after_in_child=_default_again)
    try:
        try:
            _run(list(arguments))
        finally:
            _finish(recording, end_marks)
    except _Terminated:
        _die_of_sigterm()
    except SystemExit as end:
        if end.code not in {None, 0} or recording.files or not recording.owned:
            raise
    if not recording.files and recording.owned:
        raise SystemExit(NOTHING_RECORDED)


def _prepared() -> Recording:
    try:
        options = RecordOptions.from_json(os.environ.get(OPTIONS, "{}"))
        recording = Recording(Path(os.environ.get(FOLDER, "run")), options)
        recording.prepare()
        # Else the profiler starts after the first step: by then the script has chosen its devices and forked what it
        # forks, which a device in use would have disturbed.
        if options.wait == 0:
            recording.start()
    except TraceAnalyzeError as error:
        _refuse(str(error), error.exit_code)
    return recording


def _refuse(why: str, status: int) -> NoReturn:
    _say(f"error: {why}")
    raise SystemExit(status)


def _run(arguments: list[str]) -> None:
    """As Python would run it, with `sys.argv` as it would set it."""
    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv[:] = arguments
    runpy.run_path(arguments[0], run_name="__main__")


def _finish(recording: Recording, end_marks: Callable[[], None]) -> None:
    if not recording.owned:
        return
    # The recording is being written: nothing is gained by ending now.
    if signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_marks()
    recording.finish()
    for line in outcome(recording, quiet=bool(os.environ.get(QUIET))):
        _say(line)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


def _default_again() -> None:
    """Processes that the script forks end at SIGTERM as they would have alone."""
    if signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _die_of_sigterm() -> NoReturn:
    """End as the script would have ended alone, so that whoever waits sees the signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit(128 + signal.SIGTERM)


def _say(text: str) -> None:
    sys.stderr.write(f"traceanalyze record: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
