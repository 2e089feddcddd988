"""Records the CPU samples with torch: `python tests/make_samples/record_cpu.py [FOLDER]` (default: sample_traces).

A recording differs from run to run, so the truth beside it is what this script itself measured or decided.
"""

from __future__ import annotations

import gzip
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.make_samples.machine_names import without_paths  # noqa: E402

COMMAND = "python tests/make_samples/record_cpu.py"
WAIT, WARMUP, ACTIVE = 1, 1, 3
BATCH = 8


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Random pictures; making one takes a chosen time, as reading and decoding would."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return BATCH * (WAIT + WARMUP + ACTIVE + 1)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.seconds)
        return torch.randn(3, 32, 32), index % 10


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.classify = nn.Linear(16 * 15 * 15, 10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(pictures).flatten(1))


def train(seconds_per_picture: float, trace: Path, *, detailed: bool) -> list[float]:
    """Train a few steps, record the active ones; returns the wall time of each recorded step."""
    torch.manual_seed(0)
    model, loss = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    options: dict[str, Any] = {"record_shapes": True}
    if detailed:
        options |= {"with_stack": True, "with_modules": True, "profile_memory": True}
    plan = schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    times = []
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, **options) as recorder:
        batches = iter(DataLoader(Images(seconds_per_picture), batch_size=BATCH))
        for _ in range(WAIT + WARMUP + ACTIVE):
            begin = time.perf_counter()
            pictures, labels = next(batches)
            optimizer.zero_grad()
            loss(model(pictures), labels).backward()
            optimizer.step()
            times.append(time.perf_counter() - begin)
            recorder.step()
    recorder.export_chrome_trace(str(trace))
    return times[-ACTIVE:]


def record(home: Path, title: str, seconds_per_picture: float, *, detailed: bool) -> None:
    """Write one sample: the recording, and what is known about it."""
    home.mkdir(parents=True, exist_ok=True)
    raw = home / "trace.json"
    times = train(seconds_per_picture, raw, detailed=detailed)
    (home / "trace.json.gz").write_bytes(gzip.compress(without_paths(raw.read_text()).encode(), 9, mtime=0))
    raw.unlink()
    lines = [
        f'title = "{title}"',
        'made = "recorded"',
        f'how = "{COMMAND}"',
        f'with = "torch {torch.__version__}, CPU only"',
        "# Measured by the script while recording, with perf_counter; the machine's directories and name were cut out.",
        "",
        "[[trace]]",
        'file = "trace.json.gz"',
        f"steps = {ACTIVE}",
        f"step_mean_measured = {round(statistics.mean(times) * 1e9)}",
        f"data_loading_at_least = {round(ACTIVE * BATCH * seconds_per_picture * 1e9)}",
    ]
    (home / "case.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_traces"
    torch.set_num_threads(1)
    record(folder / "cpu_slow_loader", "A data loader that takes most of the step", 0.002, detailed=True)
    record(folder / "cpu_training", "The same loop with a fast loader, shapes only", 0.0, detailed=False)


if __name__ == "__main__":
    main()
