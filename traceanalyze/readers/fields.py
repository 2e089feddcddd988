"""The arguments of events worth keeping: canonical name, how to read it, and its keys over the years."""

from __future__ import annotations

from traceanalyze.readers.scan import Field, Kind

EVENT_FIELDS = (
    Field("correlation", Kind.INT, ("correlation",)),
    Field("external_id", Kind.INT, ("External id", "external id")),
    Field("device", Kind.INT, ("device",)),
    Field("stream", Kind.INT, ("stream",)),
    Field("bytes", Kind.INT, ("bytes",)),
    Field("copy_kind", Kind.TEXT, ("kind", "memcpy direction")),
    Field("sequence", Kind.INT, ("Sequence number",)),
    Field("fwd_thread", Kind.INT, ("Fwd thread id",)),
    Field("shapes", Kind.TEXT, ("Input Dims", "Input dims")),
    Field("dtypes", Kind.TEXT, ("Input type",)),
    Field("concrete", Kind.TEXT, ("Concrete Inputs",)),
    Field("stack", Kind.TEXT, ("Call stack",)),
    Field("module", Kind.TEXT, ("Module Hierarchy",)),
    Field("collective", Kind.TEXT, ("Collective name",)),
    Field("group", Kind.TEXT, ("Process Group Name",)),
    Field("group_ranks", Kind.TEXT, ("Process Group Ranks",)),
    Field("group_size", Kind.INT, ("Group size",)),
    Field("in_elements", Kind.INT, ("In msg nelems",)),
    Field("out_elements", Kind.INT, ("Out msg nelems",)),
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

_OF_HOST_EVENTS = frozenset({"sequence", "fwd_thread", "shapes", "dtypes", "concrete", "stack", "module"})

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

_DTYPE = {Kind.INT: "int64", Kind.REAL: "float64", Kind.TEXT: "int32"}
DTYPES = {field.name: _DTYPE[field.kind] for field in (*EVENT_FIELDS, *ASCEND_FIELDS, *INSTANT_FIELDS)}
"""Type of the values of each column that the scanner makes of them; texts are codes into the trace's strings."""
