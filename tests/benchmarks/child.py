"""Runs a command in a child process and tells its time and memory.

A process inherits the peak memory of the one that starts it, so whoever measures with this must stay small itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process took, and what it printed."""

    wall: float
    cpu: float
    peak: int
    """Largest resident set, bytes."""
    output: str


def environment() -> dict[str, str]:
    """This tree, compiled once as `pip install` compiles it, whatever the surroundings say about writing bytecode."""
    compiled = Path(tempfile.gettempdir()) / f"traceanalyze-benchmarks-{os.getuid()}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}


def run(command: list[str], *, cores: int | None = None) -> Spent:
    """Run a command to its end, on the first `cores` cores if given; raises where it fails."""
    reading, writing = os.pipe()
    available = os.sched_getaffinity(0)
    if cores is not None:
        os.sched_setaffinity(0, sorted(available)[:cores])
    begin = time.perf_counter()
    try:
        actions = [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, reading)]
        pid = os.posix_spawn(command[0], command, environment(), file_actions=actions)
    finally:
        os.sched_setaffinity(0, available)
        os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        output = pipe.read()
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    scale = 1 if sys.platform == "darwin" else 1024
    return Spent(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale, output)


def tiled(source: Path, megabytes: float, target: Path) -> int:
    """Make a big trace in a process of its own; bytes of its text."""
    script = str(Path(__file__).with_name("tile.py"))
    return int(run([sys.executable, script, str(source), str(megabytes), str(target)]).output)
