"""What an Ascend profile says of itself in profiler_info and profiler_metadata; what is missing or damaged is noted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceanalyze.errors import Lost, Phrase
from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.folder import Profile, rank_of_name
from traceanalyze.readers.header import OPTIONS, json_object, lenient_json, rank_of, ranks_of

_ENVIRONMENT = regex(
    r"(ASCEND|HCCL|ACL|ACLNN|TORCH_HCCL|PYTORCH_NPU|TORCH_NPU)_\w+|TASK_QUEUE_ENABLE|CPU_AFFINITY_CONF"
    r"|HOST_CACHE_CAPACITY|MULTI_STREAM_MEMORY_REUSE|COMBINED_ENABLE|INF_NAN_MODE_ENABLE|OMP_NUM_THREADS"
)
"""Settings of the libraries; everything else of the environment is nobody's business."""
_VERSIONS = {
    "torch_npu_version": "torch_npu",
    "cann_version": "cann",
    "torch_version": "torch",
    "ms_version": "mindspore",
}


@dataclass(frozen=True)
class About:
    """A profile's own words about the recording."""

    rank: int | None = None
    rank_source: str = ""
    world_size: int | None = None
    level: str = ""
    """Level_none, Level0, Level1, Level2; empty when unknown."""
    options: Mapping[str, bool] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Process group by its name in the program → global ranks."""
    group_names: Mapping[str, str] = field(default_factory=dict)
    """What a group goes by in the tables (`group_name_7`, an address) → its name in the program."""
    environment: Mapping[str, str] | None = None
    """Settings of the vendor's libraries; an empty text is a variable that was not set. None where none are stated."""
    notes: tuple[str, ...] = ()


def read_about(profile: Profile) -> About:
    """Understand what lies beside the tables. A damaged file is noted, never an error."""
    notes = list(_missing(profile))
    info = _object_of(profile.info, notes)
    metadata = _object_of(profile.metadata, notes)
    config = json_object(info.get("config"))
    # MindSpore keeps all settings in one place, under names of their own.
    settings = json_object(info.get("profiler_parameters"))
    common = settings | json_object(config.get("common_config"))
    experimental = json_object(config.get("experimental_config"))
    groups, group_names = _groups(json_object(metadata.get("parallel_group_info")))
    distributed = json_object(metadata.get("distributed_args"))
    rank, source = _rank_of(profile, info, distributed)
    return About(
        rank=rank,
        rank_source=source,
        world_size=rank_of(distributed.get("world_size")) or None,
        level=_level(experimental.get("_profiler_level") or settings.get("profiler_level")),
        options={name: bool(common[name]) for name in OPTIONS if isinstance(common.get(name), bool)},
        versions={name: str(info[key]) for key, name in _VERSIONS.items() if info.get(key)},
        groups=groups,
        group_names=group_names,
        environment=_environment(metadata.get("ENV_VARIABLES")),
        notes=tuple(notes),
    )


def _missing(profile: Profile) -> Iterator[Phrase]:
    """What is lost without the files that torch_npu and MindSpore write beside the tables."""
    main = profile.main
    if profile.output is None or main is None or (main == profile.database and not main.name.startswith("ascend_")):
        return
    if profile.info is None:
        yield Phrase("profiler_info.json is missing: the profiler's options are not known, nor perhaps the rank")
    if profile.metadata is None:
        yield Phrase("profiler_metadata.json is missing: process groups and settings of the environment are not known")


def _level(stated: object) -> str:
    """`Level1`, `ProfilerLevel.Level1` and `LevelNone` in torch_npu's words; empty where it is not stated."""
    text = str(stated or "").rpartition(".")[2]
    return "Level_none" if text == "LevelNone" else text


def _rank_of(profile: Profile, info: dict[str, Any], distributed: dict[str, Any]) -> tuple[int | None, str]:
    """The rank and what it was taken from; -1 stands for "not distributed"."""
    named = rank_of_name([profile.info.name] if profile.info else [])
    # The name of a database is more certain than a list that may lie there for all ranks of a folder.
    stated = (
        (named, "profiler_info"),
        (rank_of(info.get("rank_id")), "profiler_info"),
        (rank_of_name([profile.database.name] if profile.database else []), "file name"),
        (rank_of(distributed.get("rank")), "profiler_metadata"),
    )
    return next((each for each in stated if each[0] is not None), (None, ""))


def _groups(listed: dict[str, Any]) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Ranks by name of the group, and its name by what the tables call it; equal names are numbered."""
    groups: dict[str, tuple[int, ...]] = {}
    names: dict[str, str] = {}
    for key, value in listed.items():
        entry = json_object(value)
        ranks = ranks_of(entry.get("global_ranks"))
        name = str(entry.get("group_name") or "")
        if not name or not ranks:
            continue
        used = sum(other == name or other.startswith(f"{name} (") for other in groups)
        names[key] = name if not used else f"{name} ({used + 1})"
        groups[names[key]] = ranks
    return groups, names


def _environment(stated: object) -> dict[str, str] | None:
    if not isinstance(stated, dict):
        return None
    return {name: str(value) for name, value in stated.items() if _ENVIRONMENT.fullmatch(str(name))}


def _object_of(path: Path | None, notes: list[Phrase]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        # A pipe of that name would be waited for without end; as an empty file it is no JSON.
        return json_object(lenient_json(path.read_bytes() if path.is_file() else b""))
    except (OSError, ValueError):
        notes.append(Lost("{name} cannot be read and was left out", path.name))
        return {}
