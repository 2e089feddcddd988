"""All that a replay needs of one rank, apart from its recording: small, and fit to be sent between processes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.steps.steps import owners
from traceanalyze.analyses.steps.window import Steps, window_of
from traceanalyze.model.columns import dataclass
from traceanalyze.model.vocabulary import Mode
from traceanalyze.replay.graph import Graph, graph


class Owned(NamedTuple):
    """Device events by the window they belong to."""

    window: NDArray[np.int64]
    """Windows that own some."""
    first: NDArray[np.int64]
    event: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Program:
    """What one rank did, as its recording tells; times int64 ns on its own clock."""

    graph: Graph
    steps: Steps
    """Every window, analysed or not."""
    analysed: NDArray[np.int64]
    """Rows of the analysed ones in `steps`."""
    counted: NDArray[np.bool_]
    """Those that are analysed and count in means."""
    whole: bool
    """Whether the one window is the whole trace."""
    start: NDArray[np.int64]
    """Of the device events, as in `Context.device`; so is `end`."""
    end: NDArray[np.int64]
    call_start: NDArray[np.int64]
    """Of the runtime calls, as in `Context.calls`; so are `call_end` and `call_track`."""
    call_end: NDArray[np.int64]
    call_track: NDArray[np.int64]
    owned: Owned

    @property
    def began(self) -> int:
        """When the first window that counts began."""
        return int(self.steps.start[self.counted].min())


def program(context: Context) -> Program:
    """The program of a rank; use with `Context.once`."""
    steps, device, calls = context.all_steps, context.device, context.calls
    analysed = np.searchsorted(steps.start, context.steps.start)
    counted = np.zeros(len(steps), np.bool_)
    counted[analysed[list(window_of(context.steps).rows)]] = True
    return Program(
        graph=context.once(graph),
        steps=steps,
        analysed=analysed,
        counted=counted,
        whole=context.mode == Mode.WHOLE_TRACE,
        start=device.start,
        end=device.end,
        call_start=calls.start,
        call_end=calls.end,
        call_track=calls.track.astype(np.int64),
        owned=_owned(context),
    )


def _owned(context: Context) -> Owned:
    if context.mode == Mode.WHOLE_TRACE or context.markers is None:
        owner = np.zeros(len(context.device), np.int64)
    else:
        owner = owners(context.markers, context.device, *context.ownership)
    event = np.argsort(owner, kind="stable")
    event = event[owner[event] >= 0]
    window = owner[event]
    first = np.flatnonzero(np.diff(window, prepend=-1))
    return Owned(window[first], first, event)
