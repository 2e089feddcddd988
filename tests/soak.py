"""Run for long, and look what grows or breaks: `python -m tests.soak [--analyses N] [--runs N] [--signals N] …`.

Analyses of every kind through the API in one process: after the first of them, memory, file descriptors, threads and
temporary files stay what they were. Then every command again and again with options drawn at random, over the samples:
it exits as documented, never with a traceback, and leaves nothing behind; nor when a signal stops it at any moment.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer.main

import traceanalyze
from tests.benchmarks.tile import make
from tests.builder import TraceBuilder
from traceanalyze.cli.app import app
from traceanalyze.errors import TraceAnalyzeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
RUNS = [str(SAMPLES / name) for name in ("gpu_healthy", "gpu_sync", "gpu_two_ranks", "npu_training", "cpu_training")]
SNAPSHOTS = [str(path) for path in sorted((SAMPLES / "memory").glob("*/snapshot.pickle.gz"))]
WARM = 100
MOST_GROWTH = 10 << 20
"""Bytes of resident memory."""
EXITS = {0, 1, 2, 3}
"""As documented: fine, a regression, not to be used, not to be told. 130 is only of who is interrupted."""
SERVING = ("open", "tensorboard")
LONG = ("analyze", "compare", "convert", "gate", "postmortem")
PATIENCE = 2.0
"""Seconds from a signal to the end, and from there to the end of what was started."""
PROGRAM = [sys.executable, "-P", "-m", "traceanalyze"]


def mixed(folder: Path) -> Iterator[Callable[[], Any]]:
    """Analyses of every kind, without end."""
    targets = itertools.cycle(f"report.{end}" for end in ("json", "html", "md", "xlsx", "txt", "svg", "prom", "csv/"))
    for at in itertools.count():
        run, other, shot = RUNS[at % len(RUNS)], RUNS[at // 2 % len(RUNS)], SNAPSHOTS[at % len(SNAPSHOTS)]
        target = f"{folder}/{next(targets)}"
        yield lambda run=run, to=target: traceanalyze.analyze(run).write(to)
        yield lambda shot=shot: traceanalyze.memory(shot).tables["memory_at_peak"]
        yield lambda run=run, other=other: traceanalyze.compare(run, other)
        yield lambda run=run: traceanalyze.analyze(traceanalyze.load(run), language="zh").tables["split"].to_pandas()
        yield lambda run=run: traceanalyze.postmortem(run)
        yield lambda run=run: traceanalyze.whatif(run, without="memory_ops")
        yield lambda run=run: traceanalyze.annotate(run, folder / "annotated.json.gz")
        yield lambda run=run, other=other: traceanalyze.gate(run, other)
        yield lambda at=at: traceanalyze.analyze(other_names(folder, at)).write(folder / "other.json")
        yield lambda: traceanalyze.analyze(folder / "missing")


def other_names(folder: Path, number: int) -> Path:
    """A trace of a few steps with names that no other has: what is kept by name must not be kept for ever."""
    trace = TraceBuilder()
    for step in range(3):
        trace.step(step, step * 1000, 1000)
        for at in range(0, 900, 30):
            trace.op(f"aten::op_{number}_{at}", step * 1000 + at, 20)
            trace.launch(step * 1000 + at + 5, 10, step * 1000 + at + 12, 15, name=f"kernel_{number}_{at}<float>")
    path = folder / "other_names.json"
    path.write_text(json.dumps({"traceEvents": trace.events}))
    return path


def state(folder: Path) -> dict[str, int]:
    """What must not grow."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    files = len(list(Path(tempfile.gettempdir()).rglob("*"))) + len(list(folder.glob("*.part")))
    return {
        "bytes": resident,
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "files": files,
    }


