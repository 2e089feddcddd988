"""Error texts for paths that lead nowhere: what was found instead, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.ascend.strays import stray_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NAMES_SHOWN = 3
_ASCEND = (
    "an Ascend profile has ASCEND_PROFILER_OUTPUT with trace_view.json or a database; "
    "torch_npu.profiler.profiler.analyse makes them"
)


def not_found(path: Path) -> InputError:
    """A path that does not exist: names the nearest one that does."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return InputError(f"{path}: no such file, nor is there a folder {path.parent}")
    # Imported here: most inputs are there.
    from difflib import get_close_matches

    near = get_close_matches(path.name, names, 1)
    hint = f"; did you mean {path.with_name(near[0])}?" if near else ""
    return InputError(f"{path}: no such file or folder{hint}")


def no_permission(name: str) -> InputError:
    """A path that may not be read."""
    return InputError(f"{name}: no permission to read it; run `chmod u+rX` or ask its owner")


def nothing_found(place: str, what: str, ignored: Sequence[str]) -> InputError:
    """A folder, archive or glob without a trace: says what it holds instead."""
    if not ignored:
        found = "no file matches" if what == "glob" else f"there is no file in this {what}"
        return InputError(f"{place}: {found}; give the trace export_chrome_trace wrote")
    names = ", ".join(ignored[:_NAMES_SHOWN]) + (", …" if len(ignored) > _NAMES_SHOWN else "")
    count = "1 file, not a trace" if len(ignored) == 1 else f"{len(ignored):,} files, none of them a trace"
    told = _ASCEND if _looks_ascend(place, *ignored) else stray_of(name.partition(" (")[0] for name in ignored)
    ascend = f"; {told}" if told else ""
    return InputError(f"{place}: no trace in this {what}: {count}: {names}{ascend}")


def _looks_ascend(*names: str) -> bool:
    return any("ascend_p" in name.lower() for name in names)
