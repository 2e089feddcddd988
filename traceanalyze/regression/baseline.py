"""The baseline file: samples of runs as JSON, one run a line, small enough to commit (20 runs in at most 100 kB)."""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from traceanalyze.errors import InputError, UsageError
from traceanalyze.regression.explain import Amounts, Explain, shortened
from traceanalyze.regression.metrics import metric_of
from traceanalyze.regression.samples import EnvironmentValue, RunSample, Sample
from traceanalyze.whole_file import whole_file

SCHEMA_VERSION = 1
KEEP = 20
BYTES_PER_RUN = 5_000
"""Room of each run, on average; 20 runs are kept by default."""
_LEAST_RUNS = 4
"""A file of fewer runs has the room of so many: names are stored once, and the newest run keeps every row."""
_MOST, _MOST_STEPS = 2**63, 1_000_000
"""Values and steps from which on a file is damaged: their nanoseconds, or as many samples, would have no room."""
_TEXTS = ("id", "name", "time", "label", "commit", "accepted")
"""Fields of a run that are stored as they are."""


@dataclass(frozen=True)
class Baseline:
    """The runs of a baseline file, oldest first."""

    runs: tuple[RunSample, ...] = ()
    created: str = ""
    tool_version: str = ""
    label: str = ""


def level(runs: Sequence[RunSample]) -> tuple[RunSample, ...]:
    """The runs of one environment to compare with: those since its last change, as older ones tell of another level."""
    change = next((run.accepted for run in reversed(runs) if run.accepted), "")
    first = next(index for index, run in enumerate(runs) if run.accepted == change) if change else 0
    return tuple(runs[first:])


def is_baseline(path: str) -> bool:
    """Whether a path is a baseline file, by how it begins."""
    try:
        with Path(path).open("rb") as file:
            return file.read(64).lstrip().startswith(b'{"baseline":')
    except OSError:
        return False


def added(baseline: Baseline, runs: Iterable[RunSample], *, keep: int = KEEP) -> tuple[Baseline, tuple[RunSample, ...]]:
    """The baseline with more runs, the newest `keep` of all; and the runs that were in it already, left out.

    One that now has metrics that a budget named only later is in its place with them.
    """
    every = {run.id: run for run in baseline.runs}
    twice: list[RunSample] = []
    for run in runs:
        before = every.get(run.id)
        if before is not None and all(map(before.asked, run.metrics)):
            twice.append(run)
            continue
        metrics, missing = ({}, {}) if before is None else (before.metrics, before.missing)
        every[run.id] = replace(before or run, metrics={**run.metrics, **metrics}, missing={**run.missing, **missing})
    kept = tuple(every.values())
    return replace(baseline, runs=kept[max(len(kept) - keep, 0) :]), tuple(twice)


def dump(baseline: Baseline) -> bytes:
    """The file. Where it would be too big, older runs keep less beside their samples, at last the newest, too.

    Every step of every run always stays; what goes are rows of explanations, values of single ranks and workloads.
    """
    runs = list(baseline.runs)
    content = _written(baseline, runs)
    limit = BYTES_PER_RUN * max(len(runs), _LEAST_RUNS)
    for what in _LEANER:
        for part in (slice(0, -1), slice(-1, None)):
            if len(content) <= limit:
                return content
            runs[part] = [_leaner(run, what) for run in runs[part]]
            content = _written(baseline, runs)
    return content


_LEANER: tuple[int | str, ...] = (25, 12, "ranks", 6, "workload", 3, 0)
"""What is given up, in this order, first by the older runs; numbers are rows of explanations that stay."""


def _leaner(run: RunSample, what: int | str) -> RunSample:
    if isinstance(what, int):
        return replace(run, explain=shortened(run.explain, what))
    if what == "workload":
        return replace(run, workload={})
    # Single ranks only of the step time.
    metrics = run.metrics.items()
    return replace(run, metrics={n: each if n == "step.time" else replace(each, per_rank={}) for n, each in metrics})


def _written(baseline: Baseline, runs: Sequence[RunSample]) -> bytes:
    names: dict[str, int] = {}
    workloads: dict[str, int] = {}
    written = [_text(_run(run, names, workloads)) for run in runs]
    lines = [
        '{"baseline":"traceanalyze"',
        f'"created":{_text(baseline.created)}',
        f'"label":{_text(baseline.label)}',
        f'"names":{_text(list(names))}',
        '"runs":[\n' + ",\n".join(written) + "\n]",
        f'"schema_version":{SCHEMA_VERSION}',
        f'"tool_version":{_text(baseline.tool_version)}',
        '"workloads":[' + ",".join(workloads) + "]}",
    ]
    return (",\n".join(lines) + "\n").encode()


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else round(value, 6)


def _run(run: RunSample, names: dict[str, int], workloads: dict[str, int]) -> dict[str, Any]:
    def of(name: str) -> int:
        return names.setdefault(name, len(names))

    work = _text([[of(name), _number(count)] for name, count in run.workload.items()])
    explain = run.explain
    return {
        **{key: getattr(run, key) for key in _TEXTS},
        "environment": run.environment | {"workload": workloads.setdefault(work, len(workloads))},
        "explain": {
            "kept": explain.kept,
            "kernels": [[of(name), _number(a.time), _number(a.count)] for name, a in explain.kernels.items()],
            "parts": explain.parts,
            "reasons": [[*map(of, key), _number(a.time), _number(a.count)] for key, a in explain.reasons.items()],
            "steps": explain.steps,
            "unseen": explain.unseen,
        },
        "findings": run.findings,
        "metrics": {name: _sample(name, sample) for name, sample in run.metrics.items()},
        "missing": run.missing,
        "notes": run.notes,
        "ranks": run.ranks,
        "usable_steps": run.usable_steps,
    }


