"""DAT101: the device waits for the data loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.intervals import merge
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.rules.common.loader import LOADER, single_process
from traceanalyze.rules.common.without import without
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Scope
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "DAT101",
    "loader-wait",
    confidence=Confidence.HIGH,
    needs="DO",
    advice=("more_workers", "cheaper_samples", "local_data"),
    options={
        "share": (0.05, "TensorBoard plugin: a loader above 5 % of the step is a bottleneck"),
        "least_ms": (10.0, "msprof-analyze advisor: 10 ms a step"),
    },
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The device is idle because the host waits for its data loader.

    What it finds
        Steps whose device stands idle while the training thread waits for the next batch.
    Why it costs time
        Nothing can be launched before the batch is there. With `num_workers=0` (the default) batches are made in the
        training loop itself, one after the other.
    How it is measured
        Idle time of the device for which the next kernel had not been launched because its thread, or that of the
        steps, was inside `enumerate(DataLoader)#…__next__`, `enumerate(DataPipe)#…` or a range of `--data-regex`
        (definitions §5). Time of the loader under a busy device costs nothing and is no finding. The estimate replays
        the launches without the loader, so idle time until the host is ahead again counts, too.
    What to do
        Several workers, then `prefetch_factor`, `persistent_workers=True` and `pin_memory=True`; cheaper decoding and
        augmentation; data on a local disk, in few large files.

    References
        torch.utils.data; PyTorch Performance Tuning Guide.
    """
    waited = facts.idle(Cause.DATA_LOADING)
    saving = facts.idle_mean(Cause.DATA_LOADING)
    if facts.share(saving) < options.number("share") and saving < options.number("least_ms") * 1e6:
        return
    if not facts.marked and len(waited) < 3:
        return  # One start of an epoch says nothing about steps.
    rows = facts.rows((EventKind.ANNOTATION, EventKind.HOST_OP), LOADER)
    alone = single_process(facts, rows)
    spans = facts.spans(rows)
    gone = without(facts, merge(spans[:, 0], spans[:, 1]))
    yield Finding(
        saving=max(saving, gone.saving),
        bound=max(saving, gone.saving, facts.mean(int((spans[:, 1] - spans[:, 0]).sum()))),
        draws="idle",
        intervals=np.concatenate((waited, gone.idle)),
        sentence="single" if alone else "",
        evidence=(
            Evidence("idle", saving, "DURATION"),
            Evidence("share", facts.share(saving), "SHARE"),
            Evidence("batches", len(rows), "COUNT"),
        ),
        advice=("set_workers", "cheaper_samples", "local_data") if alone else (),
        scope=Scope(ops=tuple(dict.fromkeys(facts.name(row) for row in rows[:1].tolist()))),
        count=len(rows),
    )
