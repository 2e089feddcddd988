"""Which files make the profile of one rank: `*_ascend_pt`, its ASCEND_PROFILER_OUTPUT, or a file of it by itself."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.patterns import regex
from traceanalyze.readers.header import process_names
from traceanalyze.readers.scan.result import Scan

OUTPUT = "ASCEND_PROFILER_OUTPUT"
TIMELINE = "trace_view.json"
KERNELS, SUMS = "kernel_details.csv", "step_trace_time.csv"
_DATABASE = regex(
    r"ascend_(?:pytorch|mindspore)_profiler(?:_(?P<rank>\d+))?\.db|msmonitor_\d+_\d+_(?:-1|(?P<monitored>\d+))\.db"
    r"|msprof_\d+\.db"
)
"""Databases of torch_npu, MindSpore, msMonitor and msprof; the rank where the name has it."""
_INFO = regex(r"profiler_info(?:_(\d+))?\.json")
_TABLES = frozenset({"kernel_details.csv", "operator_details.csv", "step_trace_time.csv", "operator_memory.csv"})
_BESIDE_SUMS = frozenset({KERNELS, "communication.json", "communication_matrix.json"})
"""Each of these beside step_trace_time.csv makes any folder a profile."""
_RAW = regex(r"FRAMEWORK|PROF_\w+")
_DEVICE = regex(r"host|device_\d+")
_MSPROF = regex(
    r"(?P<kind>msprof|hccl|task_time|step_trace)_"
    r"(?:slice_(?P<slice>\d{1,9})_\d+|(?P<device>\d{1,4})(?:_\d{1,9})?_(?P<iteration>\d{1,9}))\.json"
)
"""Timelines that msprof exports, one an iteration or in slices; msprof_* holds what the others hold one by one."""
_SUMMARY = regex(r"op_summary_\w+\.csv")


class Profile(NamedTuple):
    """The files of one rank; None for those that are not there."""

    folder: Path
    """What a user calls the profile: the rank's folder, else its output folder, else the bare file."""
    output: Path | None
    """Folder of the exported tables."""
    timeline: Path | None = None
    """trace_view.json, possibly .gz."""
    database: Path | None = None
    info: Path | None = None
    others: tuple[Path, ...] = ()
    """Databases beside the timeline that are not of its rank, or whose rank is unknown."""
    infos: tuple[Path, ...] = ()
    """All of its kind, where several ranks share a folder."""
    metadata: Path | None = None
    more: tuple[Path, ...] = ()
    """Files that go on with the timeline."""
    summaries: tuple[Path, ...] = ()
    """What msprof exports in place of the table of kernels, one an iteration or in slices."""

    @property
    def main(self) -> Path | None:
        """The file to read: the timeline, else the database, which describe the same run, else a table."""
        return self.timeline or self.database or self.table(KERNELS) or self.table(SUMS)

    def table(self, name: str) -> Path | None:
        """A file of the output folder, None where it is missing."""
        found = None if self.output is None else self.output / name
        return found if found is not None and found.is_file() else None


