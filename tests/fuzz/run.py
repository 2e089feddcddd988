"""Build the fuzz target with sanitizers and run it: `run.py [--seconds N] [--seed S] [--libfuzzer] [FILE ...]`.

Without files it starts from the sample traces and the hand-made documents; snapshots are added.
`--libfuzzer` needs clang.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz import snapshots
from tests.fuzz.agreement import HAND_MADE, ROOT, head, read

SOURCES = ROOT / "traceanalyze" / "readers" / "scan" / "native"
_LARGEST = 20_000
"""Of the target."""
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build(folder: Path, *, libfuzzer: bool) -> Path:
    """Compile the target."""
    program = folder / "scan_fuzz"
    compiler = "clang++" if libfuzzer else os.environ.get("CXX", "g++")
    fuzzer = ("-fsanitize=fuzzer", "-DTRACE_SCAN_LIBFUZZER") if libfuzzer else ()
    sources = [Path(__file__).with_name("scan_fuzz.cpp"), *sorted(SOURCES.glob("*.cpp"))]
    command = [compiler, "-std=c++17", "-O1", "-g", *SANITIZE, *fuzzer, f"-I{SOURCES}", *map(str, sources), "-o"]
    subprocess.run([*command, str(program)], check=True)
    return program


def seeds(folder: Path, files: list[Path]) -> list[Path]:
    """The corpus as files of the target: two bytes of options are the mutator's, or put in front for libFuzzer."""
    files = files or [path for pattern in ("*.json", "*.json.gz") for path in (ROOT / "sample_traces").rglob(pattern)]
    pickles = (text for text in snapshots.files(random.Random(0)) if len(text) < _LARGEST)
    texts = [*HAND_MADE, *(head(read(path), 6000) for path in files), *islice(pickles, 40)]
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.json").write_bytes(text)
    return sorted(folder.iterdir())


def main() -> int:
    """Build, run, and pass on how it ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libfuzzer", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder, libfuzzer=options.libfuzzer)
        corpus = seeds(folder / "corpus", options.files)
        if options.libfuzzer:
            arguments = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", str(folder / "corpus")]
        else:
            arguments = [str(options.seconds), str(options.seed), *map(str, corpus)]
        return subprocess.run([str(program), *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
