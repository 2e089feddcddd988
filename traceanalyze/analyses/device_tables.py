"""All tables about what ran on the devices of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.collectives import collectives
from traceanalyze.analyses.copies import copies
from traceanalyze.analyses.device_annotations import device_annotations
from traceanalyze.analyses.device_summary import device_summary, overlaps
from traceanalyze.analyses.kernel_sequences import kernel_sequences
from traceanalyze.analyses.kernel_types import kernel_types
from traceanalyze.analyses.kernels import configurations, durations, kernel_groups, kernels
from traceanalyze.analyses.op_work import op_work
from traceanalyze.analyses.results_device import DeviceWork
from traceanalyze.analyses.step_launches import step_launches
from traceanalyze.analyses.utilisation import utilisation

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def device_tables(context: Context) -> DeviceWork:
    """Device work inside the analysed windows from every side."""
    combined = overlaps(context)
    return DeviceWork(
        kernels=kernels(context),
        groups=kernel_groups(context),
        types=kernel_types(context),
        configurations=configurations(context),
        durations=durations(context),
        overlaps=combined,
        summary=device_summary(context, combined),
        copies=copies(context),
        collectives=collectives(context),
        step_launches=step_launches(context),
        ops=op_work(context),
        annotations=device_annotations(context),
        utilisation=utilisation(context),
        sequences=kernel_sequences(context),
    )
