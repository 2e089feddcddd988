"""Dask's workers as an executor: each does one recording at a time, and one that is killed loses nothing.

What a worker was killed over again and again is left out by its name; where the scheduler goes away, this machine does
the rest. Results come back as parts, so that nothing is reduced elsewhere and the report is that of one machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from traceanalyze.errors import InputError, UsageError
from traceanalyze.version import __version__

if TYPE_CHECKING:
    from traceanalyze.pipeline.recordings import Job

_RETRIES = 2
"""How often a recording is tried again that a worker failed at; of one killed, Dask's own limit counts."""
_PATIENCE_S = 60
"""Seconds in which a scheduler answers and a first worker is there."""


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a scheduler at an address, `tcp://host:8786`.

    Raises:
        UsageError: Nobody is there, or the workers have another version.
    """
    try:
        from distributed import Client as Connected
    except ImportError:
        raise UsageError(
            "--scheduler {address}: needs Dask: pip install 'traceanalyze[dask]', here and on the workers", address
        ) from None
    try:
        client: Any = cast("Any", Connected)(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError("--scheduler {address}: nobody answers ({why})", address, type(error).__name__) from None
    try:
        _same_version(client, address)
        yield _Workers(client)
    finally:
        client.close()


def _same_version(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_S)
        versions = {str(found) for found in client.run(tool_version).values()}
    except TimeoutError:
        raise UsageError("--scheduler {address}: it has no workers", address) from None
    except (ImportError, AttributeError):
        versions = {"none"}
    if versions != {tool_version()}:
        other = ", ".join(sorted(versions - {tool_version()}))
        raise UsageError(
            "--scheduler {address}: its workers have another version of traceanalyze or Python ({other}; here {own})",
            *(address, other, tool_version()),
        )


def tool_version() -> str:
    """What must be the same everywhere, as the report is."""
    return f"traceanalyze {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}"


class _Workers(Executor):
    """Takes jobs, and gives what becomes of them as parts."""

    def __init__(self, client: Any) -> None:
        self._executor = client.get_executor(retries=_RETRIES, pure=False)

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        """One recording for any worker."""
        given: Future[Any] = self._executor.submit(work, *args, **more)
        told: Future[Any] = Future()
        given.add_done_callback(partial(_tell, told, args[0]))
        return told


def _tell(told: Future[Any], job: Job, given: Future[Any]) -> None:
    """Why there is no result, where there is none."""
    if not told.set_running_or_notify_cancel():
        # Nobody waits for it any more.
        return
    error = BrokenExecutor("cancelled") if given.cancelled() else given.exception()
    if error is None:
        told.set_result(given.result())
    elif type(error).__name__ == "KilledWorker":
        name = job.source.name
        told.set_result((InputError("{name}: several workers were killed over it; have they enough memory?", name), ()))
    else:
        told.set_exception(error)
