"""Hand-made programs for tests of matching: a list of operator calls, each with its kernels."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.comparison.make import side_from

STEP = 10_000
"""µs from one step to the next."""


class Program:
    """Writes operators one after another; µs. Kernels run one after another too, from the middle of the step on."""

    def __init__(self) -> None:
        self.builder = TraceBuilder()
        self._at = self._device = 0.0
        self._steps = 0

    def step(self) -> Program:
        """Begin a step; all steps are equally long."""
        begin = self._steps * STEP
        self.builder.step(self._steps, begin, STEP)
        self._at, self._device = begin + 1, begin + STEP / 2
        self._steps += 1
        return self

    def op(self, name: str, *kernels: float, inside=(), tid: int = 1, kernel: str | None = None, **args) -> Program:
        """An operator with kernels of its own (their lengths) and operators inside: (name, kernels…) each."""
        begin = self._at
        self._at += 1
        for length in kernels:
            self._launch(length, kernel or f"kernel_of_{name}", tid)
        for child, *more in inside:
            nested = more.pop() if more and isinstance(more[-1], list) else []
            self.op(child, *more, inside=nested, tid=tid)
        self.builder.op(name, begin, self._at - begin, tid=tid, **args)
        self._at += 1
        return self

    def launch(self, length: float, name: str = "lonely", tid: int = 1) -> Program:
        """A kernel launched outside of all operators."""
        self._launch(length, name, tid)
        return self

    def unlinked(self, length: float, name: str = "unlinked") -> Program:
        """A kernel of unknown launch."""
        self.builder.device(self._device, length, name=name)
        self._device += length
        return self

    def _launch(self, length: float, name: str, tid: int) -> None:
        self.builder.launch(self._at, 0.5, self._device, length, name=name, tid=tid)
        self._device += length
        self._at += 1

    @property
    def context(self):
        return side_from(self.builder).context


def told(pairs):
    """Matched calls by name with µs on both sides."""
    return [
        tuple(None if side is None else (side["op"], side["device_ns"] / 1000) for side in (pair.base, pair.candidate))
        for pair in pairs
    ]
