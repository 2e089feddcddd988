"""`run.json`: what the traces beside it were recorded with."""

import json
import os
import platform
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from traceanalyze.errors import UsageError
from traceanalyze.model.patterns import regex
from traceanalyze.recording.options import Device, RecordOptions
from traceanalyze.version import __version__
from traceanalyze.whole_file import whole_file

SCHEMA = "traceanalyze.run/1"


def run_file(rank: int) -> str:
    """The name: one for the job from its first rank, one more for every other rank."""
    return "run.json" if rank == 0 else f"run_rank{rank}.json"


def write_run(
    folder: Path, options: RecordOptions, device: Device, rank: tuple[int, int | None], steps: int, files: Sequence[str]
) -> None:
    """Write versions, devices, options, rank, size of the job, steps the script made, and the files recorded."""
    content = {
        "schema": SCHEMA,
        "rank": rank[0],
        "world_size": rank[1],
        "host": platform.node(),
        "device": device.kind,
        "device_names": list(device.names),
        "versions": {"traceanalyze": __version__, "python": platform.python_version(), **device.versions},
        "options": asdict(options),
        "steps_seen": steps,
        "files": list(files),
    }
    path = folder / run_file(rank[0])
    with whole_file(path) as file:
        file.write(f"{json.dumps(content, indent=1)}\n".encode())


TRACES = "*.pt.trace.json.gz"
_ASCEND = "*_ascend_pt"
_UNSAFE = regex(r"[^A-Za-z0-9.-]")


def rank_and_world(environment: Mapping[str, str] = os.environ) -> tuple[int, int | None]:
    """Rank and size of the job, from torch.distributed where it is in use, else from RANK and WORLD_SIZE; rank 0 else.

    The size is None where nothing states it.
    """
    import torch.distributed as job

    if job.is_available() and job.is_initialized():
        return job.get_rank(), job.get_world_size()
    rank, world = environment.get("RANK", ""), environment.get("WORLD_SIZE", "")
    return int(rank) if rank.isdecimal() else 0, int(world) if world.isdecimal() else None


def worker_name(rank: int) -> str:
    """`rank0_host_pid`."""
    return f"rank{rank}_{_UNSAFE.sub('-', socket.gethostname())}_{os.getpid()}"


def trace_name(rank: int) -> str:
    """`rank0_host_pid.time.pt.trace.json.gz`: the name TensorBoard's plugin knows, with the rank."""
    return f"{worker_name(rank)}.{time.time_ns()}.pt.trace.json.gz"


def refuse_recorded(folder: Path, rank: int | None = None) -> None:
    """Two recordings of a rank (None: of any) in one folder would be taken for one run."""
    start = "" if rank is None else f"rank{rank}_"
    if folder.exists() and not folder.is_dir():
        raise UsageError("{folder}: this is a file; give a folder for the recording", folder)
    if any(folder.glob(f"{start}{TRACES}")) or any(folder.glob(f"{start}{_ASCEND}")):
        raise UsageError("{folder}: holds a recording already; give another folder", folder)
