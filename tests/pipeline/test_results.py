"""Ranks in processes of their own, and what is kept of each."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline import Choices, reports, results
from traceanalyze.pipeline.processes import map_ranks
from traceanalyze.pipeline.results import LARGE, Work, workers_for


def squared(number):
    return number * number, os.getpid()


def squared_by_two(item):
    """When two processes are at work."""
    number, folder = item
    (Path(folder) / str(os.getpid())).touch()
    while len([*Path(folder).iterdir()]) < 2:
        time.sleep(0.01)
    return squared(number)


def inverse(number):
    return 1 / number


def sleeping(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(60)


def killed_elsewhere(home):
    if os.getpid() != home:
        os._exit(1)
    return home


@pytest.mark.parametrize(
    ("sizes", "most", "workers"),
    [
        ([], None, 1),
        ([LARGE], None, 1),
        ([LARGE // 2 - 1] * 2, None, 1),
        ([None, None], None, 1),
        ([LARGE // 2] * 2, None, 2),
        ([LARGE // 4] * 12, None, 6),
        ([LARGE] * 5, None, 5),
        ([LARGE] * 50, None, 8),
        ([LARGE] * 50, 3, 3),
        ([LARGE] * 50, 20, 20),
        ([LARGE] * 50, 1, 1),
    ],
)
def test_a_process_is_started_for_every_core_and_ten_megabytes(monkeypatch, sizes, most, workers):
    monkeypatch.setattr("traceanalyze.pipeline.results.cores", lambda: 8)
    assert workers_for(sizes, most) == workers


def test_results_come_as_they_are_done_from_other_processes(tmp_path):
    items = [(number, str(tmp_path)) for number in range(9)]
    found = list(map_ranks(squared_by_two, items, 2))
    assert sorted((at, value) for at, (value, _) in found) == [(number, number * number) for number in range(9)]
    process = {at: process for at, (_, process) in found}
    # This process begins with the first; the last is the other's, which starts at the end.
    assert process[0] == os.getpid() != process[8]
    assert len({*process.values()}) == 2
    assert {process for _, (_, process) in map_ranks(squared, range(9), 1)} == {os.getpid()}


def test_two_ranks_are_done_side_by_side(tmp_path):
    (_, (_, here)), (_, (_, elsewhere)) = sorted(map_ranks(squared_by_two, [(at, str(tmp_path)) for at in (1, 2)], 2))
    assert here == os.getpid() != elsewhere


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_what_the_work_raises_is_raised(number):
    with pytest.raises(ZeroDivisionError):
        list(map_ranks(inverse, [number - place for place in range(4)], 2))


def test_who_wants_no_more_results_waits_for_no_more_work():
    results = map_ranks(squared, list(range(1000)), 2)
    assert next(results) == (0, (0, os.getpid()))
    results.close()


def sleeping_elsewhere(item):
    home, folder = item
    if os.getpid() != home:
        sleeping(folder)
    while not [*Path(folder).iterdir()]:
        time.sleep(0.01)


def test_who_wants_no_more_results_waits_for_no_work_that_is_begun(tmp_path):
    results = map_ranks(sleeping_elsewhere, [(os.getpid(), str(tmp_path))] * 2, 2)
    assert next(results) == (0, None)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 30
    assert multiprocessing.active_children() == []


def test_where_processes_die_this_one_does_the_work():
    found = map_ranks(killed_elsewhere, [os.getpid()] * 2, 2)
    assert sorted(found) == [(0, os.getpid()), (1, os.getpid())]


def dying_last(item):
    """The process of the last item dies when others are at work, and this one has done some."""
    home, at = item
    if os.getpid() != home:
        time.sleep(0.5)
        if at == 29:
            os.kill(os.getpid(), 9)
    time.sleep(0.1)
    return at


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_where_one_process_is_killed_the_others_end_and_this_one_goes_on():
    found = map_ranks(dying_last, [(os.getpid(), at) for at in range(30)], 4)
    assert sorted(found) == [(at, at) for at in range(30)]
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_of_the_user_does_all_the_work(executor):
    with executor(2) as pool:
        found = dict(map_ranks(squared, list(range(9)), 0, pool))
        assert pool.submit(squared, 3).result()[0] == 9
    assert [found[at][0] for at in range(9)] == [number * number for number in range(9)]
    assert (os.getpid() in {process for _, process in found.values()}) == (executor is ThreadPoolExecutor)


def test_where_an_executor_of_the_user_is_shut_down_this_process_does_the_rest():
    pool = ThreadPoolExecutor(1)

    def work(at):
        if at == 0:
            time.sleep(0.2)
            pool.shutdown(wait=False, cancel_futures=True)
        return at * at

    for _ in range(2):
        assert sorted(map_ranks(work, range(3), 0, pool)) == [(0, 0), (1, 1), (2, 4)]


_PARENT = """
from tests.pipeline.test_results import sleeping
from traceanalyze.pipeline.processes import map_ranks
if __name__ == "__main__":
    list(map_ranks(sleeping, [{folder!r}] * 3, 3))
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="tells processes by /proc")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process_that_started_them(tmp_path, by):
    folder = tmp_path / "at work"
    folder.mkdir()
    script = tmp_path / "parent.py"
    script.write_text(_PARENT.format(folder=str(folder)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL) as parent:
        while len(working := [each.name for each in folder.iterdir()]) < 3:
            assert parent.poll() is None
            time.sleep(0.05)
        parent.send_signal(by)
        parent.wait()
    end = time.monotonic() + 10
    while any(map(_lives, working)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(_lives, working))


def _lives(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_PAGES_OF_A_SECOND_ROUND = """
import resource, sys
import numpy as np
from traceanalyze.model.native import keep_freed

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [np.ones(3 << 20, np.uint8) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed()
pages()
print(pages())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="a C library that cannot be told")
def test_what_is_freed_may_stay_for_the_next_job():
    kept, given_back = (
        int(
            subprocess.run(
                [sys.executable, "-c", _PAGES_OF_A_SECOND_ROUND, how], capture_output=True, check=True
            ).stdout
        )
        for how in ("kept", "given back")
    )
    assert kept < 500 < 2000 < given_back


_FLAGS_OF_THE_HEAP = """
import re
from traceanalyze.model.native import keep_freed

keep_freed()
flags = re.findall(r"\\[heap\\][^[]*?VmFlags:([^\\n]*)", open("/proc/self/smaps").read())
print(any("hg" in each.split() for each in flags))
"""


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="a kernel without large pages")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="a C library that cannot be told")
def test_what_is_kept_lies_in_large_pages():
    done = subprocess.run([sys.executable, "-c", _FLAGS_OF_THE_HEAP], capture_output=True, check=True)
    assert done.stdout == b"True\n"


@pytest.mark.parametrize(("own", "ranks", "times"), [(True, 17, 1), (True, 16, 0), (False, 17, 0)])
def test_only_a_process_of_its_own_keeps_what_is_freed_of_many_ranks(tmp_path, monkeypatch, own, ranks, times):
    kept = []
    monkeypatch.setattr(results, "keep_freed", lambda: kept.append(1))
    for rank in range(ranks):
        made = TraceBuilder()
        made.header = {"distributedInfo": {"rank": rank, "world_size": ranks}}
        made.launch(0, 5, 10, 20 + rank)
        made.write(tmp_path / f"rank{rank}.json")
    reports([str(tmp_path)], Choices(detail=Detail.QUIET), work=Work(cache=str(tmp_path / "cache"), own=own))
    assert len(kept) == times
