"""No module is in a circle of imports, those for types included."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import traceanalyze

ROOT = Path(traceanalyze.__file__).parent


def imported() -> dict[str, set[str]]:
    """Modules of the package and those that each imports."""
    modules = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in ROOT.rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        full = {
            (each.module, f"{each.module}.{alias.name}")
            for each in nodes
            if isinstance(each, ast.ImportFrom) and each.module
            for alias in each.names
        }
        found[name] = {inner if inner in modules else outer for outer, inner in full} & modules.keys() - {name}
    return found


def test_imports_have_no_circles() -> None:
    graph = imported()
    assert len(graph) > 300
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_modules_are_reached_by_their_names() -> None:
    code = (
        "import traceanalyze, traceanalyze.regression.verdict as v, traceanalyze.pipeline.gate, "
        "traceanalyze.pipeline.memory, traceanalyze.recording.options; "
        "assert v.__name__ == 'traceanalyze.regression.verdict'; "
        "assert traceanalyze.regression.verdict is v; "
        "assert all(type(getattr(traceanalyze, each)).__name__ == 'function' "
        "for each in ('analyze', 'compare', 'gate', 'load', 'load_runs', 'memory', 'postmortem')); "
        "assert traceanalyze.record.__module__ == 'traceanalyze.recording.context'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_package_is_named_like_something_public() -> None:
    packages = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert not packages & set(traceanalyze.__all__)
