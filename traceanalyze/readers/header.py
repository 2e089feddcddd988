"""What a trace says about itself: devices, ranks, process groups, profiler options, names of processes and threads.

A member that cannot be understood is left out and noted; it never stops the reading.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from traceanalyze.errors import Lost
from traceanalyze.model.trace import Device, Trace
from traceanalyze.readers.scan.result import Field, Kind, Metadata

_MOST_RANKS = 1 << 20
OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")
_VERSIONS = {
    "schemaVersion": "schema",
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver",
    "cupti_version": "cupti",
    "hip_runtime_version": "hip_runtime",
    "hip_driver_version": "hip_driver",
    "roctracer_version": "roctracer",
    "pytorch_version": "torch",
}
_MEMBERS = {*OPTIONS, *_VERSIONS, "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName"}


def with_header(trace: Trace, members: Mapping[bytes, bytes]) -> Trace:
    """The trace with what the members of its root say, given as JSON text."""
    values: dict[str, Any] = {}
    notes = []
    for raw_key, text in members.items():
        key = raw_key.decode("utf-8", "replace")
        if key in _MEMBERS:
            try:
                values[key] = lenient_json(text)
            except ValueError:
                notes.append(Lost('header member "{key}" is damaged and was left out', key))
    distributed = json_object(values.get("distributedInfo"))
    versions = {name: values[key] for key, name in _VERSIONS.items() if key in values}
    versions |= {"nccl": distributed["nccl_version"]} if "nccl_version" in distributed else {}
    rank = rank_of(distributed.get("rank"))
    return replace(
        trace,
        origin=trace.origin._replace(
            rank=rank,
            rank_source="" if rank is None else "distributedInfo",
            world_size=rank_of(distributed.get("world_size")),
            backend=_text(distributed.get("backend")),
            trace_name=_text(values.get("traceName")),
        ),
        read=trace.read._replace(notes=(*notes, *trace.read.notes)),
        base_ns=_integer(values.get("baseTimeNanoseconds")) or 0,
        devices=tuple(_devices(values.get("deviceProperties"))),
        groups=dict(_groups(distributed)),
        options={name: values[name] in (1, "1", True, "true") for name in OPTIONS if name in values},
        versions={name: str(value) for name, value in versions.items()},
    )


_LENIENT = json.JSONDecoder(strict=False)
"""`json.loads` would make one for each of the thousands of texts."""


def lenient_json(text: bytes) -> Any:
    """Read a JSON text with any bytes in its strings; ValueError if it is not JSON."""
    try:
        return _LENIENT.decode(text.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError from error


def process_names(metadata: Iterable[Metadata]) -> dict[str, str]:
    """Process id → name, with the labels in brackets."""
    names: dict[str, str] = {}
    labels: dict[str, str] = {}
    for record in metadata:
        if record.name == b"process_name":
            names[_decoded(record.pid)] = _argument(record.args, "name")
        elif record.name == b"process_labels":
            labels[_decoded(record.pid)] = _argument(record.args, "labels")
    pids = [*names, *(pid for pid in labels if pid not in names)]
    return {
        pid: f"{names.get(pid, '')} [{labels[pid]}]".strip() if labels.get(pid) else names.get(pid, "") for pid in pids
    }


def thread_names(metadata: Iterable[Metadata]) -> dict[tuple[str, str], str]:
    """(process id, thread id) → name."""
    return {
        (_decoded(record.pid), _decoded(record.tid)): _argument(record.args, "name")
        for record in metadata
        if record.name == b"thread_name"
    }


@lru_cache  # A recording may say the same thousands of times.
def _argument(arguments: bytes, key: str) -> str:
    try:
        return str(json_object(lenient_json(arguments)).get(key, "")).strip()
    except ValueError:
        return ""


def _devices(value: object) -> Iterable[Device]:
    for position, entry in enumerate(json_list(value)):
        device = json_object(entry)
        identifier = _integer(device.get("id"))
        major, minor = _integer(device.get("computeMajor")), _integer(device.get("computeMinor"))
        yield Device(
            id=position if identifier is None or identifier < 0 else identifier,
            name=_text(device.get("name")) or "",
            memory_bytes=_integer(device.get("totalGlobalMem")),
            compute_units=_integer(device.get("numSms")),
            capability=None if major is None or minor is None else f"{major}.{minor}",
        )


def _groups(distributed: Mapping[str, Any]) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Torch lists no ranks for a group of all of them; a part of them would pass for all."""
    world = rank_of(distributed.get("world_size"))
    for entry in json_list(distributed.get("pg_config")):
        group = json_object(entry)
        if "pg_name" in group:
            ranks, size = ranks_of(group.get("ranks")), rank_of(group.get("pg_size"))
            of_all = world and group.get("ranks") == [] and size == world
            yield (
                str(group["pg_name"]),
                tuple(range(world or 0)) if of_all else ranks if size in {None, len(ranks)} else (),
            )


def ranks_of(value: object) -> tuple[int, ...]:
    """The possible ranks of a list."""
    return tuple(rank for rank in map(rank_of, json_list(value)) if rank is not None)


