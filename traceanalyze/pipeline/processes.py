"""Items shared out to processes, or to an executor of the user; where one dies, this process does what is left."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from traceanalyze.model.native import keep_freed
from traceanalyze.pipeline.recordings import MOST_TOGETHER

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from ctypes import Array, c_byte
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
Made = TypeVar("Made")


def map_ranks(
    work: Callable[[Item], Made], items: Sequence[Item], workers: int, executor: Executor | None = None
) -> Iterator[tuple[int, Made]]:
    """Positions of the items and what was made of each, as they are done. Each worker has one item at a time.

    This process is one of the workers: it takes items from the front, the others from the end, until they meet. So it
    works while they start, and none only waits with its memory. An `executor` of the user does it all. Where no other
    process can be started, or one is killed, this one does what is left. `work` is at the top level of a module and
    raises what the caller is to see; items and results are fit to be sent to a process; `workers` is from
    `workers_for`.
    """
    if executor is None and workers < 2:
        yield from ((at, work(item)) for at, item in enumerate(items))
        return
    from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
    from multiprocessing import get_context
    from queue import SimpleQueue

    left = dict(enumerate(items))
    elsewhere: dict[Future[Made | None], int] = {}
    # Forked children of a process with threads may hang; fresh ones cannot. What this process takes is not cancelled:
    # that breaks an executor of which a process is killed.
    context = get_context("spawn")
    taken = context.RawArray("b", 0 if executor else len(items))
    stop, running = context.Pipe(duplex=False)
    pool = executor or ProcessPoolExecutor(workers - 1, context, _begin, (taken, stop))
    try:
        if executor is None:
            with _uninterrupted():
                for at in reversed(range(1, len(items))):
                    elsewhere[pool.submit(_unless_taken, work, at, items[at])] = at
            yield from _beside(elsewhere, work, left, taken)
        else:
            try:
                elsewhere |= {pool.submit(work, item): at for at, item in left.items()}
            except RuntimeError as error:
                # It was shut down.
                raise BrokenExecutor from error
        # `as_completed` would wait for ever for what an executor cancels when it is shut down.
        done: SimpleQueue[Future[Made | None]] = SimpleQueue()
        for future in elsewhere:
            future.add_done_callback(done.put)
        yield from _done((done.get() for _ in range(len(elsewhere))), elsewhere, left)
    except (BrokenExecutor, CancelledError, OSError):
        yield from ((at, work(item)) for at, item in left.items())
    finally:
        if executor is None:
            if not all(future.done() for future in elsewhere):
                # Nobody waits for what they are at.
                running.close()
            pool.shutdown(cancel_futures=True)
        else:
            for future in elsewhere:
                future.cancel()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """What is started here hears of no Ctrl-C until it has begun (`_begin`), and this process of it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_LOOKED_AT = 256


def _beside(
    elsewhere: dict[Future[Made | None], int],
    work: Callable[[Item], Made],
    left: dict[int, Item],
    taken: Array[c_byte],
) -> Iterator[tuple[int, Made]]:
    """What this process does of what nobody has begun, and what others have done meanwhile."""
    for at, item in [*left.items()]:
        if at in left and not taken[at]:
            taken[at] = True
            yield at, work(item)
            del left[at]
            # They begin in this order: of thousands only the first few can be done.
            yield from _done([each for each in islice(elsewhere, _LOOKED_AT) if each.done()], elsewhere, left)


def _done(
    found: Iterable[Future[Made | None]], elsewhere: dict[Future[Made | None], int], left: dict[int, Item]
) -> Iterator[tuple[int, Made]]:
    for future in found:
        one, at = future.result(), elsewhere.pop(future)
        # If two began it at the same moment, it was done twice.
        if one is not None and at in left:
            yield at, one
            del left[at]


_TAKEN: list[Array[c_byte]] = []
"""In a worker: which items somebody has begun."""


def _unless_taken(work: Callable[[Item], Made], at: int, item: Item) -> Made | None:
    """In a worker: what is made of an item that nobody has begun."""
    (taken,) = _TAKEN
    if taken[at]:
        return None
    taken[at] = True
    return work(item)


def _begin(taken: Array[c_byte], stop: Connection) -> None:
    """In a worker: it ends when the process that started it says so, or does, even without time for a word."""
    _TAKEN[:] = [taken]
    # As in the process that started it.
    gc.disable()
    if len(taken) > MOST_TOGETHER:
        keep_freed()
    # Who interrupts it interrupts the other, too, which tells it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        # Nothing is sent: the other end is closed.
        stop.poll(None)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
