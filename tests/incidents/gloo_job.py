"""Real jobs of 8 gloo ranks that are killed, hang, starve, run out of memory, fail or lose step with each other.

`python -m tests.incidents.gloo_job FOLDER KIND:RANK:STEP…` leaves behind what they do, each in a folder of its kind:
logs and the table of torchelastic, error.json, dumps of the flight recorder, stacks of faulthandler. Jobs and ranks are
forked, as importing torch takes long.
"""

# ruff: noqa: E501  lines of logs as they are printed

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

WORLD = 8
LIMIT_S = 3.0
"""What ranks wait for each other."""


def spin_on_lock() -> None:
    """Never comes back."""
    while True:
        time.sleep(0.05)


def train(folder: str, kind: str, bad: int, last: int) -> None:
    """One rank."""
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    store = dist.FileStore(f"{folder}/store", WORLD)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD, timeout=timedelta(seconds=LIMIT_S))
    stacks = (Path(folder) / f"stacks_rank{rank}.txt").open("w")

    def dump() -> None:
        (Path(folder) / f"nccl_trace_rank_{rank}").write_bytes(c10d._dump_fr_trace(True, True, False))

    def tell() -> None:
        dump()
        faulthandler.dump_traceback(stacks)

    weights = torch.ones(1000)
    try:
        steps(rank, kind, bad, last, weights, tell)
    except BaseException:
        dump()
        raise
    dump()


def steps(rank: int, kind: str, bad: int, last: int, weights, tell) -> None:
    """The loop."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self) -> int:
            return 100

        def __getitem__(self, at: int) -> float:
            time.sleep((1.5 if at == last else 0.1 + 0.2 * (at % 3 == 1)) if kind == "starved" and rank == bad else 0)
            return 1.0

    batches = iter(DataLoader(Slow(), batch_size=1, num_workers=int(kind == "starved" and rank == bad)))
    for step in range(last + 1):
        begin = time.perf_counter()
        next(batches)
        time.sleep(0.01)
        if rank == bad and step == last:
            if kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif kind == "hung":
                spin_on_lock()
            elif kind == "no_memory":
                weights = torch.empty(1 << 50)
            elif kind == "failed":
                raise KeyError("input_ids")
            elif kind == "desync":
                dist.broadcast(weights, 0)
        dist.all_reduce(weights)
        weights /= WORLD
        if kind in {"hung", "starved"} and step == last - 1:
            # While this rank loads or hangs, the others wait for it.
            threading.Timer(0.6, tell).start()
        if rank == 0:
            print(f"iter {step}: loss {2.5 - step * 0.01:.4f}, time {(time.perf_counter() - begin) * 1000:.2f}ms, mfu 1.00%", flush=True)  # fmt: skip


def main(folder: str, kind: str, bad: int, last: int) -> None:
    """Start the ranks as torchrun's agent does, and say what it says."""
    import torch.distributed.elastic.multiprocessing as elastic
    import torch.distributed.elastic.multiprocessing.errors as errors
    import torch.utils.data  # noqa: F401
    from torch._C import _distributed_c10d  # noqa: F401

    sys.stderr = (Path(folder) / "torchrun.log").open("w", buffering=1)
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger("torch.distributed.elastic").addHandler(handler)
    environment = {
        at: {"RANK": str(at), "LOCAL_RANK": str(at), "TORCH_FR_BUFFER_SIZE": "200", "GLOO_SOCKET_IFNAME": "lo"}
        for at in range(WORLD)
    }
    context = elastic.start_processes(
        name="default",
        entrypoint=errors.record(train),
        args=dict.fromkeys(range(WORLD), (folder, kind, bad, last)),
        envs=environment,
        logs_specs=elastic.DefaultLogsSpecs(log_dir=f"{folder}/logs", redirects=elastic.Std.ALL),
        start_method="fork",
    )
    result = context.wait()
    if result is not None and result.is_failed():
        print(errors.ChildFailedError("gloo_job.py", result.failures), file=sys.stderr)


if __name__ == "__main__":
    # The first dump of a flight recorder asks for this.
    import torch._inductor
    import torch.distributed.elastic.multiprocessing.errors
    import torch.utils.data  # noqa: F401

    # Else the end of every process looks through all of torch for garbage.
    gc.freeze()
    for job in sys.argv[2:]:
        what, who, when = job.split(":")
        place = Path(sys.argv[1]) / what
        place.mkdir()
        if not (child := os.fork()):
            main(str(place), what, int(who), int(when))
            os._exit(0)
        os.waitpid(child, 0)
