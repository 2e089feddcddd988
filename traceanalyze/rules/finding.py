"""What a rule says: a finding with its proof and its price, or why it could not be applied; and words rules share."""

from collections.abc import Callable
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.intervals import Intervals, merge
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from traceanalyze.replay.replay import Change

T = TypeVar("T")

FindingKey: TypeAlias = tuple[str, str, str, tuple[str, ...]]
"""Rule, slug, sentence and place."""


class Severity(IntEnum):
    """How much a finding matters."""

    INFO = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3


class Confidence(IntEnum):
    """How safely the data alone prove a finding."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Evidence(NamedTuple):
    """One measured value behind a finding."""

    label: str
    """Key; also the name of the value in the finding's sentence."""
    value: int | float | str
    kind: str
    """Name of a `report.model.Kind`: DURATION (ns), SHARE (fraction), COUNT, NUMBER, RATIO, BYTES, MEMORY, NAME,
    KERNEL, PLACE, TEXT or TERM."""
    start: int | None = None
    """Where to look in the trace, ns; with `end`."""
    end: int | None = None
    line: str | None = None
    """Source line, `file.py(12): function`."""


def measured(**values: float | str) -> tuple[Evidence, ...]:
    """Evidence under labels that several rules share, in this order."""
    return tuple(Evidence(label, value, EVIDENCE[label][1]) for label, value in values.items())


class Scope(NamedTuple):
    """Where a finding holds; empty means everywhere."""

    ranks: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    """Operators, kernels, calls or lines; the first one is named in the table."""


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that costs time or memory.

    A rule fills in what it measured; `rule`, `slug`, `confidence` and `severity` are completed by the engine where they
    are left open.
    """

    saving: int | None = None
    """Estimate, ns a step; None where time is not what it costs, or the profile cannot tell. A rule says what of its
    class of time would go; what the step gains by that, `rules/pricing.py`."""
    cost: int | None = None
    """Idle or exposed time that the cause explains, ns a step; None where only the saving is known."""
    low: int | None = None
    """What it saves at least, ns a step; None where the saving is as good as its inputs."""
    at_least: Callable[[], int] | None = None
    """`low` where that takes a replay of its own, which only what is worth a row is asked for."""
    bound: int | None = None
    """What it can save at most, ns a step."""
    change: "Change | None" = None
    """What would be different without it; None: what `saving`, `draws` and `intervals` say."""
    between: "tuple[Change, ...]" = ()
    """The same in the worst and in the best case, where that is uncertain by more than any saving is."""
    alone: int | None = None
    """What its rank gains for itself, ns a step, where `saving` is what the mean step of the run gains with all ranks
    without it; None where ranks were not replayed together."""
    once: bool = False
    """About work that is done once (first compilation, graph capture, first allocation): it has a cost, and no saving
    per step."""
    draws: str = ""
    """Class of time that the saving comes from: idle.data_loading, idle.sync, idle.dispatch, idle.host_op,
    idle.untraced, idle.device_side, idle, compute, comm_exposed, mem_exposed; where the host alone computes
    host.data_loading, host.ops, host.untraced, host. Savings of one class never add to more than the class has. Empty:
    none."""
    intervals: NDArray[np.int64] | None = None
    """(n, 2) ns: the idle or exposed time behind it. Findings are made disjoint by them."""
    left_out: int = 0
    """How many more there are, of a rank of which only the longest are kept."""
    sentence: str = ""
    """Which sentence describes it, where a rule has several: key `finding_<rule>_<sentence>`."""
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    """Keys; those of the rule where empty."""
    scope: Scope = field(default_factory=Scope)
    count: int = 1
    """Instances behind it, over the analysed steps."""
    severity: Severity | None = None
    """None: by its share of the step."""
    confidence: Confidence | None = None
    text: str = ""
    """What it says in plain words, for rules of other packages, whose sentences no locale of the tool has."""
    rule: str = ""
    slug: str = ""

    @property
    def explains(self) -> int | None:
        """Its cost, also where that is the saving."""
        return self.saving if self.cost is None else self.cost

    @property
    def of_rank(self) -> int | None:
        """What its rank gains for itself."""
        return self.saving if self.alone is None else self.alone

    @property
    def least(self) -> int | None:
        """What it saves at least, also where that is the saving."""
        if self.at_least is not None:
            return self.at_least()
        return self.saving if self.low is None else self.low

    @property
    def most(self) -> int | None:
        """What it saves at most, also where that is the saving."""
        return self.saving if self.saving is None else max(self.saving, self.bound or 0)

    @property
    def ends(self) -> tuple[int, int, int]:
        """What it saves at least, as estimated, and at most, ns a step; 0 where that was not measured."""
        return self.least or 0, self.saving or 0, self.most or 0

    @property
    def worth(self) -> int:
        """What it is ranked by, ns a step: its saving; where none was measured its cost, unless it is only a note."""
        if self.saving is not None:
            return self.saving
        return 0 if self.once or not self.severity else self.cost or 0

    @property
    def order(self) -> tuple[int, bool, int, int, int, str]:
        """Findings sorted by this stand in the order that every output has: what is worth most first, notes last."""
        grades = -(self.severity or 0), -(self.cost or 0), -(self.confidence or 0)
        return -self.worth, self.saving is None, *grades, self.rule

    @property
    def key(self) -> FindingKey:
        """What tells the findings of one rank apart; whether it waits in its communication makes it no other cause."""
        return (
            self.rule,
            self.slug,
            {"waiting": "", "waiting_least": "", "chain_waiting": "chain"}.get(self.sentence, self.sentence),
            self.scope.ops,
        )


class NotApplicable(NamedTuple):
    """A rule that could not be applied, and why."""

    reason: str
    """Key of `Texts.reasons`."""
    rule: str = ""
    slug: str = ""


class UnmeasuredError(Exception):
    """What a rule needs was not measured, so it cannot be applied; the text is a key of `Texts.reasons`."""


def need(value: T | NotMeasured) -> T:
    """The value, where it was measured; else an UnmeasuredError."""
    if isinstance(value, NotMeasured):
        raise UnmeasuredError(value.reason)
    return value


def intervals_of(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts and ends as the (n, 2) array that a finding holds."""
    both = start.base
    if both is not None and both is end.base and both.shape == (2, len(start)) and start.ctypes.data < end.ctypes.data:
        return both.T  # As the algebra makes them.
    # Columns lie in one piece: nearly all that is done with them is done to one of them.
    return np.stack((start, end)).T if len(start) else np.empty((0, 2), np.int64)


