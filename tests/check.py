"""Lint, types, import contracts and the tests of what has changed since `main`: `python -m tests.check`."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINT = (("ruff", "check"), ("ruff", "format", "--check"), ("mypy",), ("lint-imports",))
EVERYTHING = frozenset({"pyproject.toml", "conftest.py"})
"""Names of files on which all tests of their folder depend."""


def changed_since(base: str | None) -> set[str]:
    """Files that differ from where this branch left `base` (`main` where none is named), new ones included.

    Raises:
        LookupError: This is no git checkout, or `base` is no commit.
    """
    for name in [base] if base else ["origin/main", "main", "HEAD"]:
        left = _git("merge-base", name, "HEAD")
        if left is not None:
            differ = _git("diff", "--name-only", "--no-renames", "-z", left.strip()) or ""
            new = _git("ls-files", "--others", "--exclude-standard", "-z") or ""
            return {path for path in (differ + new).split("\0") if path}
    raise LookupError(base or "HEAD")


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def sources() -> dict[str, str]:
    """Path → text of every Python file of the tests."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("*.py"))
    }


def tests_of(changed: Collection[str], texts: Mapping[str, str]) -> list[str]:
    """Tests of changed files; all where these are more than half of them.

    Of a module: the tests of the folder that mirrors its own, and those that import or name it. Of a test: itself. What
    tests share (builders, cases) is a module like any other, and so is what imports it.
    """
    tests = [path for path in texts if is_test(path)]
    known, left = set[str](), list(changed)
    while left:
        path = left.pop()
        if path not in known:
            known.add(path)
            if not is_test(path):
                left += [*beside(path, tests), *naming(path, texts)]
    chosen = [path for path in tests if path in known]
    return tests if 2 * len(chosen) > len(tests) else chosen


def is_test(path: str) -> bool:
    """Whether pytest collects it."""
    return path.startswith("tests/") and Path(path).name.startswith("test_")


def beside(path: str, tests: Iterable[str]) -> list[str]:
    """Tests of the folder that mirrors the file's own, or the next one above that has tests."""
    folder, name = Path(path).parent, Path(path).name
    if name in EVERYTHING:
        above = "tests" if folder == Path() else str(folder)
        return [test for test in tests if test.startswith(f"{above}/")]
    if folder.parts[:1] not in (("traceanalyze",), ("tests",)):
        return []
    mirror = Path("tests", *folder.parts[1:])
    while mirror != Path("tests"):
        single = f"{mirror.parent}/test_{mirror.name}.py"
        found = [test for test in tests if Path(test).parent == mirror or test == single]
        if found:
            return found
        mirror = mirror.parent
    return [test for test in tests if test == f"tests/test_{Path(name).stem}.py"]


def naming(path: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Files of the tests that import the file or name it."""
    pattern = re.compile("|".join(names(Path(path))))
    return (each for each, text in texts.items() if each != path and pattern.search(text))


def names(path: Path) -> Iterator[str]:
    """Patterns of how tests speak of a file: a module by its import or its words, a rule by its id, others by name."""
    if path.parts[0] == "sample_traces":
        yield rf"\b{re.escape(path.parts[1])}\b"
    elif path.suffix != ".py":
        yield rf"(?<!\w){re.escape(path.name if path.suffix else str(path))}\b"
    else:
        parts = path.with_suffix("").parts
        *package, stem = parts[:-1] if parts[-1] == "__init__" else parts
        yield rf"\b{'.'.join((*package, stem))}\b"
        yield rf"\bfrom {'.'.join(package)} import [^\n]*\b{stem}\b"
        if "_" in stem.strip("_"):
            yield rf"\b{stem.replace('_', '[-_]')}\b"
        if path.is_relative_to("traceanalyze/rules") and (ROOT / path).exists():
            yield from re.findall(r'@rule\(\s*"(\w+)"', (ROOT / path).read_text(encoding="utf-8"))


def run(*command: str) -> bool:
    """Run a tool of this environment, telling what and how long; whether it passed."""
    print(f"\n$ {' '.join(command)}", flush=True)
    beside_python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    tool = shutil.which(command[0], path=beside_python)
    begin = time.monotonic()
    passed = tool is not None and subprocess.run([tool, *command[1:]], cwd=ROOT, check=False).returncode == 0
    print(f"{'passed' if passed else 'FAILED' if tool else 'NOT INSTALLED'} in {time.monotonic() - begin:.0f} s")
    return passed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, whatever fails; 1 if something did."""
    parser = argparse.ArgumentParser(prog="python -m tests.check", description=__doc__)
    parser.add_argument("--since", metavar="COMMIT", help="what counts as changed: the difference to it (main)")
    parser.add_argument("--all", action="store_true", help="all tests")
    parser.add_argument("--list", action="store_true", help="only list the tests that would run")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="processes for tests")
    chosen = parser.parse_args(arguments)
    texts = sources()
    try:
        changed = changed_since(chosen.since)
    except LookupError as error:
        parser.error(f"{error} is no commit of a git checkout")
    every = [path for path in texts if is_test(path)]
    tests = every if chosen.all else tests_of(changed, texts)
    print(f"{len(changed)} files changed, {len(tests)} of {len(every)} files of tests" + (":" if tests else ""))
    if len(tests) < len(every):
        print("\n".join(f"  {test}" for test in tests))
    if chosen.list:
        return 0
    passed = [run(*command) for command in LINT]
    if tests:
        which = tests if len(tests) < len(every) else ["tests"]
        passed.append(run("pytest", "-q", "-n", str(chosen.jobs), *which))
    print("\nall passed" if all(passed) else "\nnot all passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
