"""`run.json`: what the traces beside it were recorded with."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

from traceanalyze import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceanalyze.record.backends import Device
    from traceanalyze.record.options import RecordOptions

SCHEMA = "traceanalyze.run/1"


def run_file(rank: int) -> str:
    """The name: one for the job from its first rank, one more for every other rank."""
    return "run.json" if rank == 0 else f"run_rank{rank}.json"


def write_run(
    folder: Path,
    options: RecordOptions,
    device: Device,
    rank: tuple[int, int | None],
    steps: int,
    files: Sequence[str],
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
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(f"{json.dumps(content, indent=1)}\n", encoding="utf-8")
    os.replace(hidden, path)  # noqa: PTH105
