"""A profile exported twice, as text and as a database: the headline numbers of the form that was not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.model.trace import VendorStep


@frozen
class OtherExport:
    """What is cheap to know of it; None where it does not tell."""

    source: str
    """Its files."""
    steps: tuple[VendorStep, ...] = ()
    """The profile's own step times as this form gives them."""
    windows: tuple[int, ...] | None = None
    """Durations of the steps on the host, ns."""
    kernels: int | None = None
    """Compute kernels of the whole recording."""
    kernel_time: int | None = None
    """Sum of their durations, ns."""
