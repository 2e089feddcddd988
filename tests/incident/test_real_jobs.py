"""Jobs of real processes (gloo) that fail: what torchrun, torch and the interpreter leave is read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.needs import need
from traceanalyze.incident import read_evidence
from traceanalyze.incident.evidence import What

PROGRAM = """
import faulthandler, os, signal, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    mode, out = sys.argv[1:]
    dist.init_process_group("gloo", timeout=timedelta(seconds=15))
    rank = dist.get_rank()
    try:
        for step in range(6):
            print(f"iter {step}: loss {3 - step / 10:.4f}, time 12.00ms, mfu 1.00%", flush=True)
            if step == 4 and rank == 1:
                stop(mode)
            dist.all_reduce(torch.ones(4))
    finally:
        with open(f"{out}/fr_rank_{rank}", "wb") as file:
            file.write(c10d._dump_fr_trace(True, True, False))

def stop(mode):
    if mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "raise":
        raise ValueError("bad batch 17")
    if mode == "memory":
        torch.empty(1 << 50)
    faulthandler.dump_traceback_later(1)
    time.sleep(60)

main()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    need("torch")
    made = {}

    def run(mode):
        if mode not in made:
            folder = tmp_path_factory.mktemp(mode)
            (folder / "train_it.py").write_text(PROGRAM)
            command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "3", "--redirects", "3"]
            command += [
                "--standalone",
                "--log-dir",
                str(folder / "logs"),
                str(folder / "train_it.py"),
                mode,
                str(folder),
            ]
            done = subprocess.run(command, capture_output=True, check=False, timeout=120)
            (folder / "launcher.log").write_bytes(done.stderr)
            made[mode] = read_evidence([str(folder)])
        return made[mode]

    return run


def root(found):
    (one,) = [each for each in found.of(What.EXIT) if each.data.get("root_cause")]
    return one


@pytest.mark.parametrize(("mode", "code"), [("raise", 1), ("kill", -9), ("memory", 1)])
def test_who_failed_first(job, mode, code):
    found = job(mode)
    one = root(found)
    assert (one.rank, one.data["exitcode"]) == (1, code)
    assert {each.rank for each in found.processes} >= {0, 1, 2}
    assert not sum(file.notable for file in found.files)
    assert {file.kind for file in found.files} <= {"process_log", "launcher_error", "flight_recorder", "other"}


def test_an_exception_of_the_program(job):
    found = job("raise")
    first = next(each for each in found.of(What.EXCEPTION) if each.rank == 1)
    assert (first.message, first.data["own_function"], first.clock) == ("ValueError: bad batch 17", "stop", "utc")
    # The others may be killed by the launcher before they notice.
    assert {each.rank for each in found.of(What.COMM_ERROR)} <= {0, 2}


def test_memory_of_the_host(job):
    (one,) = [each for each in job("memory").of(What.HOST_OOM) if each.source.path.endswith("stderr.log")]
    assert (one.rank, one.data["asked"]) == (1, 4 << 50)


def test_a_rank_that_hangs(job):
    found = job("hang")
    assert {each.rank for each in found.of(What.TIMEOUT)} == {0, 2}
    counts = {flight.rank: flight.groups[0].enqueued for flight in found.flights}
    # The rank that hangs is killed before it writes a dump.
    assert counts in ({0: 5, 2: 5}, {0: 5, 1: 4, 2: 5})
    (stack,) = found.stacks
    assert (stack.rank, stack.state, stack.main) == (1, "own", True)
    assert stack.frames[0].startswith("stop (")


def test_dumps_of_the_flight_recorder(job):
    one = next(each for each in job("hang").flights if each.rank != 1)
    assert (one.groups[0].library, one.groups[0].name, one.timed) == ("gloo", "0", False)
    assert one.entries.seq.tolist() == [1, 2, 3, 4, 5]
    assert one.entries.names[one.entries.stack[0]].startswith("all_reduce (torch/distributed/distributed_c10d.py:")


def test_losses_by_rank(job):
    losses = {one.rank: one.steps.tolist() for one in job("kill").series if one.name == "loss"}
    assert losses == {rank: [0, 1, 2, 3, 4] for rank in range(3)}
