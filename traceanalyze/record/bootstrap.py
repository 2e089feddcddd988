"""`python -m traceanalyze.record.bootstrap script.py …` (or `-m module …`): the script, unedited, under the profiler.

Started by `traceanalyze record`, in every rank's process. The script sees the arguments, the import path and the
`__main__` it would have seen alone. Whatever ends it, the recording is written before; its exit status is passed on.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.record.context import Recording
from traceanalyze.record.launch import FOLDER, OPTIONS, QUIET
from traceanalyze.record.options import RecordOptions
from traceanalyze.record.outcome import outcome
from traceanalyze.record.steps import mark_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

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
        _run(list(arguments))
    except _Terminated:
        _finish(recording, end_marks)
        _die_of_sigterm()
    except SystemExit as end:
        _finish(recording, end_marks)
        if end.code in {None, 0} and not recording.files and recording.owned:
            raise SystemExit(NOTHING_RECORDED) from None
        raise
    except BaseException:
        _finish(recording, end_marks)
        raise
    _finish(recording, end_marks)
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
