"""Scripts that fork, start workers or use threads: they end as they would alone, and there is one recording."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from tests.recording.conftest import ROOT

pytestmark = pytest.mark.usefixtures("needs_torch")

FORKS = """
import os, time
def child(work):
    number = os.fork()
    if not number:
        work()
        print("end of child")
        sys.exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
"""
LOADER = """
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 16
    def __getitem__(self, index): return torch.full((3,), float(index))
if __name__ == "__main__":
    for context in ("fork", "spawn"):
        for batch in DataLoader(Numbers(), 4, num_workers=2, multiprocessing_context=context): train(1)
    print("end")
"""
CHILDREN = """
import multiprocessing
def work(queue):
    train(9)
    queue.put("child")
if __name__ == "__main__":
    train(2)
    for context in map(multiprocessing.get_context, ("fork", "spawn")):
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start(); print(queue.get()); process.join(); print(process.exitcode)
    train(2)
"""
THREADS = """
import threading
threads = [threading.Thread(target=lambda: torch.ones(9).sum()) for _ in range(8)]
for thread in threads: thread.start()
train(4)
for thread in threads: thread.join()
last = threading.Thread(target=lambda: (train(1), print("thread")))
last.start()
"""


@pytest.fixture
def run(record):
    """Record `LOOP` and more into `run`; status and stdout."""

    def call(text):
        status, out, err = record(text)
        assert err.count("traceanalyze record: ") == 1, err
        return status, out

    return call


def recorded(folder):
    """Step numbers in the only trace of a folder."""
    (path,) = folder.glob("*.pt.trace.json.gz")
    assert sorted(each.name for each in folder.iterdir()) == sorted((path.name, "run.json"))
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return sorted({e["name"] for e in events if e["name"].startswith("ProfilerStep#")})


@pytest.mark.parametrize("before", [2, 3, 5])
def test_a_forked_process_ends_whatever_the_profiler_does(run, tmp_path, before):
    # 2: it warms up, 3: it records, 5: it has stopped.
    text = f"train({before}); print(child(lambda: None)); train({6 - before})"
    assert run(FORKS + text) == (0, "end of child\n3\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]


def test_a_forked_process_that_trains_records_nothing(run, tmp_path):
    text = "print(child(lambda: [optimizer.step() for _ in range(9)])); train(5)"
    assert run(FORKS + text) == (0, "end of child\n3\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["steps_seen"] == 5


def test_a_forked_process_that_fails_says_so_itself(run, tmp_path):
    status, out = run(FORKS + "train(2); print(child(lambda: 1 / 0)); train(2)")
    assert (status, out) == (0, "1\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]


def test_what_a_forked_process_does_at_exit_is_done(run):
    text = "import atexit; train(2); print(child(lambda: atexit.register(lambda: print('tidied')))); train(2)"
    assert run(FORKS + text) == (0, "end of child\ntidied\n3\n")


def test_a_loop_of_ones_own_may_fork(torch_python, tmp_path):
    text = (
        "with __import__('traceanalyze').record('run', wait=1, warmup=1, active=2) as recording:\n"
        "    for step in range(4):\n"
        "        if step == 3: print(child(lambda: [recording.step() for _ in range(9)]))\n"
        "        recording.step()\n"
    )
    (tmp_path / "own.py").write_text("import sys\n" + FORKS + text)
    process = torch_python.run(["own.py"], tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)})
    assert (process.returncode, process.stdout) == (0, "end of child\n3\n"), process.stderr
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]


def test_workers_of_a_loader(run, tmp_path):
    assert run(LOADER) == (0, "end\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["steps_seen"] == 8


def test_children_that_train_record_nothing(run, tmp_path):
    assert run(CHILDREN) == (0, "child\n0\nchild\n0\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["steps_seen"] == 4


def test_threads(run, tmp_path):
    assert run(THREADS) == (0, "thread\n")
    assert recorded(tmp_path / "run") == ["ProfilerStep#2", "ProfilerStep#3"]
