"""Read every kind of input while reads of it are short, or fail: `python -m tests.fuzz.read_errors [--each N]`.

A library in front of that of C makes them so, for files of one folder. Where reads are only short, nothing changes.
Where one fails, one line says so, or the report tells what is missing; numbers never change in silence.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import io
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import traceanalyze
from tests.fuzz.snapshots import corpus as snapshot_contents
from tests.simulate.simulate import simulate
from tests.simulate.two_npus import TWO_NPUS
from tests.simulate.writers.ascend import write_ascend
from traceanalyze.errors import TraceAnalyzeError
from traceanalyze.model.vocabulary import Level

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char fault_folder[4096];
long fault_calls, fault_at, fault_most;  /* so far; the first that fails; bytes of one; 0: none */

static int ours(int file) {
    char link[64], path[4096];
    if (!fault_folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const long size = readlink(link, path, sizeof path - 1);
    return size > 0 && !strncmp(path, fault_folder, strlen(fault_folder));
}

#define FAULTY(name, offset_parameter, offset_argument)                                             \
    ssize_t name(int file, void *data, size_t size offset_parameter) {                              \
        ssize_t (*real)(int, void *, size_t, ...) = (ssize_t(*)(int, void *, size_t, ...))dlsym(RTLD_NEXT, #name); \
        if (ours(file)) {                                                                           \
            if (++fault_calls >= fault_at && fault_at) { errno = EIO; return -1; }                              \
            if (fault_most && size > (size_t)fault_most) size = (size_t)fault_most;                 \
        }                                                                                           \
        return real(file, data, size offset_argument);                                              \
    }
#define COMMA ,
FAULTY(read, , )
FAULTY(pread, COMMA off_t at, COMMA at)
FAULTY(pread64, COMMA off_t at, COMMA at)
"""
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
_ZIPPED = "trace.json"


def inputs(folder: Path) -> dict[str, tuple[Any, Path]]:
    """One of every kind, and the function that reads it."""
    text = gzip.decompress((SAMPLES / "gpu_sync" / "trace.json.gz").read_bytes())
    shot = snapshot_contents()[0]
    log = "".join(f"step {i} loss: {2 - i / 100} lr 0.1\n" for i in range(50)) + "Traceback (most recent call last):\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ZIPPED, text)
    files = {
        "trace.json": text,
        "trace.json.gz": gzip.compress(text),
        "trace.zip": packed.getvalue(),
        "snapshot.pickle": pickle.dumps(shot, 4),
        "snapshot.json": json.dumps(shot).encode(),
        "job.log": (log + "RuntimeError: CUDA error: out of memory\n").encode(),
    }
    found: dict[str, tuple[Any, Path]] = {}
    for name, content in files.items():
        (folder / name).write_bytes(content)
        read = (
            traceanalyze.memory
            if name.startswith("snapshot")
            else traceanalyze.postmortem
            if name.endswith("log")
            else traceanalyze.analyze
        )
        found[name] = read, folder / name
    for form in ("text", "db"):
        found[f"ascend-{form}"] = traceanalyze.analyze, write_ascend(folder / form, simulate(TWO_NPUS)[0], form=form)
    return found


def meaning(read: Any, path: Path) -> tuple[str, set[str]]:
    """What a report has, and what it says of its input."""
    report = read(path)
    said = {str(note) for note in report.notes}
    said |= {str(check.message) for rank in report.ranks for check in rank.checks if check.level >= Level.WARN}
    return repr({key: table.rows for key, table in report.tables.items() if key != "checks"}), said


def tried(each: int, seed: int, shim: ctypes.CDLL) -> int:
    """Read all of them, each with so many failures; how many went wrong."""
    chance, wrong = random.Random(seed), 0
    calls, fails, most = (ctypes.c_long.in_dll(shim, f"fault_{name}") for name in ("calls", "at", "most"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        every = inputs(folder)
        ctypes.create_string_buffer(4096)
        ctypes.memmove(
            ctypes.addressof((ctypes.c_char * 4096).in_dll(shim, "fault_folder")),
            str(folder).encode() + b"\0",
            len(str(folder)) + 1,
        )
        for kind, (read, path) in every.items():
            calls.value = 0
            whole, before = meaning(read, path)
            count = calls.value
            most.value = 700
            if meaning(read, path) != (whole, before):
                wrong += 1
                print(f"{kind}: short reads change the report")
            most.value = 0
            told = 0
            for at in sorted(chance.sample(range(1, count + 1), min(each, count))):
                calls.value, fails.value = 0, at
                try:
                    found, said = meaning(read, path)
                except TraceAnalyzeError as error:
                    bad, said = "\n" in str(error), {str(error)}
                    told += 1
                except Exception as error:  # what a user must never see
                    bad, said = True, {repr(error)}
                else:
                    bad = found != whole and not said - before
                    told += found != whole
                if bad:
                    wrong += 1
                    print(print(f"{kind}: reads from {at} of {count} on fail, and nobody is told: {said}"))
                fails.value = 0
            print(f"{kind}: {min(each, count)} of {count} reads failed, {told} of them told", flush=True)
    return wrong


def main() -> int:
    """Build the library, and start again behind it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if shim := os.environ.get("READ_ERRORS_SHIM"):
        warnings.simplefilter("error")
        return min(tried(options.each, options.seed, ctypes.CDLL(shim)), 1)
    with tempfile.TemporaryDirectory() as name:
        source, library = Path(name, "shim.c"), Path(name, "shim.so")
        source.write_text(SHIM)
        subprocess.run(
            [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True
        )
        environment = os.environ | {"LD_PRELOAD": str(library), "READ_ERRORS_SHIM": str(library)}
        return subprocess.run(
            [sys.executable, "-m", "tests.fuzz.read_errors", *sys.argv[1:]], env=environment, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
