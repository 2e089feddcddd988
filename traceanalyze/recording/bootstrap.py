"""`python -m traceanalyze.recording.bootstrap script.py …` (or `-m module …`): the script, unedited, profiled.

Started by `traceanalyze record`, in every rank's process. The script sees the arguments, the import path and the
`__main__` it would have seen alone. Whatever ends it, the recording is written before; its exit status is passed on.
"""

import os
import runpy
import signal
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType, MethodType
from typing import Any, NoReturn

from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.recording.context import Recording
from traceanalyze.recording.launch import FOLDER, OPTIONS, QUIET
from traceanalyze.recording.options import RecordOptions


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
    """As Python would run it, with `sys.argv` and `sys.path` as it would set them."""
    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv[:] = arguments
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
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
