"""Which metrics there are: kind, unit, how ranks are put together, which direction is worse, and default budgets."""

from enum import StrEnum
from typing import Literal, NamedTuple

from traceanalyze.errors import Phrase, UsageError
from traceanalyze.model.patterns import regex

_NUMBER = regex(r"\s*([-+]?\d+(?:_\d+)*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)\s*")
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {
    "b": 1.0,
    **{f"{letter}b": 1000.0**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024.0**power for power, letter in enumerate("kmgt", 1)},
}
UNITS = {
    "ns": Phrase("a time such as 1 ms"),
    "B": Phrase("bytes such as 72 GiB"),
    "points": Phrase("points such as 2 points"),
    "1/s": Phrase("a number"),
    "GB/s": Phrase("a number of GB/s"),
    "count": Phrase("a number"),
    "confidence": Phrase("a number such as 0.95"),
    **dict.fromkeys(("prior_weight", "tokens_per_step", "samples_per_step"), Phrase("a number")),
}
"""Unit in which a metric is kept → what people write for it."""


class Amount(NamedTuple):
    """An amount in the unit of its metric, or a share of the baseline."""

    value: float
    relative: bool = False
    """`value` is a fraction of the baseline's value."""


def amount(written: object, unit: str, place: str, *, relative: bool = True) -> Amount:
    """What was written, a number (of times in ms) or a text with a unit, in the unit in which the metric is kept."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return Amount(_checked(float(written) * (1e6 if unit == "ns" else 1), place))
    found = _NUMBER.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise UsageError("{place}: {written!r} is not a number; write {units}", place, written, UNITS[unit])
    number, suffix = _checked(float(found[1]), place), found[2]
    if suffix == "%" and relative:
        return Amount(number / 100, relative=True)
    factor = _factor(suffix, unit)
    if factor is None:
        units = Phrase("{units} or 5%", UNITS[unit]) if relative else UNITS[unit]
        raise UsageError("{place}: {written!r} has the wrong unit; write {units}", place, written, units)
    return Amount(number * factor)


def share(written: object, place: str) -> float:
    """A share: `5%`, or a fraction such as 0.05."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return _checked(float(written), place)
    found = _NUMBER.fullmatch(written) if isinstance(written, str) else None
    if found is None or found[2] not in {"%", ""}:
        raise UsageError("{place}: {written!r} is not a share; write 5% or 0.05", place, written)
    return _checked(float(found[1]), place) / (100 if found[2] else 1)


def _factor(suffix: str, unit: str) -> float | None:
    if not suffix:
        return 1e6 if unit == "ns" else 1.0
    if unit == "ns":
        return _TIMES.get(suffix)
    if unit == "B":
        return _BYTES.get(suffix.lower())
    return 1.0 if suffix.lower() in {unit.lower(), unit.lower().removesuffix("s")} else None


def _checked(value: float, place: str) -> float:
    if not 0 <= value < float("inf"):
        raise UsageError("{place}: {value:g} must not be negative or infinite", place, value)
    return value


class Kind(StrEnum):
    """How a metric is compared."""

    TIME = "time"
    """On a log scale, as a relative change with an interval."""
    RATIO = "ratio"
    """As a difference in points."""
    EXACT = "exact"
    """Number against number: no statistics."""


class Level(StrEnum):
    """What a regression of a metric does."""

    OFF = "off"
    WARN = "warn"
    ERROR = "error"


NOTHING = Amount(0)
Ranks = Literal["max", "median", "sum"]


class Metric(NamedTuple):
    """One metric; its values are kept in `unit`."""

    name: str
    kind: Kind
    unit: str
    """ns, 1/s, GB/s, points, B or count"""
    ranks: Ranks
    lower_is_better: bool = True
    level: Level = Level.OFF
    budget: Amount = NOTHING
    """Largest change for the worse."""
    per_run: bool = False
    """One number for the run, no steps."""

    @property
    def sign(self) -> int:
        """Factor by which more is worse."""
        return 1 if self.lower_is_better else -1

    @property
    def part_of_step(self) -> bool:
        """Whether it is a time within the step, which the noise of the step may hide."""
        return self.kind == Kind.TIME and self.unit == "ns" and self.name != "step.time"


