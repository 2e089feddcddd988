import numpy as np

from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, measured, merged, rule

_PIN = regex(r"^aten::_?pin_memory$")


@rule(
    "DAT103",
    "pinning-in-loop",
    title="pinning in the training loop",
    sentence="Batches are pinned in the training loop, {count} time(s) in all: {time} {per}.",
    confidence=Confidence.HIGH,
    needs="DLO",
    advice_texts={
        "pin_in_loader": (
            "Pin in the DataLoader (pin_memory=True); batches of your own types need a method pin_memory()."
        )
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Batches are pinned in the training loop.

    What it finds
        `pin_memory` operators on the thread of the steps, in half of them or more. The loader's own pinning thread is
        fine.
    Why it costs time
        Pinning copies the batch on the host and may lock pages, all before the copy to the device starts: often twice
        as slow as a plain `.to(device)`.
    How it is measured
        Time of these operators; the saving is what a replay of the launches without them gains.
    What to do
        `pin_memory=True` in the DataLoader (batches of your own types need a method `pin_memory()`).

    References
        pin_memory and non_blocking tutorial; torch.utils.data.
    """
    rows = facts.rows(EventKind.HOST_OP, _PIN)
    rows = rows[facts.context.trace.events.track[rows] == facts.context.step_track]
    if 2 * len(rows) < facts.window.count or not len(rows):
        return
    spans = facts.spans(rows)
    removed = merged(spans)
    yield Finding(
        bound=facts.mean(int(np.sum(removed.end - removed.start))),
        draws="idle",
        change=Change(removed),
        evidence=measured(count=len(rows), time=facts.mean(int(np.sum(removed.end - removed.start)))),
        count=len(rows),
    )
