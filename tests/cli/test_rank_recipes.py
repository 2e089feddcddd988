"""The recipes of docs/many-ranks.md run as they stand, and give the report of one run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

import traceanalyze
from tests.pipeline.test_shards import ranks_of
from traceanalyze.locales import texts
from traceanalyze.report.json import render

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "many-ranks.md").read_text()
SLURM, SUBMIT = re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)
(JOB,) = re.findall(r"command: \[sh, -c, (.*)\]", TEXT)
(PYTHON,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SBATCH = """#!/bin/bash
# Runs at once what a cluster would run some day: each task of an array, or what is wrapped.
for last; do :; done
if [[ "$*" == *--wrap* ]]; then bash -ec "$last"; exit; fi
export RUN=$(sed 's/.*RUN=\\([^, ]*\\).*/\\1/' <<< "$*") PARTS=$(sed 's/.*PARTS=\\([^, ]*\\).*/\\1/' <<< "$*")
first_to_last=$(sed -n 's/#SBATCH --array=//p' "$last")
export SLURM_ARRAY_TASK_MIN=${first_to_last%-*}
export SLURM_ARRAY_TASK_COUNT=$((${first_to_last#*-} - SLURM_ARRAY_TASK_MIN + 1))
for SLURM_ARRAY_TASK_ID in $(seq ${first_to_last/-/ }); do
  export SLURM_ARRAY_TASK_ID
  bash -e "$last" >&2
done
echo 4711
"""


@pytest.fixture
def shell(tmp_path):
    programs = {
        "traceanalyze": f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m traceanalyze "$@"\n',
        "sbatch": SBATCH,
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    ranks_of(tmp_path / "run")

    def run(command, **variables):
        command = command.replace("/data/", f"{tmp_path}/")
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", **variables}
        done = subprocess.run(
            ["bash", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    return run


def test_a_slurm_array(shell, tmp_path):
    (tmp_path / "share.sh").write_text(SLURM)
    shell(SUBMIT)
    merged = (tmp_path / "report.html").read_text()
    shell("traceanalyze /data/run --no-cache -o /data/whole.html")
    assert merged == (tmp_path / "whole.html").read_text()


def test_an_indexed_job(shell, tmp_path):
    count = int(re.search(r"completions: (\d+)", TEXT)[1])
    for index in reversed(range(count)):
        shell(JOB, JOB_COMPLETION_INDEX=str(index))
    shell("traceanalyze merge /data/parts > /data/merged.txt; traceanalyze /data/run > /data/whole.txt")
    assert (tmp_path / "merged.txt").read_text() == (tmp_path / "whole.txt").read_text()


def test_from_python(tmp_path, monkeypatch):
    ranks_of(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(compile(PYTHON.replace("(16)", "(1)"), "many-ranks.md", "exec"), found)
    assert render([found["report"]], texts()) == render([traceanalyze.analyze("run")], texts())


class Plain(Executor):
    """One that only submits, as those of other packages may."""

    def __init__(self):
        self.asked = 0

    def submit(self, work, /, *arguments, **more):
        self.asked += 1
        done = Future()
        try:
            done.set_result(work(*arguments, **more))
        except BaseException as error:
            done.set_exception(error)
        return done


def test_any_executor_will_do(tmp_path):
    path, executor = ranks_of(tmp_path / "run"), Plain()
    (path / "rank1.json").write_text('{"traceEvents": [')
    found = traceanalyze.analyze(path, executor=executor)
    assert executor.asked == 3
    assert render([found], texts()) == render([traceanalyze.analyze(path)], texts())
