"""Scripts recorded as a user records them: what is written, and how they end."""

from __future__ import annotations

import gzip
import json
import signal
import sys

import pytest

import traceanalyze

pytestmark = pytest.mark.usefixtures("needs_torch")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_script_is_recorded_unedited(record, tmp_path):
    status, out, err = record("train(6); print(__name__, sys.argv[1:], sys.path[0])", "--lr", "3", "--help")
    assert (status, out) == (0, f"__main__ ['--lr', '3', '--help'] {tmp_path}\n"), err
    trace, about = names(tmp_path / "run")
    assert trace.startswith("rank0_")
    assert trace.endswith(".pt.trace.json.gz")
    assert about == "run.json"
    assert "read it with: traceanalyze" in err
    report = traceanalyze.analyze(tmp_path / "run")
    steps = report.analyses[0].steps.name
    # One to wait, one to warm up, two kept: a step is what ends after the optimizer's.
    assert steps == ("ProfilerStep#2", "ProfilerStep#3")
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert said["files"] == [trace]
    assert (said["rank"], said["steps_seen"], said["options"]["active"]) == (0, 6, 2)
    assert said["versions"]["torch"]


def test_every_recorded_step_holds_one_whole_optimizer_step(record, tmp_path):
    record("train(6)")
    (file,) = (tmp_path / "run").glob("*.gz")
    spans = {"ProfilerStep": [], "Optimizer.step": []}
    for event in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]:
        kind = event["name"].split("#")[0]
        if kind in spans and event.get("cat") == "user_annotation":
            spans[kind].append((event["ts"], event["ts"] + event["dur"]))
    steps, inner = sorted(spans["ProfilerStep"]), sorted(spans["Optimizer.step"])
    assert len(steps) == len(inner) == 2
    assert all(step[0] <= span[0] and span[1] <= step[1] for step, span in zip(steps, inner, strict=True))


@pytest.mark.parametrize(("end", "status"), [("raise ValueError('broken')", 1), ("sys.exit(7)", 7)])
def test_a_script_that_fails_leaves_its_recording_and_its_status(record, tmp_path, end, status):
    code, _, err = record(f"train(4); {end}", options=("--wait", "1", "--warmup", "0", "--active", "9"))
    assert code == status
    assert ("ValueError: broken" in err) == (status == 1)
    assert "ended after 4 steps, and --wait 1 --warmup 0 --active 9 take 10: the recording is shorter" in err
    assert len(traceanalyze.load(tmp_path / "run").traces) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_the_recording_and_ends_the_script(start, tmp_path, number):
    from tests.recording.conftest import LOOP

    (tmp_path / "train.py").write_text(
        LOOP + "import time\ntrain(3)\ntry:\n print('ready', flush=True)\n while True: time.sleep(0.05)\n"
        "finally: print('tidied')"
    )
    options = ("--wait", "1", "--warmup", "0", "--active", "9")
    process = start("record", "-o", "run", *options, "--", sys.executable, "train.py")
    assert next(line for line in process.stdout if line == "ready\n")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == -number, err
    assert out == "tidied\n"
    assert len(traceanalyze.load(tmp_path / "run").traces) == 1


def test_modules_and_ranks(record, start, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__init__.py").touch()
    from tests.recording.conftest import LOOP

    (tmp_path / "job" / "main.py").write_text(LOOP + "train(4); print(sys.argv[1:])")
    command = ("record", "-q", "-o", "run", "--wait", "0", "--warmup", "1", "--active", "2", "--")
    process = start(*command, sys.executable, "-um", "job.main", "-x", env={"RANK": "3", "WORLD_SIZE": "4"})
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "['-x']\n"), err
    assert "traceanalyze record" not in err
    about, trace = sorted(names(tmp_path / "run"), reverse=True)
    assert about == "run_rank3.json"
    assert trace.startswith("rank3_")
    assert traceanalyze.load(tmp_path / "run").ranks == (3,)


def test_torchrun_records_every_rank(start, tmp_path):
    from tests.recording.conftest import LOOP

    (tmp_path / "train.py").write_text(
        LOOP + "torch.distributed.init_process_group('gloo')\n"
        "for _ in range(5): torch.distributed.all_reduce(weight.data); train(1)\n"
        "torch.distributed.destroy_process_group()"
    )
    run = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    process = start("record", "-o", "run", "--wait", "1", "--warmup", "1", "--active", "2", "--", *run)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert traceanalyze.load(tmp_path / "run").ranks == (0, 1)


def test_a_script_without_an_optimizer_is_told_how_to_mark_steps(record, tmp_path):
    status, _, err = record("print('no step')")
    assert status == 2
    assert "no optimizer stepped" in err
    assert "recording.step()" in err
    status, _, err = record("print('no step')", options=("--wait", "0", "--warmup", "0", "--active", "1"))
    assert status == 0
    assert "the recording is one stretch without steps" in err
    assert len(traceanalyze.load(tmp_path / "run").traces) == 1


def test_too_few_steps_are_said(record):
    status, _, err = record("train(2)", options=())
    assert status == 2
    assert "ended after 2 steps, and --wait 5 --warmup 3 --active 5 take 13: nothing was recorded" in err


def test_a_loop_of_ones_own_beside_other_recordings(torch_python, tmp_path, record):
    text = "import traceanalyze\nwith traceanalyze.record('own', wait=1, warmup=1, active=2) as r:\n"
    (tmp_path / "own.py").write_text(text + "    for _ in range(5): r.step()\n")
    first = torch_python.run(["own.py"], tmp_path, {"PATH": ""})
    assert first.returncode == 0, first.stderr
    report = traceanalyze.analyze(tmp_path / "own")
    assert report.analyses[0].steps.name == ("ProfilerStep#2", "ProfilerStep#3")
    again = torch_python.run(["own.py"], tmp_path, {"PATH": ""})
    assert "own: holds a recording already; give another folder" in again.stderr
