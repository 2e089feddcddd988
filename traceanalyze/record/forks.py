"""Processes that a recorded script forks: they end as they would have ended alone."""

from __future__ import annotations

import ctypes
import os
from functools import cache


@cache
def let_children_end() -> None:
    """Let forked processes leave out the exit handlers of C libraries, from now on.

    Kineto, once started, keeps a thread that waits on a condition variable. A forked process has the variable and not
    the thread, and destroying it at exit waits for the thread for ever. `multiprocessing` leaves these handlers out for
    its processes as well; what Python does at exit, and the exit status, are as always.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit") and hasattr(library, "fcloseall"):
        os.register_at_fork(after_in_child=lambda: _exit_at_once(library))


def _exit_at_once(library: ctypes.CDLL) -> None:
    """Make glibc's `exit(status)` write out what C streams still hold, then call `_exit(status)`: last in, first out.

    Without a Python function in between: by then the interpreter is gone.
    """
    for name in ("_exit", "fcloseall"):
        library.on_exit(ctypes.cast(getattr(library, name), ctypes.c_void_p), None)
