"""A run shared out among machines: each analyses some of its recordings into a folder, one makes the report of them.

The folder has a part for every recording, by its place among all, and one for what was asked, which is the same for all
shares. Parts of another run have other names. Where Dask's workers do it, each has one recording at a time, and one
that is killed loses nothing: what workers were killed over again and again is left out by its name, and where the
scheduler goes away, this machine does the rest. Results come back as parts, too, so that the report is that of one
machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from traceanalyze import plugins
from traceanalyze.errors import InputError, Phrase, UsageError, some
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import parts
from traceanalyze.pipeline.cache import Spool, digest
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress
from traceanalyze.pipeline.recordings import NO_SNAPSHOTS
from traceanalyze.pipeline.results import Result, Work, jobs_of, put_together, results, unpack
from traceanalyze.pipeline.run_report import reports_of
from traceanalyze.readers.memory_sources import holds_memory_file
from traceanalyze.readers.remote import is_remote, shown, stamp
from traceanalyze.readers.source import STDIN, Source
from traceanalyze.readers.sources import Selection, expand
from traceanalyze.report.model import Report
from traceanalyze.rules.finding import Outcome
from traceanalyze.version import __version__
from traceanalyze.whole_file import whole_file

if TYPE_CHECKING:
    from traceanalyze.pipeline.recordings import Job

_RUN, _FAULTS = "run", "faults"


class Shard(NamedTuple):
    """Which share of how many."""

    number: int
    """From 0: the recordings at this place, and every `of` further on."""
    of: int


class _Asked(NamedTuple):
    """What all shares of a run have in common."""

    version: str
    choices: Choices
    selection: Selection


def shard_of(text: str, stated: Mapping[str, str] = os.environ) -> Shard:
    """`2/8`; where the number is left out, `/8`, that of the task of a Slurm array or of a Kubernetes indexed job.

    `auto`: both from a Slurm array.

    Raises:
        UsageError: It is none, or nothing states the number.
    """
    task, first, step = (
        stated.get(f"SLURM_ARRAY_TASK_{name}", usual) for name, usual in (("ID", ""), ("MIN", "0"), ("STEP", "1"))
    )
    index, slash, count = (
        (text, "/", stated.get("SLURM_ARRAY_TASK_COUNT", "")) if text == "auto" else text.partition("/")
    )
    if stated.get("SLURM_ARRAY_TASK_COUNT", count) != count:
        # Some shares alone, run again: their numbers are those of before.
        first, step = "0", "1"
    try:
        if index in {"", "auto"}:
            own = (int(task) - int(first)) // max(int(step), 1) if task else int(stated.get("JOB_COMPLETION_INDEX", ""))
        else:
            own = int(index)
        found = Shard(own, int(count))
    except ValueError:
        found = Shard(-1, 0)
    if not slash or not 0 <= found.number < found.of:
        raise UsageError(
            "--shard {text}: write 0/8 for the first of 8 shares, /8 where SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX "
            "has its number, or auto in a Slurm array",
            text,
        )
    return found


def write_shard(
    paths: Sequence[str], choices: Choices, shard: Shard, folder: Path, work: Work, progress: ReadProgress | None
) -> Phrase:
    """Analyse a share of the recordings under the paths into a folder; what was done."""
    if any(map(holds_memory_file, paths)) or STDIN in paths:
        raise UsageError("--shard takes traces alone: analyse snapshots and standard input in one run")
    choices = choices._replace(detail=Detail.VERBOSE)
    asked = _Asked(__version__, choices, expand(paths))
    run = digest(parts.dumps((asked, [_changed(one.path) for one in asked.selection.sources])))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError("{said}: cannot be written: {why}", folder, error.strerror) from error
    # Secrets of addresses are not for a disk; where one is needed to read a recording again, a note says so.
    sources = tuple(one._replace(path=shown(one.path), folder=shown(one.folder)) for one in asked.selection.sources)
    plain = asked._replace(selection=asked.selection._replace(sources=sources))
    _write(folder / f"{_RUN}-{run}.part", parts.archive({_RUN: parts.dumps(plain)}))
    jobs = jobs_of(asked.selection.sources, choices, NO_SNAPSHOTS, lenient=False)
    places = range(shard.number, len(jobs), shard.of)

    kept = set()

    def keep(at: int, part: bytes) -> None:
        _write(folder / f"{run}-{places[at]}.part", part)
        kept.add(at)

    for at, _ in results([jobs[at] for at in places], progress, work, keep):
        if at not in kept:
            name = jobs[places[at]].source.name
            raise UsageError("{name}: what plug-ins make of it has no place in a part; analyse it in one run", name)
    faults = folder / f"{_FAULTS}-{run}-{shard.number}.part"
    if plugins.faults():
        _write(faults, parts.archive({_FAULTS: parts.dumps(plugins.faults())}))
    else:
        # A share that is run again may have none any more.
        faults.unlink(missing_ok=True)
    return Phrase("Wrote {count} of {all} recordings to {path}", len(places), len(jobs), str(folder))


def _changed(path: str) -> int | str:
    try:
        return repr(stamp(path)) if is_remote(path) else Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _write(path: Path, part: bytes) -> None:
    with whole_file(path) as file:
        file.write(part)


def merged_reports(folder: str, detail: Detail, work: Work, progress: ReadProgress | None = None) -> tuple[Report, ...]:
    """The reports that one run over all recordings would give, in as much detail, from the parts in a folder.

    Raises:
        InputError: Parts are missing or damaged.
        UsageError: They are of several runs.
    """
    runs = sorted(Path(folder).glob(f"{_RUN}-*.part"))
    if not runs:
        raise InputError("{folder}: no parts; `traceanalyze PATH… --shard 0/8 -o {folder}` writes some", folder)
    known: list[_Asked] = []
    for path in runs:
        one = _section(path, _RUN)
        if not isinstance(one, _Asked) or one.version != __version__:
            raise InputError(
                "{path}: damaged, or of another version of traceanalyze; run the shares again into an empty folder",
                path,
            )
        known.append(one)
    if len(runs) > 1:
        raise UsageError("{folder}: parts of {count} different runs; give each a folder of its own", folder, len(runs))
    (asked,), run = known, runs[0].stem.removeprefix(f"{_RUN}-")
    for path in sorted(Path(folder).glob(f"{_FAULTS}-{run}-*.part")):
        faults: Any = _section(path, _FAULTS)
        plugins.failed_elsewhere(faults or ())
    sources, spool = asked.selection.sources, Spool()
    found = {at: _read(Path(folder, f"{run}-{at}.part"), one, spool) for at, one in enumerate(sources)}
    made = {at: one for at, one in found.items() if one is not None}
    lost = [sources[at].name for at in found if at not in made]
    if lost:
        raise InputError(
            "{folder}: parts of {missing} of {all} recordings are missing or damaged ({names}); run their shares again",
            *(folder, len(lost), len(sources), some(lost)),
        )
    choices = asked.choices._replace(detail=detail)
    jobs = jobs_of(sources, choices, NO_SNAPSHOTS, lenient=False)
    read, ranks = put_together(asked.selection, made, jobs, progress, work)
    if detail == Detail.QUIET:
        ranks = {path: one._replace(outcome=Outcome()) for path, one in ranks.items()}
    return reports_of(read, ranks, choices)


def _section(path: Path, name: str) -> object:
    """What a file holds; None where it is damaged."""
    try:
        return parts.loads(parts.sections(path.read_bytes())[name])
    except (OSError, KeyError, parts.DamagedError):
        return None


def _read(path: Path, source: Source, spool: Spool) -> Result | None:
    try:
        return unpack(path.read_bytes(), spool, source)
    except OSError:
        return None


_RETRIES = 2
"""How often a recording is tried again that a worker failed at; of one killed, Dask's own limit counts."""
_PATIENCE_S = 60
"""Seconds in which a scheduler answers and a first worker is there."""


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a scheduler at an address, `tcp://host:8786`.

    Raises:
        UsageError: Nobody is there, or the workers have another version.
    """
    try:
        from distributed import Client as Connected
    except ImportError:
        raise UsageError(
            "--scheduler {address}: needs Dask: pip install 'traceanalyze[dask]', here and on the workers", address
        ) from None
    try:
        client: Any = cast("Any", Connected)(address, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError("--scheduler {address}: nobody answers ({why})", address, type(error).__name__) from None
    try:
        _same_version(client, address)
        yield _Workers(client)
    finally:
        client.close()


def _same_version(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_S)
        versions = {str(found) for found in client.run(tool_version).values()}
    except TimeoutError:
        raise UsageError("--scheduler {address}: it has no workers", address) from None
    except (ImportError, AttributeError):
        versions = {"none"}
    if versions != {tool_version()}:
        other = ", ".join(sorted(versions - {tool_version()}))
        raise UsageError(
            "--scheduler {address}: its workers have another version of traceanalyze or Python ({other}; here {own})",
            *(address, other, tool_version()),
        )


def tool_version() -> str:
    """What must be the same everywhere, as the report is."""
    return f"traceanalyze {__version__}, Python {sys.version_info.major}.{sys.version_info.minor}"


class _Workers(Executor):
    """Takes jobs, and gives what becomes of them as parts."""

    def __init__(self, client: Any) -> None:
        self._executor = client.get_executor(retries=_RETRIES, pure=False)

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        """One recording for any worker."""
        given: Future[Any] = self._executor.submit(work, *args, **more)
        told: Future[Any] = Future()
        given.add_done_callback(partial(_tell, told, args[0]))
        return told


def _tell(told: Future[Any], job: Job, given: Future[Any]) -> None:
    """Why there is no result, where there is none."""
    if not told.set_running_or_notify_cancel():
        # Nobody waits for it any more.
        return
    error = BrokenExecutor("cancelled") if given.cancelled() else given.exception()
    if error is None:
        told.set_result(given.result())
    elif isinstance(error, MemoryError) or type(error).__name__ == "KilledWorker":
        name = job.source.name
        told.set_result((InputError("{name}: several workers were killed over it; have they enough memory?", name), ()))
    else:
        told.set_exception(error)
