"""Time and record every rung: `python tests/ladder/climb.py sample_traces/ladder_cpu --device cpu` (or `cuda`).

Every rung is timed alone in several rounds, one rung after the other, so that a slow minute of the machine hits them
all; then it is recorded once by `traceanalyze record`. What is known without the profiler stands in `case.toml`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from tests.ladder.rungs import FAULTS, HOST, MEMORY, SPEED, Rung, switches  # noqa: E402
from tests.make_samples.machine_names import without_paths  # noqa: E402

SCRIPT = HERE / "train.py"
LARGEST = 2_000_000
"""Bytes a file of the samples may have."""


@dataclass(frozen=True, slots=True)
class Climb:
    """What a kind of device climbs, and how long."""

    ladders: dict[str, tuple[Rung, ...]]
    sizes: tuple[str, ...]
    """Of the model and the data: every ladder has rungs that matter, and traces stay small."""
    rounds: int
    steps: int
    record: tuple[str, ...]


CLIMBS = {
    "cpu": Climb(
        {"speed": HOST},
        ("--threads", "1", "--layers", "8", "--width", "32", "--heads", "4", "--length", "96", "--batch", "4",
         "--vocabulary", "256", "--merges", "42"),
        rounds=7,
        steps=40,
        record=("--wait", "5", "--warmup", "2", "--active", "4"),
    ),
    "cuda": Climb(
        {"speed": SPEED, "memory": MEMORY, "faults": FAULTS},
        ("--layers", "4", "--width", "512", "--heads", "8", "--length", "256", "--vocabulary", "8192"),
        rounds=3,
        steps=40,
        record=("--wait", "5", "--warmup", "2", "--active", "4"),
    ),
}  # fmt: skip


def command_of(ladder: str, rungs: tuple[Rung, ...], rung: Rung) -> list[str]:
    """The rung's own switches; a fault stands alone on the baseline."""
    return list(rung.adds) if ladder == "faults" else switches(rungs, rung.name)


def alone(arguments: list[str]) -> dict[str, Any]:
    """What the script says of itself, without the profiler."""
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def record(folder: Path, options: tuple[str, ...], arguments: list[str]) -> None:
    """One recording, its files named as a sample's are and without this machine's names."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        command = [sys.executable, "-m", "traceanalyze", "record", "-o", str(run), *options, "--", str(SCRIPT)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([*command, *arguments], check=True, capture_output=True, env=environment)
        (trace,) = run.glob("*.trace.json*")
        raw = gzip.decompress(trace.read_bytes()) if trace.suffix == ".gz" else trace.read_bytes()
        files = {"trace.json.gz": without_paths(raw.decode()).encode()}
        for snapshot in run.glob("snapshot_*.pickle"):
            files[f"{snapshot.name}.gz"] = pickle.dumps(without_folders(pickle.loads(snapshot.read_bytes())))
    for name, content in files.items():
        packed = gzip.compress(content, 9, mtime=0)
        if len(packed) > LARGEST:
            sys.stderr.write(f"{folder.name}/{name}: {len(packed)} bytes, more than a sample may have\n")
        (folder / name).write_bytes(packed)


def without_folders(value: Any) -> Any:
    """A snapshot whose source files are named from the project or the library on."""
    if isinstance(value, dict):
        return {key: without_folders(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_folders(each) for each in value]
    return without_paths(value) if isinstance(value, str) and "/" in value else value


def case(rung: Rung, arguments: list[str], rounds: list[dict[str, Any]], hardware: str) -> str:
    """What is known of a rung without the profiler, as TOML."""
    import torch

    steps = [each["step_ms"] for each in rounds]
    lines = [
        f'title = "{rung.name}"',
        'made = "recorded"',
        f'how = "python tests/ladder/climb.py: train.py {" ".join(arguments)}"',
        f'hardware = "{hardware}"',
        f'with = "torch {torch.__version__}, Python {platform.python_version()}"',
        f"samples_per_step = {rounds[0]['samples']}",
        "# The median step of each round without the profiler; the quickest is the step: others only add to it.",
        f"step_ms = {min(steps):.3f}",
        f"rounds_ms = [{', '.join(f'{each:.3f}' for each in steps)}]",
    ]
    if "peak_bytes" in rounds[0]:
        lines.append(f"peak_bytes = {max(each['peak_bytes'] for each in rounds)}")
    return "\n".join(lines) + "\n"


def hardware_of(device: str) -> str:
    """What the rungs ran on."""
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{model}, one thread"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=sorted(CLIMBS), default="cpu")
    parser.add_argument("--ladder", choices=["speed", "memory", "faults"], help="only this one")
    chosen = parser.parse_args()
    climb = CLIMBS[chosen.device]
    hardware = hardware_of(chosen.device)
    for ladder, rungs in climb.ladders.items():
        if chosen.ladder not in {None, ladder}:
            continue
        shared = ["--device", chosen.device, "--steps", str(climb.steps), *climb.sizes]
        commands = [command_of(ladder, rungs, rung) for rung in rungs]
        timed = [[alone([*shared, *each]) for each in commands] for _ in range(climb.rounds)]
        for at, (rung, arguments) in enumerate(zip(rungs, commands, strict=True)):
            folder = chosen.folder / ladder / f"{at}_{rung.name}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            record(folder, climb.record, [*shared, *arguments])
            (folder / "case.toml").write_text(
                case(rung, [*shared, *arguments], [each[at] for each in timed], hardware), encoding="utf-8"
            )
            sys.stderr.write(f"{folder}\n")


if __name__ == "__main__":
    main()