def picked(
    start: NDArray[np.int64], end: NDArray[np.int64], chosen: NDArray[np.bool_] | NDArray[np.signedinteger[Any]]
) -> NDArray[np.int64]:
    """Some of many intervals as such an array, by their rows or whether each is one."""
    rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    both = np.empty((2, len(rows)), np.int64)
    for column, place in zip((start, end), both, strict=True):
        column.take(rows, out=place, mode="clip")  # Without a mode it would be copied once more.
    return both.T


def merged(spans: NDArray[np.int64]) -> Intervals:
    """(n, 2) intervals in any order as a set."""
    return merge(spans[:, 0], spans[:, 1])


class Unexplained(NamedTuple):
    """A large part of the step that no finding explains (definitions §18)."""

    part: str
    """compute, communication, memory_ops, fusible (kernels), idle, or a key of `IDLE_GROUPS`."""
    share: float
    """Of the step, what nothing accounts for."""
    why: str
    """What is said of it: the part, with `_python` where Python functions were recorded; of an excerpt `excerpt`,
    of what was launched before the recording `begun_before`; of communication that waits for no other rank `moving`,
    of what is held back between the nodes of a graph `in_graphs`; of compute the sentence's key."""
    line: str = ""
    """Where the host is for most of it outside of operators, `why` being `untraced_line`; else an operator."""
    most: float | None = None
    """Of compute that hides behind the host or communication: what the step, of which it is a part, would save
    without it."""
    of: float | None = None
    """Of compute, what is `rated`, or in kernels with `few_blocks`."""
    reached: float | None = None
    """Of the device's limit, what is rated."""
    step: str = ""
    """The one step that has nearly all of it."""


class Outcome(NamedTuple):
    """What the rules say about one rank."""

    findings: tuple[Finding, ...] = ()
    """In their order."""
    not_applicable: tuple[NotApplicable, ...] = ()
    """Rules that could not be applied, by id."""
    together: tuple[int, int, int] | None = None
    """Low, saving and high of one replay without the causes of all findings, ns a step; None where there was none."""
    unexplained: tuple[Unexplained, ...] = ()
    """Large parts of the step that none of them explains, largest first."""
    with_ranks: tuple[int, int, int] | None = None
    """Like `together`, without the causes of the findings about ranks as well; None where there are none."""
    faint: tuple[Finding, ...] = ()
    """What would be different on this rank without causes that cost it too little to be told: other ranks of its
    program may have more of them."""
    waits: int = 0
    """Exposed communication that may be waiting for ranks that were not recorded, ns a step."""


