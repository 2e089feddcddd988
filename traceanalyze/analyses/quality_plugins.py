"""What plug-ins told about a recording (definitions §14): numbers rest on their word."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import Check
from traceanalyze.model.classifier import told_of_range
from traceanalyze.model.classify import is_data_loading
from traceanalyze.model.vocabulary import Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.context import Context


def plugin_checks(context: Context) -> Iterator[Check]:
    """By plug-in, how many device events of the analysed windows and how many host ranges it classified."""
    options = context.options.classify
    if not options.plugins:
        return
    work = context.work.plugin
    events = np.bincount(work[work >= 0], minlength=len(options.plugins)).tolist()
    builtin = replace(options, plugins=())

    def teller(text: str) -> int:
        return -1 if is_data_loading(text, builtin) else told_of_range(text, options.plugins)

    told = context.trace.strings.lookup(context.trace.events.name[context.host_rows], teller)
    ranges = np.bincount(told[told >= 0], minlength=len(options.plugins)).tolist()
    for one, device, host in zip(options.plugins, events, ranges, strict=True):
        if device:
            yield Check("Q08", Level.INFO, "plugin_events", (("plugin", one.plugin), ("count", device)))
        if host:
            yield Check("Q08", Level.INFO, "plugin_ranges", (("plugin", one.plugin), ("count", host)))