def analyses(count: int, folder: Path) -> list[str]:
    """Faults of so many analyses in this process."""
    failed = Counter[str]()
    before, begun = {}, time.monotonic()
    for number, one in enumerate(itertools.islice(mixed(folder), count), 1):
        try:
            one()
        except TraceAnalyzeError as error:
            failed[f"{type(error).__name__}: {error}"[:110]] += 1
        if number == min(WARM, count // 2):
            before = state(folder)
        if number % 100 == 0:
            print(f"{number} analyses in {time.monotonic() - begun:.0f} s: {state(folder)}", flush=True)
    after = state(folder)
    print(
        f"{count} analyses in {time.monotonic() - begun:.0f} s: {before} before, {after} after; refused: {dict(failed)}"
    )
    allowed = {"bytes": MOST_GROWTH}
    return [
        f"{what} grew from {before[what]:,} to {after[what]:,}"
        for what in after
        if after[what] > before[what] + allowed.get(what, 0)
    ]


def leaves(group: Any, *words: str) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Every command by its words, with its options."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, *words, name)
        else:
            yield (*words, name), [each for each in command.params if each.param_type_name == "option"]


def material(folder: Path) -> dict[str, list[list[str]]]:
    """What each command may stand in front of; those that are not named take recordings."""
    store, shares, baseline, train = (str(folder / name) for name in ("store", "shares", "baseline.json", "train.py"))
    for run in RUNS[:2]:
        subprocess.run([*PROGRAM, run, "-q", "--record", store], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            [*PROGRAM, "baseline", "update", baseline, run, "--accept"], check=True, stderr=subprocess.DEVNULL
        )
    for part in "01":
        command = [*PROGRAM, "analyze", "--shard", f"{part}/2", "-o", f"{shares}/", RUNS[2]]
        subprocess.run(command, check=True, capture_output=True)
    Path(train).write_text(
        "import torch\nmodel = torch.nn.Linear(9, 9)\nstep = torch.optim.SGD(model.parameters()).step\n"
        "for _ in range(20):\n    model(torch.ones(9)).sum().backward(), step()\n"
    )
    asked = ("SELECT * FROM split", "FROM events LIMIT 3", "SELECT", "FROM read_csv('/etc/passwd')", "DROP TABLE split")
    return {
        "baseline": [[baseline, RUNS[0]], [baseline], [str(folder / "new.json"), RUNS[0]], [RUNS[0]], []],
        "convert": [["--annotate", str(folder / "out.json.gz"), run] for run in RUNS] + [[RUNS[0]], []],
        "history": [[store]] * 3 + [[RUNS[0]], [str(folder / "missing")], []],
        "mcp": [[str(SAMPLES)], [str(folder), RUNS[0]], [str(folder / "missing")], []],
        "merge": [[shares]] * 3 + [[store], [RUNS[0]], []],
        "open": [["--no-browser", "--port", "0", run] for run in (*RUNS, str(folder))],
        "query": [[run, sql] for run in (RUNS[0], RUNS[2], store, str(folder)) for sql in asked],
        "record": [["-o", str(folder / "run"), "--", sys.executable, train], ["--", train], ["--", "missing"], []],
        "rule": [["DAT101"], ["DAT"], ["x"], [""], []],
        "tensorboard": [[run] for run in RUNS],
        "whatif": [
            [run, "--without", each] for run in (*RUNS, SNAPSHOTS[0]) for each in ("memory_ops", "compute", "x")
        ],
        "compare": [[*pair] for pair in itertools.product(RUNS, RUNS[:3])] + [[RUNS[0]], []],
        "gate": [[run, "--baseline", run] for run in RUNS] + [[RUNS[0], "--baseline", RUNS[1]], [RUNS[0]]],
    }


def drawn(
    command: tuple[str, ...], options: list[Any], first: dict[str, list[list[str]]], chance: random.Random, folder: Path
) -> list[str]:
    """A command line: paths that it may want, and a few of its options with values of all sorts."""
    outputs = [str(folder / name) for name in ("out.json", "out.xlsx", "out.md", "out.svg", "out.txt", "tables/")]
    fit = {
        "FILE|DIR/": outputs,
        "OUT": [str(folder / "out.json.gz"), str(folder / "out.parquet")],
        "DIR": [str(folder / "cache")],
        "LIST": ["0", "0-1", "1:"],
        "N": ["1", "3", "2"],
        "LANG": ["en", "zh"],
        "REGEX": ["aten", "(?i)gemm|conv", "."],
        "FROM-TO": ["0ms-", "1ms-1s"],
        "NAME=CLASS": ["new=host"],
        "RULE": ["DAT", "DAT101", "SYN"],
        "SIZE": ["80GiB", "16GiB"],
        "NAME=FACTOR": ["compute=2"],
        "NAME": ["data", "memory_ops"],
        "BASELINE": [str(folder / "baseline.json"), RUNS[0]],
        "SETTINGS": ["expandable_segments:True"],
        "communication": ["communication"],
    }
    values = ["0", "1", "2:", "-1", "x", "", "en", "json", "kernels", "step", "(", "5%", "all", "1e400", "ü", "DAT"]
    values += ["free=memcpy", RUNS[0], *outputs]
    paths = [*RUNS, *SNAPSHOTS, str(SAMPLES), str(folder / "missing"), str(SAMPLES / "cpu_training/case.toml")]
    positional = (
        chance.choice(first[command[0]])
        if command[0] in first
        else chance.sample(paths, chance.choice((0, 1, 1, 1, 2, 2, 3)))
    )
    words = []
    for option in chance.sample(options, min(len(options), chance.choice((0, 1, 1, 2, 3, 5)))):
        words.append(chance.choice(option.opts))
        if not option.is_flag:
            known = list(getattr(option.type, "choices", ()) or fit.get(option.metavar, ()))
            words.append(chance.choice(known if known and chance.random() < 0.9 else values))
    return [*command, *words, *positional]


class Ended(NamedTuple):
    """How a process ended, and what it left."""

    code: int
    said: str
    seconds: float
    """From the signal to its end, or from its start where none was sent."""
    left: list[str]


def ran(words: list[str], folder: Path, kind: int = 0, after: float = 0.0, *, whole: bool = False) -> Ended:
    """A command run in a session of its own; a signal stops it, or all of the session (`whole`), after so long.

    What serves until somebody comes is stopped when it says that it does.
    """
    temporary = folder / "of the command"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"BROWSER": "true", "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(folder / "home")}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*PROGRAM, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env=environment,
        )
        # What is said is read all the time: nobody waits for room in a pipe.
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process, words[0] in SERVING and not kind), daemon=True)
        reader.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after if kind else 300)
        begun = time.monotonic()
        if kind and process.poll() is None:
            (os.killpg if whole else os.kill)(process.pid, kind)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - begun
        while (alive := session(process.pid)) and time.monotonic() < begun + seconds + PATIENCE:
            time.sleep(0.05)
        left = [f"process {each}" for each in alive]
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
        reader.join(10)
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")
    # What a recorded script makes for itself (`torchinductor_USER`) is its own.
    files = [each for each in temporary.iterdir() if not each.name.startswith("torchinductor_")]
    files += folder.rglob(".*.part")
    for each in files:
        left += [] if kind == signal.SIGKILL else [f"file {each.name}"]
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    return Ended(process.returncode, said, seconds, left)


