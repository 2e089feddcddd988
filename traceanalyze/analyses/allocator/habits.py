"""Smaller observations: short-lived blocks at the peak (D7), gradients kept through forward (D12), settings (D11)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.composition import live_at, short_lived
from traceanalyze.analyses.allocator.results import HeldGradients, Spike
from traceanalyze.analyses.results import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.curves import Curve
    from traceanalyze.analyses.allocator.lifetimes import Lifetimes
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.analyses.allocator.steps import StepStarts
    from traceanalyze.model.snapshot import History, Snapshot

SPIKE_SHARE = 0.2
"""Real offenders have 0.26–1.0 of their peak in short-lived blocks, others at most 0.17 (D7)."""
GRADIENT_SHARE = 0.05


def spike(lives: Lifetimes, history: History, active: Curve, sites: Sequence[Site]) -> Spike | NotMeasured:
    """Share of the peak held by blocks that were freed again at once."""
    if len(history) <= 1:
        return NotMeasured("no_memory_history")
    peak, event = active.peak
    live = live_at(lives, event)
    live = live[short_lived(lives, history)[live]]
    size = int(lives.requested[live].sum())
    share = size / peak if peak else 0.0
    largest = int(live[lives.requested[live].argmax()]) if len(live) else -1
    line = sites[int(lives.stack[largest])].line if largest >= 0 else ""
    return Spike(share, size, line, share >= SPIKE_SHARE)


def held_gradients(
    lives: Lifetimes, starts: StepStarts, active: Curve, sites: Sequence[Site], count: int
) -> HeldGradients | NotMeasured:
    """Gradients of the step before that are alive at the peak of a later step's forward pass.

    The forward pass of a step lasts from its begin to the first allocation of its backward pass.
    """
    if len(starts.first) < 2:
        return NotMeasured("no_memory_steps")
    gradient = np.array([site.gradient for site in sites], np.bool_)[lives.stack]
    backward = np.array([site.backward for site in sites], np.bool_)[lives.stack]
    if not gradient.any():
        return NotMeasured("no_gradient_stacks")
    begins = np.sort(lives.begin[backward & (lives.begin >= 0)])
    bounds = [*starts.first.tolist(), count]
    worst: tuple[int, str] = (0, "")
    for index, (first, until) in enumerate(itertools.pairwise(bounds)):
        at = int(np.searchsorted(begins, first))
        end = min(int(begins[at]), until) if at < len(begins) else until
        if index == 0 or end <= first:
            continue
        top = first + int(active.after[first:end].argmax())
        kept = gradient & (lives.begin < first) & (lives.end > top)
        worst = max(worst, (int(lives.requested[kept].sum()), starts.name[index]))
    share = worst[0] / active.peak[0] if active.peak[0] else 0.0
    return HeldGradients(worst[0], share, worst[1], share >= GRADIENT_SHARE)


def settings_remarks(snapshot: Snapshot, *, events: int, stacks: bool) -> tuple[str, ...]:
    """Keys of what is odd about the configuration and the recording."""
    settings = snapshot.settings
    expandable = settings.get("expandable_segments") is True
    split = settings.get("max_split_size")
    threshold = settings.get("garbage_collection_threshold")
    text = str(settings.get("PYTORCH_CUDA_ALLOC_CONF", "")) + str(settings.get("PYTORCH_ALLOC_CONF", ""))
    found = []
    if expandable and isinstance(split, int) and split > 0:
        found.append("expandable_with_max_split")
    if isinstance(threshold, int | float) and threshold > 0 and "fraction" not in text:
        found.append("gc_threshold_without_fraction")
    if events == 0:
        found.append("history_never_recorded")
    elif events == 1:
        found.append("state_only_recording")
    if not stacks:
        found.append("no_memory_stacks")
    return tuple(found)
