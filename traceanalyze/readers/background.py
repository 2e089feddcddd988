"""An iterator that works ahead in a thread, so that inflating and scanning share two cores."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH_BYTES = 1 << 20
_BATCHES_AHEAD = 4


class Background:
    """Iterates over the blocks of another iterator, which runs in a thread a few batches ahead.

    An exception of the other iterator is raised here, after the blocks before it. The thread ends with `close`.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._ready: queue.Queue[list[bytes] | BaseException | None] = queue.Queue(_BATCHES_AHEAD)
        self._closed = threading.Event()
        self._batch: Iterator[bytes] = iter(())
        self._thread = threading.Thread(target=self._work, name="traceanalyze-inflate", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while (block := next(self._batch, None)) is None:
            if self._closed.is_set():
                raise StopIteration
            batch = self._ready.get()
            if batch is None or isinstance(batch, BaseException):
                self._closed.set()
                if batch is not None:
                    raise batch
                raise StopIteration
            self._batch = iter(batch)
        return block

    def close(self) -> None:
        """Stop the thread and wait for it; blocks not taken yet are dropped."""
        self._closed.set()
        while self._thread.is_alive():
            # A full queue may hold the thread up: make room until it has seen the flag.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(0.01)

    def _work(self) -> None:
        try:
            batch, size = [], 0
            for block in self._blocks:
                if self._closed.is_set():
                    return
                batch.append(block)
                size += len(block)
                if size >= _BATCH_BYTES:
                    self._ready.put(batch)
                    batch, size = [], 0
            self._ready.put(batch)
            self._ready.put(None)
        except BaseException as error:  # it belongs to whoever reads the blocks
            self._ready.put(error)
