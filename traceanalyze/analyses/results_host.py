"""What the host side of one rank did: results of the analyses of operators, phases, modules and Python lines.

Times are int64 ns over the analysed windows. Host events count by their start; device events as long as they run
inside the windows, as in all other device tables, so that the sums agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.results_device import Spread
    from traceanalyze.model.table import NotMeasured
    from traceanalyze.model.vocabulary import Phase

UNLINKED = "<unlinked>"
"""In place of an operator: device events without a launch record."""
OUTSIDE_OPS = "<outside operators>"
"""In place of an operator: device events launched while no operator ran."""
BACKWARD_UNKNOWN = "<backward, module unknown>"
"""In place of a module: device time of the backward pass whose forward operator was not found."""


@frozen
class Operator:
    """All runs of one operator, or of one operator with certain shapes (definitions §9)."""

    name: str
    shapes: str | None
    """None when the row stands for all shapes."""
    frame: str | None
    """Innermost user Python frame of the first run, if stacks were recorded."""
    calls: int
    host_total: int
    """Of runs that are not inside another run of this row; so is `device_total`."""
    host_self: int
    """Not in operators inside."""
    api_time: int
    """In runtime calls made by the operator itself; part of `host_self`."""
    device_self: int
    """Of the device events that the operator launched itself."""
    device_total: int
    launched: int
    """Device events behind `device_self`."""


@frozen
class PhaseTime:
    """One phase of the training step (definitions §10), ns a step."""

    phase: Phase
    device: NDArray[np.int64]
    """As long as some work of the phase ran on the headline device."""
    host: NDArray[np.int64]
    """As long as some thread of the process was in the phase."""
    events: int
    """Device events of the headline device."""


@frozen
class Module:
    """One `nn.Module` by its place in the model (definitions §11)."""

    path: str
    name: str
    """Its class."""
    calls: int | None
    """None where the source has no events of modules."""
    host_total: int | None
    host_self: int | None
    """Not in modules inside."""
    forward_self: int
    """Device time of what it launched itself."""
    forward_total: int
    backward_self: int
    backward_total: int


@frozen
class SourceLine:
    """A user's Python function, by the line it begins at."""

    name: str
    calls: int
    host_total: int
    """Of runs that are not inside another run of it."""
    host_self: int
    """In no other Python function, operator or call."""
    host_own: int
    """In no other function of the user: with the library code it calls."""
    idle: int
    """Device idle, for reasons on the host, while this was the innermost user function of the step thread."""


@frozen
class OperatorSteps:
    """One operator in every step; numbers as in `Operator`."""

    name: str
    calls: NDArray[np.int64]
    host_self: NDArray[np.int64]
    device_self: NDArray[np.int64]


@frozen
class Annotation:
    """All ranges of one user annotation on the host."""

    name: str
    calls: int
    host: Spread
    """Of ranges that are not inside another of this name; so are `device_time` and `kernels`."""
    device_time: int
    """Of all device events launched inside by the same thread."""
    kernels: int
    """Of these events the kernels: no copies and fills."""


@frozen
class HostWork:
    """All host-side tables of a rank."""

    operators: tuple[Operator, ...] | NotMeasured
    """Most device time first; with rows for device time that belongs to no operator, the `device_self` add up to all
    device time."""
    shapes: tuple[Operator, ...] | NotMeasured
    phases: tuple[PhaseTime, ...] | NotMeasured
    modules: tuple[Module, ...] | NotMeasured
    lines: tuple[SourceLine, ...] | NotMeasured
    op_steps: tuple[OperatorSteps, ...] | NotMeasured
    """Only the first few operators."""
    annotations: tuple[Annotation, ...] | NotMeasured
    device_time: int | None
    """Of all device events; None when no device was recorded."""
    broken: int
    """Operators that do not nest properly and were closed early."""
