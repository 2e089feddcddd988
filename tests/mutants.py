"""Do the tests hold what the code promises? Changes the package in one small place at a time and runs its tests.

    python -m tests.mutants                          200 random mutants
    python -m tests.mutants rules analyses/memory    of these folders of the package only
    python -m tests.mutants --seed 7 --count 50      others, fewer
    python -m tests.mutants rules --near             only the tests that name the module: quick, fewer are killed

A mutant is a comparison (`>` becomes `>=`), a calculation (`+` becomes `-`), a boundary (a number becomes one more), a
logical operator or a returned value that is changed; annotations, texts and declarations of columns stay as they are.
Each runs in a copy of the checkout against the tests of the folder that mirrors its own, until one fails: first those
that name its module or its rule, or whose cases do. Survivors are listed with what was changed. `equivalents.txt`
names those that no test can tell apart from the original, each with the reason; they do not count.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "traceanalyze"
_LIMIT_S, _TEST_CPU_S, _MEMORY = 900, 60, 8 << 30
"""For all tests of a mutant, for one test, and bytes: one that needs more is killed."""
_RULE = re.compile(r'^@rule\(\s+"([A-Z]{3}\d{3})"', re.MULTILINE)
_CONTEXT = multiprocessing.get_context("forkserver")
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_DECLARATIONS = {"Column", "declare", "regex", "TypeVar", "lru_cache"}
_ALSO = {"pipeline": ("cli", "causes", "regression")}
"""Rooms whose tests hold another room's promises too: what a pipeline does is seen where it is called."""
_WHOLE = {"report": "test_pictures.py"}
"""Tests that hold most of a room at once: they run with those that name the module."""
EQUIVALENTS = Path(__file__).with_name("equivalents.txt")
"""Mutants that nothing can tell from the original, each by its file and the changed line, after the reason."""


class Mutant(NamedTuple):
    """One change: file, place and the text there before and after."""

    file: Path
    start: int
    end: int
    line: int
    before: str
    after: str
    text: str
    """The changed lines in one."""

    @property
    def name(self) -> str:
        """What it is, for the list of equivalents."""
        return f"{self.file}: {self.text}"


def equivalents() -> dict[str, str]:
    """Names of mutants that no test can kill → why."""
    found, reason = {}, ""
    for line in EQUIVALENTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line:
            found[line] = reason
    return found


def _short(text: str) -> str:
    return " ".join(text.split())


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All that can be made of a module of the package."""
    source = (ROOT / file).read_text(encoding="utf-8")
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, changed in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = data[start:end].decode()
        after = ast.unparse(changed) if isinstance(changed, ast.Constant) else f"({ast.unparse(changed)})"
        first, last = starts[node.lineno - 1], starts[node.end_lineno or node.lineno]
        text = _short(data[first:start].decode() + after + data[end:last].decode())
        yield Mutant(file, start, end, node.lineno, before, after, text)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions below a node, each with what takes its place."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_declaration(child):
                continue
            if isinstance(child, ast.expr):
                yield from ((child, changed) for changed in _changed(child))
            if isinstance(child, ast.Return) and child.value is not None and not _is_none(child.value):
                yield child.value, ast.Constant(None)
            yield from _changes(child)


def _is_declaration(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DECLARATIONS


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            ops = [*node.ops[:at], _SWAPS[type(operator)](), *node.ops[at + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)  # type: ignore[arg-type]
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPS and not _is_text(node):
        yield ast.BinOp(node.left, _SWAPS[type(node.op)](), node.right)  # type: ignore[arg-type]
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(_SWAPS[type(node.op)](), node.values)  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        yield ast.Constant(node.value + 1)


def _is_text(node: ast.BinOp) -> bool:
    """Texts put together, or types of an alias."""
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | None))
        for side in sides
    )


def words_of(file: Path) -> tuple[str, ...]:
    """What tests of a module name: ids of the rules in it, or in the modules that import it; its name and path."""
    module = ".".join(file.with_suffix("").parts)
    ids = _RULE.findall((ROOT / file).read_text(encoding="utf-8"))
    if not ids and "rules" in file.parts:
        folder = (ROOT / PACKAGE / "rules").rglob("*.py")
        importers = (text for path in folder if f"from {module} import" in (text := path.read_text(encoding="utf-8")))
        ids = [code for text in importers for code in _RULE.findall(text)]
    return (*ids, module, f"test_{file.stem}.py")


def tests_of(file: Path) -> tuple[list[str], list[str]]:
    """Tests of the folder that mirrors the module's: those that name it, or whose cases do, and the others."""
    folders = [ROOT / "tests" / room for room in (file.parts[1], *_ALSO.get(file.parts[1], ()))]
    tests = sorted(test for folder in folders for test in folder.rglob("test_*.py"))
    tests = tests or sorted((ROOT / "tests").glob("test_*.py"))
    words = words_of(file)

    def names_it(test: Path) -> bool:
        texts = [test, *(test.parent.rglob("*cases*.py") if test.stem == "test_cases" else ())]
        if test.name in {*words, _WHOLE.get(file.parts[1])}:
            return True
        return any(word in each.read_text(encoding="utf-8") for each in texts for word in words)

    near = [test for test in tests if names_it(test)]
    found = near, [test for test in tests if test not in near]
    return tuple([str(test.relative_to(ROOT)) for test in side] for side in found)  # type: ignore[return-value]


