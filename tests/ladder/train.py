"""Trains a small GPT-2 on random text; every switch is a rung of the ladder: `python tests/ladder/train.py --help`.

Without a switch it is the baseline, with every fault that the ladder removes. The last line printed is JSON: the median
step in milliseconds, its samples, and the peak of device memory where there is a device.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from itertools import pairwise
from typing import Any

import torch
from data import Texts
from model import GPT
from torch.utils.data import DataLoader

UNTIMED = 2
"""First steps, whose time is not counted."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in {
        "steps": 13, "batch": 4, "workers": 0, "accumulate": 1, "merges": 20, "threads": 0,
        "layers": 4, "width": 128, "heads": 4, "length": 128, "vocabulary": 2048,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--optimizer", choices=["for-loop", "foreach", "fused"], default="for-loop")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16"], default="fp32")
    for name, meaning in {
        "pin": "pinned host memory and copies that do not block",
        "no-item": "do not read the loss every step",
        "sdpa": "fused attention",
        "compile": "torch.compile",
        "checkpoint": "activation checkpointing",
        "empty-cache": "fault: return the allocator's memory every step",
        "device-sync": "fault: wait for the device every step",
        "vary-length": "fault: every batch of another length",
        "leak": "fault: keep every loss with its graph",
    }.items():
        parser.add_argument(f"--{name}", action="store_true", help=meaning)
    return parser.parse_args()


def train(chosen: argparse.Namespace) -> list[float]:
    """Train; the time of every step in seconds, with the device's work in it."""
    device = torch.device(chosen.device)
    on_cuda = device.type == "cuda"
    model = GPT(
        vocabulary=chosen.vocabulary, layers=chosen.layers, width=chosen.width, heads=chosen.heads,
        length=chosen.length, sdpa=chosen.sdpa, checkpointing=chosen.checkpoint,
    ).to(device)  # fmt: skip
    forward = torch.compile(model) if chosen.compile else model
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, foreach=chosen.optimizer == "foreach", fused=chosen.optimizer == "fused"
    )
    texts = Texts(
        chosen.batch * chosen.accumulate * chosen.steps,
        length=chosen.length, vocabulary=chosen.vocabulary, merges=chosen.merges,
    )  # fmt: skip
    loader = DataLoader(texts, batch_size=chosen.batch, num_workers=chosen.workers, pin_memory=chosen.pin and on_cuda)
    low = chosen.precision == "bf16"
    precision = torch.autocast(device.type, torch.bfloat16) if low else contextlib.nullcontext()
    kept, total, marks = [], 0.0, [now(on_cuda=on_cuda)]
    for number, batch in enumerate(loader, 1):
        tokens = batch.to(device, non_blocking=chosen.pin)
        if chosen.vary_length:
            tokens = tokens[:, : chosen.length // 2 + 37 * number % (chosen.length // 2)]
        with precision:
            loss = forward(tokens) / chosen.accumulate
        loss.backward(retain_graph=chosen.leak)
        if chosen.leak:
            kept.append(loss)
        if not chosen.no_item:
            total += loss.item()
        if number % chosen.accumulate:
            continue
        optimizer.step()
        optimizer.zero_grad()
        if on_cuda and chosen.empty_cache:
            torch.cuda.empty_cache()
        if on_cuda and chosen.device_sync:
            torch.cuda.synchronize()
        marks.append(now(on_cuda=on_cuda))
    return seconds_between(marks)


def now(*, on_cuda: bool) -> float | torch.cuda.Event:
    """An instant: on a device that at which it gets there, as the host of a good rung is many steps ahead of it."""
    if not on_cuda:
        return time.perf_counter()
    mark = torch.cuda.Event(enable_timing=True)
    mark.record()
    return mark


def seconds_between(marks: list[Any]) -> list[float]:
    """From each instant to the next."""
    if isinstance(marks[0], float):
        return [end - begin for begin, end in pairwise(marks)]
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in pairwise(marks)]


def main() -> None:
    chosen = arguments()
    torch.manual_seed(0)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen.precision == "tf32"
    times = train(chosen)
    found: dict[str, float] = {
        "step_ms": 1e3 * statistics.median(times[UNTIMED:] or times),
        "samples": chosen.batch * chosen.accumulate,
    }
    if chosen.device.startswith("cuda"):
        found["peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
