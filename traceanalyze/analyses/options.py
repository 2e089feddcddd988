"""What the user may choose for the analyses of one trace."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.steps.window import StepKey, Steps
from traceanalyze.model.classify import ClassifyOptions
from traceanalyze.model.device_peaks import Peaks


class Filter(NamedTuple):
    """Which part of a recording to analyse; None keeps everything."""

    streams: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None
    """Of device events, by the number of their stream."""
    name: re.Pattern[str] | None = None
    """Of device events, by name."""
    time: tuple[int, int] | None = None
    """ns since the first event of the recording: events that overlap this range, whole."""


class Options(NamedTuple):
    """What the user may choose for the analyses of one trace."""

    classify: ClassifyOptions = ClassifyOptions()
    steps: Callable[[Steps], NDArray[np.bool_]] | None = None
    """Which steps to analyse; all when None, but without counting those of the start of the run."""
    agreed: frozenset[StepKey] | None = None
    """Steps that the ranks of a run all count, where a rank by itself would count others."""
    max_gaps: int = 1000
    """Rows kept in the gap table, longest first."""
    peaks: tuple[Peaks, ...] = ()
    """Peak rates of devices, looked at before those that the tool knows."""
    keep: Filter | None = None
    """Part of the recording to analyse, see `analyze.py`."""