def profile_at(folder: Path) -> Profile | None:
    """The profile whose folder or output folder this is; None for any other folder.

    One with several databases and no timeline is none: its databases are the profiles, one a rank. Beside a timeline
    those of other ranks are profiles, too (`others`); beside the folders of ranks each file is one by itself.

    Raises:
        InputError: It is one that cannot be used, because it was never analysed or holds no timeline.
    """
    names = _names(folder)
    if OUTPUT in names and (folder / OUTPUT).is_dir():
        several = _several(_names(folder / OUTPUT))
        return None if several else _usable(_profile(folder, folder / OUTPUT, names))
    if _has_timeline(names) or any(map(is_database, names)):
        of_ranks = any((folder / name / OUTPUT).is_dir() for name in names)
        if _several(names) or of_ranks or not _is_output(folder, names):
            return None
        above = _names(folder.parent) if folder.name == OUTPUT else ()
        return _usable(_profile(folder, folder, names, above))
    for place in (folder, folder / "timeline"):
        if parts := _parts(_names(place)):
            first, *more = (place / name for name in parts)
            return Profile(folder, None, timeline=first, more=tuple(more), summaries=_summaries(folder))
    if _is_raw(folder, names):
        raise InputError(
            "{folder}: this is what msprof recorded, not exported yet; run `msprof --export=on --output={folder}` and "
            "try again (of torch_npu: `{command}`, for the *_ascend_pt folder that it lies in)",
            folder,
            _remedy(folder.parent),
        )
    raw = sum(map(bool, map(_RAW.fullmatch, names)))
    if raw and (any(map(_INFO.fullmatch, names)) or ("FRAMEWORK" in names and raw > 1)):
        raise InputError(
            "{folder}: this Ascend profile was never analysed; run `{command}` and try again", folder, _remedy(folder)
        )
    if _TABLES & set(names) and (folder.name == OUTPUT or (SUMS in names and _BESIDE_SUMS & set(names))):
        above = _names(folder.parent) if folder.name == OUTPUT else ()
        return _usable(_profile(folder, folder, names, above))
    return None


def _parts(names: Iterable[str]) -> list[str]:
    """Timelines of msprof that together are the recording of one device, in order; none where some are missing."""
    found = [match for name in names if (match := _MSPROF.fullmatch(name))]
    kinds = {match["kind"] for match in found}
    wanted = {"msprof"} if "msprof" in kinds else kinds if {"hccl", "task_time"} <= kinds else set()
    used = sorted((int(match["iteration"] or match["slice"]), match[0]) for match in found if match["kind"] in wanted)
    return [name for _, name in used] if len({match["device"] for match in found}) == 1 else []


def _summaries(folder: Path) -> tuple[Path, ...]:
    """Tables of kernels that msprof exports: beside the timelines, or in a folder beside theirs."""
    places = (folder, folder / "summary", folder.parent / "summary")
    found = (tuple(place / name for name in sorted(_names(place)) if _SUMMARY.fullmatch(name)) for place in places)
    return next(filter(None, found), ())


def reads_above(folder: Path) -> bool:
    """Whether a folder is a part of a profile, about which files beside or above it tell more."""
    tables = {each.parent for each in _summaries(folder)}
    return folder.name == OUTPUT or (bool(_parts(_names(folder))) and folder.parent / "summary" in tables)


