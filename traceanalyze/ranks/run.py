"""The same work for every rank, in processes of their own where that pays."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

LARGE = 20_000_000
"""Bytes of all inputs from which on processes are worth their start."""
MOST = 2
"""Traces in memory at once."""


def workers_for(sizes: Sequence[int | None]) -> int:
    """How many processes inputs of these sizes (None: unknown) are worth; 1 means none beside this one."""
    if len(sizes) < 2 or sum(size or 0 for size in sizes) < LARGE:
        return 1
    return min(MOST, len(sizes), os.cpu_count() or 1)


def map_ranks(work: Callable[[Item], Made], items: Sequence[Item], workers: int) -> Iterator[Made]:
    """Results in the order of the items. Each worker has one item at a time.

    This process is one of the workers: it takes items from the front, the others from the end, until they meet. So it
    works while they start, and none only waits with its memory. Where no other can be started, or one is killed, it
    does what is left. `work` is at the top level of a module and raises what the caller is to see; items and results
    are fit to be sent to a process; `workers` is from `workers_for`.
    """
    if workers < 2:
        yield from map(work, items)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    done = 0
    # Forked children of a process with threads may hang; fresh ones cannot.
    pool = ProcessPoolExecutor(workers - 1, mp_context=get_context("spawn"))
    try:
        elsewhere = [pool.submit(work, item) for item in reversed(items[1:])]
        yield work(items[0])
        done = 1
        for item in items[1:]:
            future = elsewhere.pop()
            yield work(item) if future.cancel() else future.result()
            done += 1
    except (BrokenProcessPool, OSError):
        yield from map(work, items[done:])
    finally:
        pool.shutdown(cancel_futures=True)
