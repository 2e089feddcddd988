"""The arguments of Kineto events worth keeping: canonical name, how to read it, and its keys over the years."""

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

INSTANT_FIELDS = (
    Field("bytes", Kind.INT, ("Bytes",)),
    Field("device_type", Kind.INT, ("Device Type",)),
    Field("device", Kind.INT, ("Device Id",)),
    Field("address", Kind.INT, ("Addr",)),
    Field("allocated", Kind.INT, ("Total Allocated",)),
    Field("reserved", Kind.INT, ("Total Reserved",)),
)
"""Of instant events: the records of the caching allocator, named `[memory]`."""
