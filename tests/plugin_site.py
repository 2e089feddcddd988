"""Distributions with plug-ins, laid out as pip installs them, for tests to put on the path."""

from __future__ import annotations

import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze import plugins
from traceanalyze.rules.registry import every_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLE = Path(__file__).parent / "example_plugin"

Entries = dict[str, dict[str, str]]
"""Group → name of the entry point → what it names."""


@contextmanager
def installed(folder: Path, entries: Entries, modules: Mapping[str, str] | None = None) -> Iterator[None]:
    """A distribution with these entry points and modules, while the context lasts."""
    site = folder / "site"
    about = site / "acme_tools-1.0.dist-info"
    about.mkdir(parents=True)
    for name, text in (modules or {}).items():
        (site / f"{name}.py").write_text(text)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n")
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in names.items())])
        for group, names in entries.items()
    )
    (about / "entry_points.txt").write_text("\n\n".join(sections))
    sys.path[:0] = [str(site)]
    _look_up_anew()
    try:
        yield
    finally:
        sys.path.remove(str(site))
        for name in [*(modules or {}), *(name for name in sys.modules if name.partition(".")[0] == "acme_trace")]:
            sys.modules.pop(name, None)
        _look_up_anew()


@contextmanager
def example(folder: Path) -> Iterator[None]:
    """The example package, with the entry points that its own `pyproject.toml` states."""
    stated: Entries = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    sys.path[:0] = [str(EXAMPLE)]
    try:
        with installed(folder, stated):
            yield
    finally:
        sys.path.remove(str(EXAMPLE))


def _look_up_anew() -> None:
    plugins.found.cache_clear()
    every_rule.cache_clear()
