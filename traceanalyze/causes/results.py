"""What a post-mortem finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.causes.parts import RecordingPart, Trouble
    from traceanalyze.rules.finding import Finding, Severity


@frozen
class Onset:
    """In which of the recorded steps something is there."""

    kind: str
    """every, from, until, some; untold where it is not tied to points in time."""
    step: str = ""
    """First step of `from`, last one of `until`."""
    recording: int = 0
    """The recording which that step is in."""
    affected: int = 0
    steps: int = 0
    """Steps in which it was looked for."""


@frozen
class Cause:
    """One thing that cost the run time or memory, on whichever ranks and in whichever recordings.

    Times are ns a step, those of the recording in which it costs most.
    """

    finding: Finding | None
    """That of the rank on which it saves most; None where only a snapshot tells."""
    severity: Severity
    """The largest of all ranks, but no more than what the run gains is worth."""
    ranks: tuple[str, ...]
    """Labels of those it holds on; of a finding about a rank, of that rank."""
    judged: int
    """How many ranks it was looked for on."""
    recording: int
    rank: str = ""
    """Label of the rank whose finding is shown; empty for one about the run."""
    gain: int | None = None
    """What the run's step gains without it: its slowest rank counts, waiting for others left out."""
    largest: int | None = None
    """Largest saving of a rank."""
    mean: int | None = None
    """Mean saving over all ranks it was looked for on."""
    bound: int | None = None
    total: int | None = None
    """Sum of the savings over all ranks, windows and recordings, ns."""
    share: float | None = None
    """Gain over the mean step of that recording."""
    onset: Onset = Onset("untold")
    gains: tuple[int | None, ...] = ()
    """Gain in each recording; None where it could not be judged, 0 where it was not found."""
    trouble: Trouble | None = None
    """What a snapshot tells."""
    of_run: bool = False
    """About the ranks side by side, not about one of them."""
    part_of: int | None = None
    """Position of the cause that is about the same time and gains more: the two must not be added."""
    because: int | None = None
    """Position of the cause that explains this one."""


@frozen
class Unjudged:
    """Rules that could not be judged for one reason."""

    reason: str
    rules: tuple[str, ...]
    ranks: tuple[str, ...]
    """Labels of the ranks this holds for."""


@frozen
class Growth:
    """A cause that costs notably more from one recording on than in any before it."""

    cause: int
    """Position."""
    recording: int
    before: int
    """Most it cost until then; 0: it was not there."""
    after: int


@frozen
class Postmortem:
    """All of it."""

    recordings: tuple[RecordingPart, ...]
    """In the order of time."""
    causes: tuple[Cause, ...]
    """What limited the run first."""
    capture: tuple[Cause, ...]
    """About the recordings themselves."""
    unjudged: tuple[Unjudged, ...]
    growths: tuple[Growth, ...]
    decider: tuple[int, int] | None
    """Recording and position of the rank that decides how long the step is; None without recordings."""
    rules: int
    """How many rules were run."""