TIME_BUDGET = Amount(0.05, relative=True)
RATIO_BUDGET = Amount(2)
_TWO_PERCENT = Amount(0.02, relative=True)


def _component(name: str) -> Metric:
    return Metric(name, Kind.TIME, "ns", "median", budget=TIME_BUDGET)


def _exact(
    name: str, unit: str = "count", level: Level = Level.WARN, budget: Amount = NOTHING, *, per_run: bool = False
) -> Metric:
    return Metric(name, Kind.EXACT, unit, "max", level=level, budget=budget, per_run=per_run)


_ALL = (
    Metric("step.time", Kind.TIME, "ns", "max", level=Level.ERROR, budget=TIME_BUDGET),
    Metric("step.tokens_per_s", Kind.TIME, "1/s", "sum", lower_is_better=False, budget=TIME_BUDGET),
    Metric("step.samples_per_s", Kind.TIME, "1/s", "sum", lower_is_better=False, budget=TIME_BUDGET),
    *map(
        _component,
        (
            *("compute.time", "comm.exposed_time", "memops.exposed_time", "idle.time", "idle.dispatch_time"),
            *("idle.host_op_time", "idle.sync_time", "idle.data_time", "sync.idle_caused_time"),
            *("optimizer.time", "forward.time", "backward.time"),
        ),
    ),
    Metric("gpu.busy_ratio", Kind.RATIO, "points", "median", lower_is_better=False, budget=RATIO_BUDGET),
    Metric("comm.overlap_ratio", Kind.RATIO, "points", "median", lower_is_better=False, budget=RATIO_BUDGET),
    Metric("rank.skew", Kind.RATIO, "points", "max", budget=RATIO_BUDGET),
    _exact("kernel.count", budget=_TWO_PERCENT),
    _exact("launch.count", budget=_TWO_PERCENT),
    _exact("sync.count"),
    _exact("memcpy.h2d_bytes", "B", Level.OFF),
    _exact("memcpy.d2h_bytes", "B", Level.OFF),
    _exact("collective.count"),
    _exact("collective.bytes", "B", budget=_TWO_PERCENT),
    _exact("alloc.device_malloc.count"),
    _exact("alloc.device_free.count"),
    _exact("alloc.retry.count", per_run=True),
    _exact("compile.graph_break.count", per_run=True),
    _exact("compile.recompile.count", per_run=True),
    _exact("memory.allocated_peak", "B", budget=_TWO_PERCENT, per_run=True),
    _exact("memory.reserved_peak", "B", budget=_TWO_PERCENT, per_run=True),
    _exact("findings.high", per_run=True),
    _exact("findings.total", per_run=True),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}

_SELECTOR = regex(r'(op|kernel|module|collective)\["([^"]+)"\]\.([a-z_]+)')
_SUFFIXES = {
    "op": ("device_time", "host_time", "count"),
    "kernel": ("device_time", "count"),
    "module": ("device_time",),
    "collective": ("device_time", "exposed_time", "busbw", "algbw", "count", "bytes"),
}


class Selector(NamedTuple):
    """Some operators, kernels, modules or collectives by the pattern of their names."""

    of: str
    """op, kernel, module or collective"""
    pattern: str
    suffix: str


def selector_of(name: str) -> Selector | None:
    """The selector that a metric's name is; None where it is none, or no such number exists."""
    found = _SELECTOR.fullmatch(name)
    if found is None or found[3] not in _SUFFIXES[found[1]]:
        return None
    return Selector(*found.groups())


def metric_of(name: str) -> Metric | None:
    """The metric of a name, selectors included."""
    selector = selector_of(name)
    if selector is None:
        return METRICS.get(name)
    if selector.suffix.endswith("_time"):
        return _component(name)
    if selector.suffix in {"busbw", "algbw"}:
        return Metric(name, Kind.TIME, "GB/s", "median", lower_is_better=False, budget=TIME_BUDGET, per_run=True)
    unit = "B" if selector.suffix == "bytes" else "count"
    return Metric(name, Kind.EXACT, unit, "median")


def known_names() -> tuple[str, ...]:
    """Names of metrics, and of each kind of selector one, for messages."""
    return (*METRICS, *(f'{of}["…"].{suffix}' for of, suffixes in _SUFFIXES.items() for suffix in suffixes))
