"""What is told about a recording when the script has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.record.context import Recording


def outcome(recording: Recording, *, quiet: bool = False) -> Iterator[str]:
    """Lines: what went wrong, even if quiet, then what was written and how to read it."""
    yield from recording.troubles
    options, steps = recording.options, recording.steps
    if not steps:
        found = "the recording is one stretch without steps" if recording.files else "nothing was recorded"
        yield (
            f"no optimizer stepped, so there are no steps: {found}; mark them in your loop: "
            "`with traceanalyze.record('run') as recording:` around it, `recording.step()` at the end of each step"
        )
    elif steps < options.steps:
        found = (
            "the recording is shorter, and what follows its last step is marked as one more"
            if recording.files
            else "nothing was recorded"
        )
        yield (
            f"the script ended after {_steps(steps)}, and --wait {options.wait} --warmup {options.warmup} "
            f"--active {options.active} take {options.steps}: {found}; train longer or wait less"
        )
    if quiet or not recording.files:
        return
    written = ", ".join([*recording.files, *recording.snapshots])
    yield f"wrote {written} to {recording.folder}; read it with: traceanalyze {recording.folder}"


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"
