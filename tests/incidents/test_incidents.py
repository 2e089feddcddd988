"""Whole run directories: the first sentence says what happened, to whom and when; nothing of a healthy one."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import traceanalyze
from tests.incidents.incidents import BUILDERS, Truth
from tests.needs import need
from traceanalyze.errors import InputError

ROOT = Path(__file__).parents[2]
SEEDS = (1, 2, 3)
LIMIT_S = 3.0


def _first(report: traceanalyze.Report) -> str:
    """The first sentence; none of its own values ends with a stop and a capital."""
    return re.split(r"\. (?=[A-Z])", report.verdict)[0].rstrip(".")


def _wrong(report: traceanalyze.Report, truth: Truth) -> str:
    """What the first sentence lacks."""
    first = _first(report)
    if not truth.cause:
        return "" if first.startswith("Nothing in") else f"speaks: {first}"
    ranks = [f"{truth.ranks[0]}-{truth.ranks[-1]}", ",".join(map(str, truth.ranks))]
    named = any(re.match(rf"Ranks? {each}\b", first) for each in (ranks if len(truth.ranks) > 1 else ranks[1:]))
    cause = report.tables["incident"].column("cause")[0] == f"incident_{truth.cause}"
    return "" if named and cause and any(word in first for word in truth.words) else first


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BUILDERS)
def test_the_first_sentence_names_rank_and_cause(tmp_path, name, seed):
    truth = BUILDERS[name](tmp_path / "run", seed)
    begin = time.process_time()
    report = traceanalyze.postmortem(tmp_path / "run")
    assert time.process_time() - begin < LIMIT_S
    assert not _wrong(report, truth)


@pytest.mark.parametrize("name", [name for name in BUILDERS if name != "healthy"])
def test_it_names_the_host_and_what_was_not_recorded(tmp_path, name):
    truth = BUILDERS[name](tmp_path / "run", 5)
    report = traceanalyze.postmortem(tmp_path / "run")
    assert truth.host in _first(report)
    kinds = {str(one) for one in report.tables["incident_files"].column("file_kind")}
    missing = {str(one) for one in report.tables["incident_missing"].column("missing")}
    for kind, source in (("file_stacks", "source_stacks"), ("file_nvidia_smi", "source_device_state")):
        assert (kind in kinds) != (source in missing)
    assert len(report.tables["incident"]) <= 4


def test_times_of_all_sources_stand_in_one_order(tmp_path):
    BUILDERS["xid"](tmp_path / "run", 1)
    report = traceanalyze.postmortem(tmp_path / "run")
    table = report.tables["incident_timeline"]
    times, events = table.column("time"), list(map(str, table.column("event")))
    assert list(times) == sorted(times)
    assert events.index("what_xid") < events.index("diverges_unrecorded") < events.index("what_timeout")


def test_a_rank_without_a_file_is_named(tmp_path):
    BUILDERS["healthy"](tmp_path / "run", 1)
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and re.search(r"rank_[56](?:\.log|\.json)?$", path.name):
            path.unlink()
    assert traceanalyze.postmortem(tmp_path / "run").verdict.endswith("Rank(s) 5-6 of at least 8 left no file.")


def test_dumps_alone_name_the_missing_rank_but_do_not_prove_that_it_hangs(tmp_path):
    truth = BUILDERS["hang_in_user_code"](tmp_path / "run", 1)
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and not re.search(r"rank_\d(?:\.json)?$", path.name):
            path.unlink()
    verdict = traceanalyze.postmortem(tmp_path / "run").verdict
    assert verdict.startswith(f"Rank {truth.ranks[0]} did not come at ")
    assert "That this is the cause is uncertain." in verdict


def test_beside_traces_it_comes_first_and_traces_are_no_dumps(tmp_path):
    """Traces of Kineto name process groups, as dumps do."""
    BUILDERS["xid"](tmp_path / "run", 1)
    alone = traceanalyze.postmortem(tmp_path / "run")
    for path in (ROOT / "sample_traces" / "gpu_two_ranks").glob("rank*.json.gz"):
        shutil.copy(path, tmp_path / "run")
    report = traceanalyze.postmortem(tmp_path / "run")
    assert _first(report) == _first(alone)
    assert "What limited this run most" in report.verdict
    assert len(report.tables["incident_files"]) == len(alone.tables["incident_files"])


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.txt", "report.xlsx", "report.json", "tables/"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_format_tells_it(tmp_path, name, language):
    BUILDERS["hang_in_user_code"](tmp_path / "run", 2)
    report = traceanalyze.postmortem(tmp_path / "run", language=language)
    report.write(f"{tmp_path}/{name}")
    out = tmp_path / name.rstrip("/")
    if name.endswith((".html", ".md", ".txt", ".json")):
        assert "poll_lock" in out.read_text(encoding="utf-8").replace("\\", "")


@pytest.mark.parametrize("seed", range(6))
def test_a_torn_directory_still_gives_a_report(tmp_path, seed):
    rng = random.Random(seed)
    name = rng.choice([each for each in BUILDERS if each != "healthy"])
    BUILDERS[name](tmp_path / "run", seed)
    files = sorted(path for path in (tmp_path / "run").rglob("*") if path.is_file())
    for path in rng.sample(files, len(files) // 2):
        whole = path.read_bytes()
        torn = whole[: rng.randrange(len(whole) + 1)]
        path.write_bytes(rng.choice((torn, b"", rng.randbytes(500), whole[:100] + rng.randbytes(300) + whole[100:])))
    try:
        report = traceanalyze.postmortem(tmp_path / "run")
    except InputError:
        return
    assert report.verdict
    for ending in ("txt", "json", "html"):
        report.write(tmp_path / f"report.{ending}")


ANALYSED = {
    # Sends and receives outside of coalesced groups are beyond torch's analyser.
    "hang_in_user_code": "Not all ranks joining collective",
    "desync": "Error type: |Not all ranks joining collective",
    "healthy": "",
    "slow_link": "",
}


@pytest.mark.parametrize("name", ANALYSED)
def test_dumps_open_in_the_analyser_of_torch(tmp_path, name):
    need("torch")
    BUILDERS[name](tmp_path / "run", 4)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and re.search(r"rank_\d$", path.name):
            path.rename(dumps / path.name)
    assert len(list(dumps.iterdir())) == 8
    words = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(dumps)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert re.search(ANALYSED[name], said)


REAL = {
    "killed": (5, "crash", "died"),
    "hung": (2, "hang", "spin_on_lock"),
    "no_memory": (6, "host_oom", "host memory"),
    "failed": (1, "crash", "KeyError"),
    "desync": (4, "desync", "broadcast"),
    "starved": (3, "data", "data"),
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Jobs of 8 gloo ranks that end so, one after another."""
    need("torch")
    folder = tmp_path_factory.mktemp("gloo")
    jobs = [f"{kind}:{rank}:{6 + rank}" for kind, (rank, _, _) in REAL.items()]
    words = [sys.executable, "-m", "tests.incidents.gloo_job", str(folder), *jobs]
    subprocess.run(words, cwd=ROOT, check=True, timeout=300, capture_output=True)
    return folder


@pytest.mark.parametrize("kind", REAL)
def test_real_jobs(real, kind):
    rank, cause, word = REAL[kind]
    report = traceanalyze.postmortem(real / kind)
    assert not _wrong(report, Truth(cause, (rank,), (word,)))
