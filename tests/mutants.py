"""Do the tests hold what the code promises? Changes the package in one small place at a time and runs its tests.

    python -m tests.mutants                          200 random mutants
    python -m tests.mutants rules regression         of these folders of the package only
    python -m tests.mutants --seed 7 --count 50      others, fewer

A mutant is a comparison (`>` becomes `>=`), a calculation (`+` becomes `-`), a boundary (a number becomes one more), a
logical operator or a returned value that is changed; annotations, texts and declarations of columns stay as they are.
Each runs in a copy of the checkout against the tests of the folder that mirrors its own, those named after its module
first, until one fails. Survivors are listed with what was changed. `_EQUIVALENT` names those that no test can tell
apart from the original, each with the reason; they do not count.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "traceanalyze"
_LIMIT_S = 600
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
_DECLARATIONS = {"Column", "declare", "regex", "TypeVar"}
_EQUIVALENT: dict[str, str] = {}
"""`file: before → after` of a mutant → why nothing can tell it from the original."""


class Mutant(NamedTuple):
    """One change: file, place and the text there before and after."""

    file: Path
    start: int
    end: int
    line: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What it is, for lists."""
        return f"{self.file}: {_short(self.before)} → {_short(self.after)}"


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
        after = ast.unparse(changed)
        yield Mutant(
            file, start, end, node.lineno, before, after if isinstance(changed, ast.Constant) else f"({after})"
        )


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


def tests_of(file: Path) -> list[str]:
    """Tests of the folder that mirrors the module's, those that name or import the module first."""
    room = file.parts[1]
    folder = ROOT / "tests" / room
    found = sorted(folder.rglob("test_*.py")) if folder.is_dir() else sorted((ROOT / "tests").glob("test_*.py"))
    module = ".".join(file.with_suffix("").parts)
    stem = file.stem

    def distance(test: Path) -> tuple[bool, bool]:
        text = test.read_text(encoding="utf-8")
        return stem not in test.stem and test.stem.removeprefix("test_") not in stem, module not in text

    return [str(test.relative_to(ROOT)) for test in sorted(found, key=distance)]


def survives(mutant: Mutant, copy: Path) -> bool:
    """Whether all tests of its folder pass with it, in a copy of the checkout."""
    path = copy / mutant.file
    original = path.read_bytes()
    path.write_bytes(original[: mutant.start] + mutant.after.encode() + original[mutant.end :])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        *tests_of(mutant.file),
    ]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    else:
        return done.returncode == 0
    finally:
        path.write_bytes(original)


def copy_to(folder: Path) -> Path:
    """The checkout where modules can be changed; samples are linked."""
    for name in (PACKAGE, "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("sample_traces", "pyproject.toml", "README.md", "README.zh-CN.md"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Make mutants, run them, say what survived."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rooms", nargs="*", help="folders of the package; all without")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    files = [path.relative_to(ROOT) for path in sorted((ROOT / PACKAGE).rglob("*.py")) if "locales" not in path.parts]
    files = [path for path in files if not chosen.rooms or path.parts[1] in chosen.rooms]
    every = [mutant for file in files for mutant in mutants_of(file) if mutant.name not in _EQUIVALENT]
    picked = random.Random(chosen.seed).sample(every, min(chosen.count, len(every)))
    killed, made = Counter[str](), Counter(mutant.file.parts[1] for mutant in picked)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        copies: Queue[Path] = Queue()
        for job in range(chosen.jobs):
            (Path(folder) / str(job)).mkdir()
            copies.put(copy_to(Path(folder) / str(job)))

        def run(mutant: Mutant) -> tuple[Mutant, bool]:
            copy = copies.get()
            try:
                return mutant, survives(mutant, copy)
            finally:
                copies.put(copy)

        for mutant, alive in pool.map(run, picked):
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