def _is_raw(folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder is a recording of msprof from which nothing was exported."""
    parts = [name for name in names if _DEVICE.fullmatch(name)]
    exported = "mindstudio_profiler_output" in names or any(map(is_database, names))
    exported |= any((folder / part / kind).is_dir() for part in parts for kind in ("timeline", "summary"))
    return folder.name.startswith("PROF_") and bool(parts) and not exported


def _has_timeline(names: Sequence[str]) -> bool:
    return TIMELINE in names or f"{TIMELINE}.gz" in names


def _several(names: Sequence[str]) -> bool:
    return not _has_timeline(names) and sum(map(is_database, names)) > 1


def is_database(name: str) -> bool:
    """Whether a file is named as the database of a profile."""
    return _DATABASE.fullmatch(name) is not None


def _remedy(folder: Path) -> str:
    """The command that analyses a profile; that of MindSpore takes the folder above."""
    if folder.name.endswith("_ascend_ms"):
        return f"python -c \"from mindspore.profiler.profiler import analyse; analyse('{folder.parent}')\""
    return f"python -c \"from torch_npu.profiler.profiler import analyse; analyse('{folder}')\""


def profile_of(path: Path, *, database: bool = False) -> Profile:
    """The profile that a bare timeline or database belongs to: with the files beside it if they are of a profile."""
    names = _names(path.parent)
    beside = _is_output(path.parent, names)
    above = _names(path.parent.parent) if beside and path.parent.name == OUTPUT else ()
    found = _profile(path.parent, path.parent, names, above) if beside else Profile(path, None)
    # Tables beside a timeline are of its rank: none of a database of another one.
    stranger = database and found.timeline is not None and path.name in {other.name for other in found.others}
    return Profile(
        folder=path,
        output=None if stranger else found.output,
        timeline=None if database else path,
        database=path if database else found.database,
        info=_info_of_rank(found.infos, path.name) if database else found.info,
        metadata=found.metadata,
    )


def around(file: Path, folder: Path | None) -> tuple[Path, ...]:
    """Folders outside that of a profile whose files may tell more about its main file; none for most traces."""
    if folder is not None:
        return (folder.parent if folder.name == OUTPUT else folder.parent / "summary",)
    # Not by all names: many ranks may lie in one folder.
    known = file.suffix == ".db" or file.name.startswith(TIMELINE) or file.parent.name == OUTPUT
    known = known or any((file.parent / name).exists() for name in _TABLES)
    return (file.parent, file.parent.parent) if known else ()


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
    ranks = {rank for info in infos if (rank := rank_of_name([info.name])) is not None}
    if timeline is None:
        own: Sequence[str] = databases[:1]
        info = _info_of_rank(infos, own[0]) if own else next(iter(infos), None)
    else:
        own = _beside_timeline(databases, ranks)
        # With files of several ranks, the rank of the timeline is unknown.
        info = infos[0] if infos and len(ranks) < 2 else None
    return Profile(
        folder=folder,
        output=output,
        timeline=timeline,
        database=output / own[0] if own else None,
        others=tuple(output / name for name in databases if name not in own),
        info=info,
        infos=tuple(infos),
        metadata=metadata[0] if metadata else None,
    )


def _beside_timeline(databases: Sequence[str], ranks: Collection[int]) -> Sequence[str]:
    """The database of the rank that the timeline is of, if its rank is known: one or none."""
    own = [name for name in databases if len(ranks) == 1 and rank_of_name([name]) in ranks]
    if own:
        return own[:1]
    possible = [name for name in databases if rank_of_name([name]) is None] if ranks else databases
    return possible if len(possible) == 1 else ()


def _info_of_rank(infos: Sequence[Path], database: str) -> Path | None:
    """The profiler_info of a database's rank; never one of another rank."""
    rank = rank_of_name([database])
    if rank is None:
        return infos[0] if len(infos) == 1 else None
    known = {rank_of_name([info.name]): info for info in reversed(infos)}
    return known.get(rank, known.get(None))


def _usable(profile: Profile) -> Profile:
    if profile.main is None:
        files = ", ".join(sorted(_names(profile.output))[:3]) if profile.output is not None else ""
        what = Phrase("it holds only {files}, …", files) if files else Phrase("its output folder is empty")
        raise InputError(
            "{folder}: this Ascend profile has neither {timeline} nor a database nor {kernels} nor {sums}, {what}; "
            "analyse it again (torch_npu.profiler.profiler.analyse), or copy all of it",
            *(profile.folder, TIMELINE, KERNELS, SUMS, what),
        )
    return profile


def _names(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(entry.name for entry in folder.iterdir())
    except OSError:
        return ()


def rank_of_name(names: Iterable[str]) -> int | None:
    """Rank in the name of a `profiler_info_<r>.json` or a database; None where there is none."""
    found = (_INFO.fullmatch(name) or _DATABASE.fullmatch(name) for name in names)
    return next((int(number) for match in found if match for number in match.groups() if number), None)


_PROCESSES = frozenset({"Ascend Hardware", "CANN", "Overlap Analysis"})
_OF_PARTS = frozenset({"Ascend Hardware", "HCCL", "Step Trace"})
_PART = Phrase(
    "this is one part of what msprof exports, without which communication or compute would be 0; "
    "give the folder with msprof_*.json, or with all of hccl_*.json, task_time_*.json and step_trace_*.json"
)
_CATEGORIES = frozenset({"async_npu", "async_task_queue", "enqueue", "dequeue"})
_IN_HEAD = regex(
    rb'"(?:async_npu|async_task_queue|enqueue|dequeue|torch_to_npu|HostToDevice|Task Type|connection_id'
    rb'|Ascend Hardware|CANN|Overlap Analysis)"|"ts"\s*:\s*"'
)


_HEADER = 256


def looks_ascend(head: bytes) -> bool:
    """Whether the beginning of a trace looks like that of an Ascend profile; what was scanned decides in the end."""
    # Most begin with a header that only Kineto writes, and need no search, which takes as long as 2 MB of text do.
    return b'"schemaVersion"' not in head[:_HEADER] and _IN_HEAD.search(head) is not None


def is_ascend(found: Scan) -> bool:
    """Whether a scanned trace is that of an Ascend profile, by its processes, else by its categories."""
    if _PROCESSES & {name.partition(" [")[0] for name in process_names(found.metadata).values()}:
        return True
    named = [category for category in _CATEGORIES if found.strings.may_have(category)]
    categories = (found.events.cat, found.flows.cat) if named else ()
    return any(found.strings.matches(each, named.__contains__).any() for each in categories)


def part_alone(name: str, found: Scan) -> Phrase | None:
    """What a file is that holds only one part of msprof's timeline; None for any other."""
    match = _MSPROF.fullmatch(PurePath(name).name)
    if match is None or match["kind"] == "msprof":
        return None
    names = {name.partition(" [")[0] for name in process_names(found.metadata).values()}
    return _PART if names <= _OF_PARTS else None


_PROFILE = Phrase(
    "give the folder of the profile (*_ascend_pt, *_ascend_ms): trace_view.json, the database or kernel_details.csv "
    "beside step_trace_time.csv is needed"
)
_INSIGHT = Phrase(
    "this is a summary that MindSpore Insight made of an old profile, which holds no events and is not supported; "
    "record with mindspore.profiler and give the *_ascend_ms folder"
)
_CLUSTER = Phrase(
    "this is the analysis of a cluster (cluster_analysis_output), not a profile; "
    "give the folder that holds the ranks' profiles (*_ascend_pt)"
)
_OF_INSIGHT = regex(
    r"hccl_raw_\d+\.csv|step_trace_raw_\d+_detail_time\.csv|flops_summary_\d+\.json"
    r"|ascend_cluster_analyse_[\w-]+\.csv|ascend_marey_timeline_\d+\.json|ascend_timeline_display_\d+\.json"
)
_OF_CLUSTER = regex(
    r"cluster_(?:step_trace_time\.csv|communication(?:_matrix)?\.json|analysis\.db)|communication_group\.json"
)
_OF_PROFILE = regex(
    r"(?:kernel_details|operator_details|step_trace_time|operator_memory|memory_record|npu_module_mem|l2_cache"
    r"|data_preprocess|task_time|static_op_mem)\.csv|communication(?:_matrix)?\.json|profiler_(?:info|metadata)\w*\.json"
    r"|(?:op_summary|op_statistic|api_statistic|task_time|step_trace)(?:_slice_\d+)?(?:_\d+)?\.csv"
)
_TABLE = Phrase("this is one table of an Ascend profile; {advice}", _PROFILE)
_STRAYS = ((_OF_INSIGHT, _INSIGHT), (_OF_CLUSTER, _CLUSTER), (_OF_PROFILE, _TABLE))


def stray(name: str) -> Phrase | None:
    """What a file is that an Ascend tool names so, and what to do; None for any other name."""
    plain = PurePath(name).name
    return next((message for pattern, message in _STRAYS if pattern.fullmatch(plain)), None)


def stray_of(names: Iterable[str]) -> Phrase | None:
    """The same of the files of a folder: the first of them that an Ascend tool names so, and what it is."""
    found = ((PurePath(name).name, message) for name in names if (message := stray(name)) is not None)
    return next((Phrase("{name}: {message}", *each) for each in found), None)
