"""Which files make the profile of one rank: `*_ascend_pt`, its ASCEND_PROFILER_OUTPUT, or a file of it by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

OUTPUT = "ASCEND_PROFILER_OUTPUT"
TIMELINE = "trace_view.json"
_DATABASE = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(?:_(\d+))?\.db")
_INFO = re.compile(r"profiler_info(?:_(\d+))?\.json")
_TABLES = frozenset({"kernel_details.csv", "operator_details.csv", "step_trace_time.csv", "operator_memory.csv"})
_RAW = re.compile(r"FRAMEWORK|PROF_\w+")


@dataclass(frozen=True, slots=True)
class Profile:
    """The files of one rank; None for those that are not there."""

    folder: Path
    """What a user calls the profile: the rank's folder, else its output folder, else the bare file."""
    output: Path | None
    """Folder of the exported tables."""
    timeline: Path | None = None
    """trace_view.json, possibly .gz."""
    database: Path | None = None
    info: Path | None = None
    metadata: Path | None = None

    @property
    def main(self) -> Path | None:
        """The file to read: the timeline, else the database. Both describe the same run."""
        return self.timeline or self.database

    def table(self, name: str) -> Path | None:
        """A file of the output folder, None where it is missing."""
        found = None if self.output is None else self.output / name
        return found if found is not None and found.is_file() else None


def profile_at(folder: Path) -> Profile | None:
    """The profile whose folder or output folder this is; None for any other folder.

    Raises:
        InputError: It is one that cannot be used, because it was never analysed or holds no timeline.
    """
    names = _names(folder)
    if OUTPUT in names and (folder / OUTPUT).is_dir():
        return _usable(_profile(folder, folder / OUTPUT, names))
    if TIMELINE in names or f"{TIMELINE}.gz" in names or any(map(_DATABASE.fullmatch, names)):
        above = _names(folder.parent) if folder.name == OUTPUT else ()
        if not _is_output(folder, names):
            return None
        return _usable(_profile(folder, folder, names, above))
    if any(map(_INFO.fullmatch, names)) and any(map(_RAW.fullmatch, names)):
        raise InputError(
            f"{folder}: this Ascend profile was never analysed; run "
            f"`python -c \"from torch_npu.profiler.profiler import analyse; analyse('{folder}')\"` and try again"
        )
    if folder.name == OUTPUT and _TABLES & set(names):
        return _usable(_profile(folder, folder, names, _names(folder.parent)))
    return None


def profile_of(path: Path, *, database: bool = False) -> Profile:
    """The profile that a bare timeline or database belongs to: with the files beside it if they are of a profile."""
    names = _names(path.parent)
    beside = _is_output(path.parent, names)
    above = _names(path.parent.parent) if beside and path.parent.name == OUTPUT else ()
    found = _profile(path, path.parent, names, above) if beside else Profile(path, None)
    return Profile(
        folder=path,
        output=found.output,
        timeline=None if database else path,
        database=path if database else None,
        info=found.info,
        metadata=found.metadata,
    )


def _is_output(folder: Path, names: Sequence[str]) -> bool:
    return folder.name == OUTPUT or bool(_TABLES & set(names)) or any(map(_DATABASE.fullmatch, names))


def _profile(folder: Path, output: Path, names: Sequence[str], above: Sequence[str] = ()) -> Profile:
    """Files found; those about the profile lie beside the output folder, or in it when a user moved them."""
    exported = names if output == folder else _names(output)
    timeline = next((output / name for name in (TIMELINE, f"{TIMELINE}.gz") if name in exported), None)
    databases = sorted(name for name in exported if _DATABASE.fullmatch(name))
    places = ((output.parent, above), (output, exported)) if output == folder or above else ((folder, names),)
    infos = [place / name for place, known in places for name in sorted(known) if _INFO.fullmatch(name)]
    metadata = [place / "profiler_metadata.json" for place, known in places if "profiler_metadata.json" in known]
    return Profile(
        folder=folder,
        output=output,
        timeline=timeline,
        database=output / databases[0] if databases else None,
        info=infos[0] if infos else None,
        metadata=metadata[0] if metadata else None,
    )


def _usable(profile: Profile) -> Profile:
    if profile.main is None:
        held = ", ".join(sorted(_names(profile.output))[:3]) if profile.output is not None else ""
        what = f"it holds only {held}, …" if held else "its output folder is empty"
        raise InputError(
            f"{profile.folder}: this Ascend profile has neither {TIMELINE} nor a database, {what}; "
            "analyse it again (torch_npu.profiler.profiler.analyse), or copy all of it"
        )
    return profile


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(entry.name for entry in folder.iterdir())
    except OSError:
        return ()


def rank_of_name(names: Iterable[str]) -> int | None:
    """Rank in the name of a `profiler_info_<r>.json` or a database; None where there is none."""
    for name in names:
        found = _INFO.fullmatch(name) or _DATABASE.fullmatch(name)
        if found and found[1]:
            return int(found[1])
    return None