def _read(process: subprocess.Popen[bytes], serves: bool) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        if serves and output.readline():
            process.terminate()
        while output.read(1 << 16):
            pass


def session(leader: int) -> list[int]:
    """Processes of a session that are not dead."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own, *_ = stat.read_text().rpartition(")")[2].split()
            found += [int(stat.parent.name)] if int(own) == leader and state != "Z" else []
    return found


def commands(count: int, seed: int, folder: Path, names: list[str]) -> list[str]:
    """Faults of so many runs of every command."""
    chance, wrong, first = random.Random(seed), [], material(folder)
    for command, options in leaves(typer.main.get_command(app)):
        if names and command[0] not in names:
            continue
        exits, begun = Counter[int](), time.monotonic()
        for _ in range(count):
            words = drawn(command, options, first, chance, folder)
            done = ran(words, folder)
            exits[done.code] += 1
            allowed = EXITS | ({130, -signal.SIGTERM} if command[0] in SERVING else set())
            silent = done.code == 2 and not done.said.strip()
            if done.code not in allowed or "Traceback" in done.said or silent or done.left:
                wrong.append(f"{words}: exit {done.code}, left {done.left}, {done.said[-300:]}")
                print(f"WRONG {wrong[-1]}", flush=True)
        told = ", ".join(f"{code}: {number}" for code, number in sorted(exits.items()))
        print(f"{' '.join(command)}: {count} runs in {time.monotonic() - begun:.0f} s, exits {told}", flush=True)
    return wrong


def signals(count: int, seed: int, folder: Path, names: list[str]) -> list[str]:
    """Faults of so many commands that are told to stop, or killed, when they have run for a moment."""
    chance, wrong, first = random.Random(seed), [], material(folder)
    # Long enough that workers are started, and to be met by the signal anywhere.
    large = folder / "large"
    large.mkdir()
    for rank in range(2):
        make(Path(RUNS[0]) / "trace.json.gz", 60_000_000, large / f"rank{rank}.pt.trace.json")
    every = [each for each in leaves(typer.main.get_command(app)) if not names or each[0][0] in names]
    exits, times, begun, early = Counter[str](), [], time.monotonic(), 0
    for number in range(count):
        command, options = chance.choice(every)
        words = drawn(command, options if chance.random() < 0.3 else [], first, chance, folder)
        if command[0] in LONG and chance.random() < 0.5:
            words = [*command, *[str(large)] * (1 + (command[0] == "compare"))]
            words += ["--annotate", str(folder / "annotated.json.gz")] if command[0] == "convert" else []
            words += ["--baseline", RUNS[0]] if command[0] == "gate" else []
        kind = chance.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
        after = 10 ** chance.uniform(-1.7, 0.8)
        done = ran(words, folder, kind, after, whole=chance.random() < 0.5)
        exits[f"{kind.name} {done.code}"] += 1
        times.append(done.seconds)
        # An interrupt while Python itself begins is Python's to tell.
        traced = "Traceback" in done.said
        before = traced and "traceanalyze/" not in done.said
        early += before
        # What is recorded ends as it would alone.
        of_script = command[0] == "record"
        unlike = done.code not in EXITS | {130, -kind}
        if unlike or (traced > before and not of_script) or done.left or done.seconds > PATIENCE:
            what = f"exit {done.code} in {done.seconds:.1f} s, left {done.left}, {done.said[-1500:]}"
            wrong.append(f"{words}: {kind.name} after {after:.2f} s, {what}")
            print(f"WRONG {number} {wrong[-1]}", flush=True)
    slowest = ", ".join(f"{each:.2f}" for each in sorted(times)[-5:])
    told = f"{dict(sorted(exits.items()))}, slowest {slowest} s, {early} told by Python as it began"
    print(f"{count} signals in {time.monotonic() - begun:.0f} s: {told}")
    return wrong


def main() -> int:
    """Both, with numbers that a plain run has time for unless others are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--analyses", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--signals", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("commands", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("error")
    for kind in (signal.SIGINT, signal.SIGHUP):
        # Whoever runs this in the background lets it ignore them, and what it starts would too.
        signal.signal(kind, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name:
        # Everything temporary of this process goes into a folder of its own, where it can be counted.
        folder = Path(name)
        tempfile.tempdir = str(folder / "temporary")
        Path(tempfile.tempdir).mkdir()
        wrong = analyses(options.analyses, folder) if options.analyses else []
        for what, count in ((commands, options.runs), (signals, options.signals)):
            if count:
                home = folder / what.__name__
                home.mkdir()
                wrong += what(count, options.seed, home, options.commands)
    for each in wrong:
        print(each)
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