def _sample(name: str, sample: Sample) -> dict[str, Any]:
    """Steps that do not differ are not repeated: their number is that of the run."""
    metric = metric_of(name)
    found: dict[str, Any] = {"unit": metric.unit if metric else "", "value": _number(sample.value)}
    if sample.per_step:
        found["varies"] = sample.varies
    if sample.varies:
        found["per_step"] = [_number(value) for value in sample.per_step]
    if sample.per_rank:
        found["per_rank"] = {str(rank): _number(value) for rank, value in sample.per_rank.items()}
    return found


def load(content: bytes, source: str) -> Baseline:
    """Read a baseline file."""
    try:
        document = json.loads(content)
        _check_version(document["schema_version"], source)
        names, workloads = [*map(_said, document["names"])], document["workloads"]
        runs = tuple(_read_run(run, names, workloads) for run in document["runs"])
        return Baseline(runs, *(_said(document[key]) for key in ("created", "tool_version", "label")))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise InputError("{source}: this baseline is damaged ({why})", source, why) from error


def _check_version(version: object, source: str) -> None:
    if not isinstance(version, int):
        raise TypeError("schema_version is no number")
    if version > SCHEMA_VERSION:
        raise InputError(
            "{source}: written by a newer version (schema {version}; this one reads up to {known}); "
            "update traceanalyze",
            source,
            version,
            SCHEMA_VERSION,
        )


def _said(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    value.encode()  # What cannot be written is damaged, too.
    return value


def _measure(value: Any) -> float:
    if type(value) not in {int, float} or not abs(value) < _MOST:
        raise TypeError(f"{value!r:.40} is no measure")
    return cast("float", value)


def _count(value: Any) -> int:
    return int(_measure(value))


def _amounts(time: Any, count: Any) -> Amounts:
    return Amounts(_measure(time), _measure(count))


def _environment(value: Any) -> EnvironmentValue:
    if isinstance(value, list):
        return tuple(map(_said, value))
    return None if value is None else _count(value) if isinstance(value, int) else _said(value)


def _read_run(run: Mapping[str, Any], names: Sequence[str], workloads: Sequence[Any]) -> RunSample:
    environment = {key: _environment(value) for key, value in run["environment"].items() if key != "workload"}
    steps, explain = _count(run["usable_steps"]), run["explain"]
    if not 0 <= steps <= _MOST_STEPS:
        raise ValueError(f"{steps} steps")
    work = workloads[run["environment"]["workload"]]
    texts: dict[str, Any] = {key: _said(run[key]) for key in _TEXTS}
    return RunSample(
        **texts,
        ranks=tuple(None if rank is None else _count(rank) for rank in run["ranks"]),
        environment=environment,
        workload={names[name]: _measure(count) for name, count in work},
        metrics={name: _read_sample(sample, steps) for name, sample in run["metrics"].items()},
        missing={name: _said(why) for name, why in run["missing"].items()},
        explain=Explain(
            steps=_count(explain["steps"]),
            parts={key: _count(time) for key, time in explain["parts"].items()},
            unseen=tuple(map(_said, explain["unseen"])),
            reasons={(names[a], names[b], names[c]): _amounts(*each) for a, b, c, *each in explain["reasons"]},
            kernels={names[a]: _amounts(*each) for a, *each in explain["kernels"]},
            kept=_count(explain["kept"]),
        ),
        usable_steps=steps,
        findings=None if run["findings"] is None else {key: _count(n) for key, n in run["findings"].items()},
        notes=tuple(map(_said, run["notes"])),
    )


def _read_sample(sample: Mapping[str, Any], steps: int) -> Sample:
    value = float(_measure(sample["value"]))
    constant = (value,) * steps if "varies" in sample else ()
    per_rank = {int(rank): float(_measure(number)) for rank, number in sample.get("per_rank", {}).items()}
    return Sample(value, tuple(float(_measure(each)) for each in sample.get("per_step", constant)), per_rank)


def read_baseline(path: str) -> Baseline:
    """The baseline of a file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError("{path}: cannot be read: {why}", path, error.strerror) from error
    return load(content, path)


def write_baseline(path: str, baseline: Baseline) -> None:
    """Write the file: nobody ever sees a part of it."""
    with whole_file(Path(path)) as file:
        file.write(dump(baseline))


def changed(path: str, change: Callable[[Baseline | None], Baseline]) -> Baseline:
    """Read, change and write a baseline while no other program does; None is read where there is no file yet."""
    with _locked(path):
        after = change(read_baseline(path) if Path(path).exists() else None)
        write_baseline(path, after)
    return after


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Wait for the lock file beside it; whoever holds it removes it, so one that is gone by then is no lock."""
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(handle, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    break
            os.close(handle)
    except OSError as error:
        raise UsageError("{path}: cannot be locked: {why}", path, error.strerror) from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
