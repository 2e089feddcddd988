"""Fuzz everything that reads files, guided by coverage: `run.py [--seconds N] [--seed S] [--libfuzzer] [TARGET ...]`.

Targets: `scan`, `snapshot` and `tree` of the native library under sanitizers, by a driver of their own or libFuzzer
(which needs clang); `csv`, `communication`, `database`, `snapshot-json`, `log`, `flight` of the Python readers, by
Atheris, and without it only if they are named. They share the seconds. First every allocation of the library fails
once, and all of the corpus runs. What a target dies of is left in the current folder as TARGET.crash; with
`--corpus FOLDER` what libFuzzer and Atheris keep goes there.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "traceanalyze" / "readers" / "scan" / "native"
NATIVE = ("scan", "snapshot", "tree")
PYTHON = ("csv", "communication", "database", "snapshot-json", "log", "flight")
_SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_LARGEST = 20_000
"""Bytes of an input."""


def build(folder: Path, *, libfuzzer: bool) -> Path:
    """Compile the targets: into the library, and only there, go the marks that coverage is counted by."""
    compiler = "clang++" if libfuzzer else os.environ.get("CXX", "g++")
    common = [compiler, "-std=c++17", "-O1", "-g", *_SANITIZE, f"-I{SOURCES}"]
    seen = ["-fsanitize=fuzzer-no-link" if libfuzzer else "-fsanitize-coverage=trace-pc"]
    units = dict.fromkeys(SOURCES.glob("*.cpp"), seen) | {path: [] for path in (HERE / "native").glob("*.cpp")}
    if libfuzzer:
        del units[HERE / "native" / "allocations.cpp"]
        common.append("-DFUZZ_LIBFUZZER")

    def compiled(path: Path) -> str:
        made = folder / f"{path.parent.parent.name}-{path.stem}.o"
        subprocess.run([*common, *units[path], "-c", str(path), "-o", str(made)], check=True)
        return str(made)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, sorted(units)))
    program = folder / "fuzz"
    link = ["-fsanitize=fuzzer"] if libfuzzer else ["-Wl,--wrap=malloc", "-Wl,--wrap=realloc"]
    subprocess.run([compiler, *_SANITIZE, *objects, *link, "-o", str(program)], check=True)
    return program


def corpus(target: str) -> list[bytes]:
    """Inputs kept in the repository, one a line as Python writes bytes, each for what no other one reaches."""
    path = HERE / "corpus" / f"{target}.txt"
    return [ast.literal_eval(line) for line in path.read_text().splitlines()] if path.exists() else []


def written(texts: list[bytes], folder: Path) -> list[str]:
    """Inputs as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number:04}").write_bytes(text)
    return [str(folder / f"{number:04}") for number in range(len(texts))]


def main() -> int:
    """Build and run all of them; the status of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--libfuzzer", action="store_true")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    options = parser.parse_args()
    if not options.targets:
        here = find_spec("atheris") is not None
        options.targets = [*NATIVE, *(PYTHON if here else ())]
        if not here:
            print(f"Atheris is not installed: fuzzing {', '.join(NATIVE)}, and not {', '.join(PYTHON)}", flush=True)
    if unknown := set(options.targets) - {*NATIVE, *PYTHON}:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    seconds = max(options.seconds // len(options.targets), 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        native = [target for target in options.targets if target in NATIVE]
        program = build(folder, libfuzzer=options.libfuzzer) if native else folder
        for target in options.targets:
            chance = random.Random(options.seed)
            drawn = [chance.randbytes(200) for _ in range(4)] if target in PYTHON else []
            files = written(corpus(target) + drawn, folder / target)
            kept = [str(options.corpus / target if options.corpus else folder / target), str(folder / target)]
            guided = [f"-max_total_time={seconds}", f"-seed={options.seed}", f"-max_len={_LARGEST}", "-timeout=20"]
            guided += [f"-artifact_prefix={target}.crash.", "-print_final_stats=1", "-verbosity=1", *kept]
            Path(kept[0]).mkdir(parents=True, exist_ok=True)
            if target in PYTHON:
                # They are too slow for inputs that begin with one byte and grow; Atheris itself loses 0.3 MB a run.
                own = ["-len_control=0", "-rss_limit_mb=8192"]
                commands = [[sys.executable, str(HERE / "readers.py"), target, *own, *guided]]
            elif options.libfuzzer:
                commands = [[str(program), *guided]]
            else:
                commands = [
                    [str(program), target, *more, *files]
                    for more in (["allocations"], [str(seconds), str(options.seed)])
                ]
            for command in commands:
                done = subprocess.run(command, env=os.environ | {"FUZZ_TARGET": target}, check=False)
                if done.returncode:
                    print(f"{target}: failed with status {done.returncode}, see {target}.crash* here")
                    return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
