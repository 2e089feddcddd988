"""Run for long, and look what grows or breaks: `python -m tests.soak [--analyses N] [--runs N] [--seed S]`.

Analyses of every kind through the API in one process: after the first of them, memory, file descriptors, threads and
temporary files stay what they were. Then every command again and again with options drawn at random, over the samples:
it exits as documented, and never with a traceback.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.main

import traceanalyze
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
SILENT = ("open", "record", "tensorboard")
"""They serve, or start another program: tried without what they need alone."""


def mixed(folder: Path) -> Iterator[Callable[[], Any]]:
    """Analyses of every kind, without end."""
    formats = itertools.cycle(("json", "html", "md", "xlsx", "txt", "svg"))
    for at in itertools.count():
        run, other, shot = RUNS[at % len(RUNS)], RUNS[at // 2 % len(RUNS)], SNAPSHOTS[at % len(SNAPSHOTS)]
        target = folder / f"report.{next(formats)}"
        yield lambda run=run, to=target: traceanalyze.analyze(run).write(to)
        yield lambda shot=shot: traceanalyze.memory(shot).tables["memory_at_peak"]
        yield lambda run=run, other=other: traceanalyze.compare(run, other)
        yield lambda run=run: traceanalyze.analyze(traceanalyze.load(run), language="zh").tables["split"].to_pandas()
        yield lambda run=run: traceanalyze.postmortem(run)
        yield lambda run=run: traceanalyze.whatif(run, without="memory_ops")
        yield lambda run=run: traceanalyze.annotate(run, folder / "annotated.json.gz")
        yield lambda run=run, other=other: traceanalyze.gate(run, other)
        yield lambda: traceanalyze.analyze(folder / "missing")


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


def drawn(command: str, parameters: list[Any], chance: random.Random, folder: Path) -> list[str]:
    """A command line: paths that it may want, and a few of its options with values of all sorts."""
    values = [
        "0",
        "1",
        "2:",
        "-1",
        "x",
        "",
        "en",
        "zh",
        "json",
        "csv",
        "html",
        "kernels",
        "10ms-",
        "step",
        "(",
        "5%",
        "80GiB",
        "all",
        "1e400",
        "ü",
        "free=memcpy",
        "DAT",
        str(folder / "out.json"),
        str(folder / "out.xlsx"),
        str(folder / "out.md"),
        str(folder / "tables") + "/",
        RUNS[0],
    ]
    arguments = [command]
    groups = {
        "baseline": ("list", "update", "remove", "x"),
        "history": (str(folder / "store"),),
        "rule": ("DAT101", "x", ""),
    }
    if command in groups:
        arguments.append(chance.choice(groups[command]))
    paths = [
        *RUNS,
        *SNAPSHOTS,
        str(SAMPLES),
        str(folder),
        str(folder / "missing"),
        str(SAMPLES / "cpu_training/case.toml"),
    ]
    if command not in SILENT:
        arguments += chance.sample(paths, chance.choice((0, 1, 1, 1, 2, 2, 3)))
    for option in chance.sample(parameters, min(len(parameters), chance.choice((0, 1, 1, 2, 3, 5)))):
        arguments.append(chance.choice(option.opts))
        if not option.is_flag:
            choices = list(getattr(option.type, "choices", ()) or ())
            arguments.append(chance.choice(choices) if choices and chance.random() < 0.8 else chance.choice(values))
    return arguments


def commands(count: int, seed: int, folder: Path) -> list[str]:
    """Faults of so many runs of every command."""
    chance, wrong, exits = random.Random(seed), [], Counter[tuple[str, int]]()
    tool = typer.main.get_command(app)
    for name, command in tool.commands.items():
        options = [each for each in command.params if each.param_type_name == "option" and each.opts[0].startswith("-")]
        begun = time.monotonic()
        for _ in range(count):
            words = drawn(name, options, chance, folder)
            program = [sys.executable, "-P", "-m", "traceanalyze", *words]
            done = subprocess.run(
                program,
                cwd=folder,
                input=b"",
                capture_output=True,
                timeout=300,
                check=False,
                env=os.environ | {"BROWSER": "true"},
            )
            exits[name, done.returncode] += 1
            said = done.stderr.decode("utf-8", "replace")
            if done.returncode not in EXITS or "Traceback" in said or (done.returncode == 2 and not said.strip()):
                wrong.append(f"{words}: exit {done.returncode}, {said[-300:]}")
                print(f"WRONG {wrong[-1]}", flush=True)
        told = ", ".join(f"{code}: {number}" for (each, code), number in sorted(exits.items()) if each == name)
        print(f"{name}: {count} runs in {time.monotonic() - begun:.0f} s, exits {told}", flush=True)
    return wrong


def main() -> int:
    """Both, with numbers that a plain run has time for unless others are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--analyses", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as name:
        # Everything temporary of this process goes into a folder of its own, where it can be counted.
        folder = Path(name)
        tempfile.tempdir = str(folder / "temporary")
        Path(tempfile.tempdir).mkdir()
        wrong = analyses(options.analyses, folder) if options.analyses else []
        wrong += commands(options.runs, options.seed, folder) if options.runs else []
    for each in wrong:
        print(each)
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