class _NearestFirst:
    """A plug-in of pytest: tests whose name has a word run first, and each has a limit of its own."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: not any(word in item.nodeid for word in self.words))

    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, _TEST_CPU_S)


def judge(copy: Path, words: tuple[str, ...], runs: Sequence[Sequence[str]]) -> None:
    """Run tests of a copy of the checkout in this process, until one fails; it ends with 1 if one did."""
    import pytest

    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy), "TRACEANALYZE_PINS": "all", "TRACEANALYZE_EXAMPLES": "1"}
    for name in [name for name in sys.modules if name.partition(".")[0] in {PACKAGE, "tests"}]:
        del sys.modules[name]
    sys.path[:] = [str(copy), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    sys.dont_write_bytecode = True
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGPROF, lambda *_: os._exit(1))
    options = ("-x", "-q", "--no-header", "-p", "no:cacheprovider")
    for tests in runs:
        if tests and pytest.main([*options, *tests], plugins=[_NearestFirst(words)]) != 0:
            os._exit(1)
    os._exit(0)


def passes(copy: Path, file: Path, *, near: bool) -> bool:
    """Whether all tests of a module's folder pass in a copy of the checkout; with `near` those that name it."""
    runs = tests_of(file)
    process = _CONTEXT.Process(target=judge, args=(copy, words_of(file), runs[:1] if near else runs))
    process.start()
    process.join(_LIMIT_S)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode == 0


def survives(mutant: Mutant, copy: Path, *, near: bool) -> bool:
    """Whether all tests pass with it."""
    path = copy / mutant.file
    original, times = path.read_bytes(), path.stat()
    path.write_bytes(original[: mutant.start] + mutant.after.encode() + original[mutant.end :])
    try:
        return passes(copy, mutant.file, near=near)
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def copy_to(folder: Path) -> Path:
    """The checkout where modules can be changed, compiled; samples are linked."""
    for name in (PACKAGE, "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(folder / name, quiet=1)
    for name in ("sample_traces", "pyproject.toml", "README.md", "README.zh-CN.md"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Make mutants, run them, say what survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", help="folders or modules of the package; all without")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--near", action="store_true", help="only the tests that name the module")
    parser.add_argument("--unproved", action="store_true", help="take for granted that tests pass without a change")
    chosen = parser.parse_args(arguments)
    files = [path.relative_to(ROOT) for path in sorted((ROOT / PACKAGE).rglob("*.py")) if "locales" not in path.parts]
    rooms = [Path(PACKAGE, room) for room in chosen.rooms or ("",)]
    files = [path for path in files if any(path.is_relative_to(room) for room in rooms)]
    every = [mutant for file in files for mutant in mutants_of(file)]
    alike = equivalents()
    every = [mutant for mutant in every if mutant.name not in alike]
    picked = random.Random(chosen.seed).sample(every, min(chosen.count, len(every)))
    killed, made = Counter[str](), Counter(mutant.file.parts[1] for mutant in picked)
    _CONTEXT.set_forkserver_preload(["pytest", "numpy"])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        if (ROOT.parent / "shared").exists():
            (Path(folder) / "shared").symlink_to(ROOT.parent / "shared")
        copies: Queue[Path] = Queue()
        for job in range(chosen.jobs):
            copies.put(copy_to(Path(folder) / str(job)))

        def run(mutant: Mutant | Path) -> bool:
            copy = copies.get()
            try:
                if isinstance(mutant, Path):
                    return passes(copy, mutant, near=chosen.near)
                return survives(mutant, copy, near=chosen.near)
            finally:
                copies.put(copy)

        # Without this, tests that always fail would kill everything.
        proofs = {} if chosen.unproved else {mutant.file.parts[1]: mutant.file for mutant in picked}
        for room, passed in zip(proofs, pool.map(run, proofs.values()), strict=True):
            if not passed:
                sys.exit(f"{room}: tests fail without any change")
        for mutant, alive in zip(picked, pool.map(run, picked), strict=True):
            killed[mutant.file.parts[1]] += not alive
            if alive:
                print(
                    f"survived  {mutant.file}:{mutant.line}: {_short(mutant.before)} → {_short(mutant.after)}",
                    flush=True,
                )
    for room, count in sorted(made.items()):
        print(f"{room:16} {killed[room]:4} of {count:4} killed  {killed[room] / count:.0%}")
    print(f"{'all':16} {killed.total():4} of {len(picked):4} killed  {killed.total() / max(len(picked), 1):.0%}")


if __name__ == "__main__":
    main()
