"""A real local cluster of Dask: the report of one machine, byte by byte, whoever dies meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.needs import need
from tests.pipeline.test_shards import ranks_of
from traceanalyze.errors import UsageError
from traceanalyze.locales import texts
from traceanalyze.pipeline import Choices, reports, results
from traceanalyze.pipeline.results import ALONE, Work
from traceanalyze.pipeline.shards import cluster, tool_version
from traceanalyze.report.json import render

ROOT = Path(__file__).parents[2]
COUNT = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ranks_of(tmp_path_factory.mktemp("cluster") / "run", COUNT)


@pytest.fixture(scope="module")
def expected(run):
    return report(run)


def report(run, work=ALONE):
    return render(reports([str(run)], Choices(), work=work), texts())


class Local:
    """A scheduler and workers as processes of their own, started as a user starts them."""

    def __init__(self, folder):
        self._folder, self.processes = folder, []
        self._env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        }
        file = folder / "scheduler.json"
        arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._start("scheduler", *arguments)
        for _ in range(300):
            if file.exists() and (found := re.search(r'"address": "(tcp:[^"]*)"', file.read_text())):
                break
            time.sleep(0.1)
        self.address = found[1]
        self.workers = [self.worker(), self.worker()]

    def worker(self):
        return self._start(
            *("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
            *("--local-directory", str(self._folder)),
        )

    def _start(self, *arguments):
        self.processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
                env=self._env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return self.processes[-1]

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path):
    need("dask")
    local = Local(tmp_path)
    yield local
    local.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_this_machine(run, expected, monkeypatch, workers):
    monkeypatch.setattr(results, "LARGE", 2)
    assert report(run, Work(workers)) == expected


def test_sixteen_workers(run, expected):
    need("cluster")
    with ProcessPoolExecutor(16, mp_context=get_context("spawn")) as pool:
        assert report(run, Work(executor=pool)) == expected


@pytest.mark.filterwarnings("ignore")
def test_two_workers(dask, run, expected):
    with cluster(dask.address) as executor:
        assert report(run, Work(executor=executor)) == expected


@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle(dask, run, expected):
    def killed(done, *_):
        # After the first results, while the worker is at others.
        if done.startswith("3/"):
            dask.workers[0].send_signal(signal.SIGKILL)

    with cluster(dask.address) as executor:
        found = reports([str(run)], Choices(), progress=killed, work=Work(executor=executor))
    assert dask.workers[0].wait(10) == -signal.SIGKILL
    assert render(found, texts()) == expected


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_killed_in_the_middle(dask, run, expected):
    def killed(done, *_):
        if done.startswith("3/"):
            dask.scheduler.kill()
            for worker in dask.workers:
                worker.kill()

    with cluster(dask.address) as executor:
        found = reports([str(run)], Choices(), progress=killed, work=Work(executor=executor))
    assert render(found, texts()) == expected


@pytest.mark.filterwarnings("ignore")
def test_the_command(dask, run, tmp_path):
    for name, more in (("one", []), ("dask", ["--scheduler", dask.address])):
        command = [sys.executable, "-m", "traceanalyze", str(run), "--no-cache", "-q", "-o", f"{tmp_path}/{name}.html"]
        subprocess.run([*command, *more], check=True, cwd=ROOT)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "dask.html").read_bytes()


class Killer(ThreadPoolExecutor):
    """Loses one recording, as Dask does after it cost several workers."""

    def get_executor(self, **_):
        return self

    def submit(self, work, job, /):
        return super().submit(_dies if job.source.name.endswith("rank3.json") else work, job)


class KilledWorker(Exception):  # noqa: N818  Dask's own name
    pass


def _dies(_):
    raise Killer.error


@pytest.mark.parametrize("error", [KilledWorker, MemoryError])
def test_what_costs_every_worker_is_left_out_by_name(run, monkeypatch, error):
    monkeypatch.setattr(Killer, "error", error, raising=False)
    from traceanalyze.pipeline.shards import _Workers

    with Killer(2) as pool:
        (found,) = reports([str(run)], Choices(), work=Work(executor=_Workers(pool)))
    assert [rank.rank for rank in found.ranks] == [rank for rank in range(COUNT) if rank != 3]
    assert any("rank3.json: several workers were killed over it" in note for note in found.notes)


def test_what_is_no_longer_wanted_ends_without_a_word(caplog):
    from traceanalyze.pipeline.shards import _Workers

    given = Future()
    executor = _Workers(SimpleNamespace(get_executor=lambda **_: SimpleNamespace(submit=lambda *_: given)))
    assert executor.submit(len, "job").cancel()
    given.set_result(3)
    assert not caplog.records


def test_nobody_is_there(monkeypatch):
    need("dask")
    monkeypatch.setattr("traceanalyze.pipeline.shards._PATIENCE_S", 1)
    with pytest.raises(UsageError, match=r"nobody answers"), cluster("tcp://127.0.0.1:9"):
        pass


def test_the_version_says_what_must_be_the_same():
    assert tool_version().startswith("traceanalyze ")