ADVICE = {
    "set_workers": (
        "DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True); then tune the number of workers "
        "and prefetch_factor."
    ),
    "cheaper_samples": "Decode and augment more cheaply, or beforehand.",
    "local_data": "Keep the data on a local NVMe disk, in few large files.",
    "bucket_lengths": "Bucket samples by length, keep the tokens of a batch constant, or pad to few sizes.",
    "fewer_kernels": "Launch fewer, larger kernels: torch.compile or fused operators; in training a fused optimizer.",
    "fewer_kernels.ascend": (
        "Launch fewer, larger kernels: fused operators (torch_npu.npu_*); in training a fused optimizer."
    ),
    "graphs.cuda": 'Replay CUDA graphs: torch.compile(mode="reduce-overhead") or make_graphed_callables.',
    "graphs.ascend": (
        "Raise the task queue to TASK_QUEUE_ENABLE=2, bind cores (CPU_AFFINITY_CONF=1), or use graph mode."
    ),
    "larger_batch": "Raise the batch size, if memory and training, or the latency of requests, allow it.",
    "create_on_device": "Create tensors on the device (device=…) instead of copying them there.",
    "set_to_none": "optimizer.zero_grad(set_to_none=True).",
    "expandable_segments.cuda": (
        "PYTORCH_ALLOC_CONF=expandable_segments:True (before torch 2.9 PYTORCH_CUDA_ALLOC_CONF)."
    ),
    "expandable_segments.ascend": (
        "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True (HDK 23.0 or newer; not with max_split_size_mb or "
        "garbage_collection_threshold)."
    ),
    "less_memory": "A smaller micro-batch, activation checkpointing, a sharded optimizer (ZeRO-1, FSDP).",
    "contiguous_buffer": "One buffer with views in place of many tiny tensors.",
    "diff_ranks": (
        "Compare that rank with another one (traceanalyze compare OTHER LATE) and fix what takes longer; check its "
        "clock rates and its host."
    ),
    "balance_batches": (
        "Give every rank the same number of tokens: bucket or sort by length; experts: balance loss, capacity."
    ),
    "profiler_warmup": "Let the profiler warm up: schedule(wait=1, warmup=1, active=5).",
}
"""Key, `key.cuda` or `key.ascend` → what to do."""
EVIDENCE = {
    "variation": ("variation", "NUMBER"),
    "share": ("share of the step", "SHARE"),
    "longest": ("longest", "DURATION"),
    "what": ("what", "PLACE"),
    "line": ("line", "NAME"),
    "median": ("median launch call", "DURATION"),
    "busy": ("busy", "SHARE"),
    "blocked": ("host blocked", "DURATION"),
    "place": ("of it at", "DURATION"),
    "request": ("request", "MEMORY"),
    "free": ("free inside segments", "MEMORY"),
    "hole": ("largest free piece", "MEMORY"),
    "amount": ("amount", "MEMORY"),
    "peak": ("peak of allocated memory", "MEMORY"),
    "capacity": ("device memory", "MEMORY"),
    "of_peak": ("share of the peak", "SHARE"),
    "of_capacity": ("share of the device's memory", "SHARE"),
    "time": ("time a step", "DURATION"),
    "part": ("part of compute", "SHARE"),
    "shape": ("shapes", "TEXT"),
    "left": ("memory left", "SHARE"),
    "kernels": ("kernels", "COUNT"),
    "regions": ("compiled regions", "COUNT"),
    "host": ("host time", "DURATION"),
    "idle": ("idle time", "DURATION"),
    "exposed": ("exposed", "DURATION"),
    "last_bucket": ("last bucket, exposed in any case", "DURATION"),
    "size": ("median size", "MEMORY"),
    "lost": ("lost", "DURATION"),
    "slower": ("slower by", "SHARE"),
    "group": ("group", "NAME"),
    "expected": ("expected (GB/s)", "NUMBER"),
    "wait": ("wait of the others", "DURATION"),
    "rank": ("rank", "TEXT"),
    "most": ("most", "DURATION"),
    "least": ("least", "DURATION"),
    "bandwidth": ("bandwidth (GB/s)", "NUMBER"),
    "ranks": ("ranks", "COUNT"),
    "variable": ("variable", "NAME"),
    "setting": ("set to", "TEXT"),
    "count": ("number", "COUNT"),
    "checks": ("checks", "TEXT"),
    "steps": ("complete steps", "COUNT"),
}
"""Label → words, and name of its kind (see `Evidence.kind`)."""