def json_object(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def json_list(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    try:
        number = int(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < 1 << 63 else None


def rank_of(value: object) -> int | None:
    """A rank or a number of ranks that is possible, bare or quoted."""
    number = _integer(value)
    return number if number is not None and 0 <= number <= _MOST_RANKS else None


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


EVENT_FIELDS = (
    Field("correlation", Kind.INT, ("correlation",)),
    Field("external_id", Kind.INT, ("External id", "external id")),
    Field("device", Kind.INT, ("device",)),
    # torch ≥ 2.13 may draw the nodes of a graph on lanes of their own, on which work overlaps.
    Field("stream", Kind.INT, ("original_stream", "stream")),
    Field("bytes", Kind.INT, ("bytes",)),
    Field("copy_kind", Kind.TEXT, ("kind", "memcpy direction", "copy kind")),
    Field("copy_from", Kind.TEXT, ("src kind",)),
    Field("copy_to", Kind.TEXT, ("dst kind",)),
    Field("sequence", Kind.INT, ("Sequence number",)),
    Field("fwd_thread", Kind.INT, ("Fwd thread id",)),
    Field("shapes", Kind.TEXT, ("Input Dims", "Input dims")),
    Field("strides", Kind.TEXT, ("Input Strides",)),
    Field("dtypes", Kind.TEXT, ("Input type",)),
    Field("concrete", Kind.TEXT, ("Concrete Inputs",)),
    Field("stack", Kind.TEXT, ("Call stack",)),
    Field("module", Kind.TEXT, ("Module Hierarchy", "module_fqn")),
    # Of nodes of a CUDA graph (`mark_kernels`); of other events a member "name" may be anything.
    Field("mark", Kind.TEXT, ("annotation", "name")),
    Field("collective", Kind.TEXT, ("Collective name",)),
    Field("group", Kind.TEXT, ("Process Group Name",)),
    Field("group_ranks", Kind.TEXT, ("Process Group Ranks",)),
    Field("group_size", Kind.INT, ("Group size",)),
    Field("in_elements", Kind.INT, ("In msg nelems",)),
    Field("out_elements", Kind.INT, ("Out msg nelems",)),
    # Ranks of the run, not of the group: torch looks them up in the group's ranks, and leaves them out where it cannot.
    Field("to_rank", Kind.INT, ("Dst Rank",)),
    Field("from_rank", Kind.INT, ("Src Rank",)),
    Field("dtype", Kind.TEXT, ("dtype",)),
    Field("sync_kind", Kind.TEXT, ("cuda_sync_kind",)),
    Field("wait_stream", Kind.INT, ("wait_on_stream",)),
    Field("wait_record", Kind.INT, ("wait_on_cuda_event_record_corr_id",)),
    Field("grid", Kind.TEXT, ("grid",)),
    Field("block", Kind.TEXT, ("block",)),
    Field("registers", Kind.INT, ("registers per thread",)),
    Field("shared_memory", Kind.INT, ("shared memory",)),
    Field("blocks_per_sm", Kind.REAL, ("blocks per SM",)),
    Field("occupancy", Kind.REAL, ("est. achieved occupancy %",)),
)
"""Of complete events. "Device" of 2021 operators is a process id, hence no alias of `device`."""

_OF_HOST_EVENTS = frozenset({"sequence", "fwd_thread", "shapes", "strides", "dtypes", "concrete", "stack", "module"})

ASCEND_FIELDS = (
    *(field for field in EVENT_FIELDS if field.name in _OF_HOST_EVENTS),
    Field("connection", Kind.INT, ("connection_id",)),
    Field("queue_id", Kind.INT, ("correlation_id",)),
    Field("task_type", Kind.TEXT, ("Task Type",)),
    Field("task_stream", Kind.INT, ("Physic Stream Id", "Stream Id", "stream id")),
    Field("task", Kind.INT, ("Task Id",)),
    Field("task_bytes", Kind.INT, ("size(Byte)", "size(B)", "data size(Byte)")),
    Field("operation", Kind.TEXT, ("memcpy direction", "operation")),
    Field("link_type", Kind.TEXT, ("link type",)),
    Field("transport", Kind.TEXT, ("transport type",)),
    Field("src_rank", Kind.INT, ("src rank",)),
    Field("dst_rank", Kind.INT, ("dst rank",)),
    Field("data_type", Kind.TEXT, ("data_type",)),
    Field("count", Kind.INT, ("count",)),
    Field("rank_size", Kind.INT, ("rank_size",)),
    Field("algorithm", Kind.TEXT, ("alg_type",)),
)
"""Of complete events of Ascend profiles; `readers/ascend/text.py` makes the model's fields of them."""

INSTANT_FIELDS = (
    Field("bytes", Kind.INT, ("Bytes",)),
    Field("device_type", Kind.INT, ("Device Type",)),
    Field("device", Kind.INT, ("Device Id",)),
    Field("address", Kind.INT, ("Addr",)),
    Field("allocated", Kind.INT, ("Total Allocated",)),
    Field("reserved", Kind.INT, ("Total Reserved",)),
)
"""Of instant events: the records of the caching allocator, named `[memory]`."""

_OF_DETAIL = frozenset(
    {"sequence", "fwd_thread", "strides", "dtypes", "concrete", "module", "mark", "sync_kind", "wait_stream", "block"}
    | {"registers", "shared_memory", "blocks_per_sm", "occupancy", "device_type", "address", "allocated", "reserved"}
)
"""What no summary of a rank asks for (`pipeline.recordings.rank_summary`): half of all arguments."""


def of_summary(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Those that a summary needs."""
    return tuple(field for field in fields if field.name not in _OF_DETAIL)


_DTYPE = {Kind.INT: "int64", Kind.REAL: "float64", Kind.TEXT: "int32"}
DTYPES = {field.name: _DTYPE[field.kind] for field in (*EVENT_FIELDS, *ASCEND_FIELDS, *INSTANT_FIELDS)}
"""Type of the values of each column that the scanner makes of them; texts are codes into the trace's strings."""
