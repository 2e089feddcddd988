"""Recordings of a program before and after a change: what was promised before against what it came to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import traceanalyze
from tests.real import SHARED
from tests.simulate.matrix.figures import Figures, figures
from tests.simulate.matrix.verdicts import Row, Verdict
from traceanalyze.analyses.steps.window import median

if TYPE_CHECKING:
    from traceanalyze.report.finding import Finding

_RESNET, _SAM, _NUGGETS = (
    "kineto/kineto_tb/samples/resnet50_num_workers_",
    "pairs/sam_fast_ladder/",
    "pairs/transformer_",
)


class Pair(NamedTuple):
    """Public recordings of one program."""

    before: str
    after: str
    mended: str
    """Rule about what was changed."""
    first: tuple[str, ...]
    """Rules that may come first before it."""


PAIRS = (
    *(
        Pair(f"{_RESNET}0/worker0.{before}*", f"{_RESNET}4/worker0.{after}*", "DAT101", ("DAT101",))
        for before in ("1623143089861", "1623143566756")
        for after in ("1623212756351", "1623213129365")
    ),
    # What the host does costs most of all; float32 was mended.
    Pair(f"{_SAM}a73da0*", f"{_SAM}4488ee*", "KRN101", ("HST101", "HST107")),
    Pair(f"{_NUGGETS}nuggets/*bnb*", f"{_NUGGETS}nuggets/*qlora*", "KRN120", ("KRN120",)),
)
GROUP = "pairs"


def measured() -> dict[str, Figures]:
    """Their figures; nothing where the recordings are not there."""
    if not all(list(SHARED.glob(name)) for pair in PAIRS for name in pair[:2]):
        return {}
    # More was changed than what one finding is about.
    return {GROUP: replace(figures([judged(pair) for pair in PAIRS]), together=None)}


def judged(pair: Pair) -> Verdict:
    """What was promised for the cause that was mended, and what the step then was."""
    step, found = _told(pair.before)
    (one,) = (each for each in found if each.rule == pair.mended)
    low, saving, high = (None,) * 3 if one.saving is None else (one.saving.low_ns, one.saving.ns, one.saving.high_ns)
    name, true = f"{pair.before} {pair.after}", step - _told(pair.after)[0]
    row = Row(name, GROUP, pair.mended, (one.rule,), step, true, low, saving, high)
    first = found[0].rule
    return Verdict(name, GROUP, step, (row,), (first,), pair.first, first in pair.first, (0, 0), ())


@cache
def _told(name: str) -> tuple[int, tuple[Finding, ...]]:
    """The median step of a recording, as single ones were disturbed, and what is found in it."""
    (path,) = SHARED.glob(name)
    report = traceanalyze.analyze(path)
    steps = report.analyses[0].steps
    return median(steps.time[steps.counted]), report.findings
