"""Hand-made sides for tests of comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builder import TraceBuilder
from traceanalyze.comparison.side import side

if TYPE_CHECKING:
    from traceanalyze.analyses.options import Options


def side_from(builder: TraceBuilder, options: Options | None = None, **more):
    """A side of a hand-made trace."""
    return side(builder.trace(), options, **more)


def training(*, wait: float = 0, kernel: float = 30, steps: int = 2, launches: bool = True, ops: bool = True):
    """Steps in which the loader takes `wait` µs, then one matrix product runs `kernel` µs and one copy 5 µs.

    The product is launched 10 µs after the loader is done and begins 4 µs later; the copy follows it at once.
    """
    b = TraceBuilder()
    length = wait + kernel + 30
    for number in range(steps):
        at = number * length
        b.step(number, at, length)
        if wait:
            b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, wait)
        begin = at + wait + 14
        if ops:
            b.op("aten::mm", at + wait + 8, 6)
        if launches:
            b.launch(at + wait + 10, 2, begin, kernel, name="volta_sgemm_128x64_nn")
            b.copy(at + wait + 16, 2, begin + kernel, 5, name="Memcpy HtoD (Pinned -> Device)")
        else:
            b.device(begin, kernel, name="volta_sgemm_128x64_nn")
            b.device(begin + kernel, 5, cat="gpu_memcpy", name="Memcpy HtoD (Pinned -> Device)")
    return b


def amounts(pair, key):
    """A number of both sides of a pair, 0 where a side has none."""
    return tuple(0 if side is None else side[key] for side in (pair.base, pair.candidate))


def parts_of(found):
    """Parts by key, in µs over all steps."""
    return {
        part.key: tuple(time / 1000 if isinstance(time, int) else time for time in (part.base, part.candidate))
        for part in found
    }
