"""What only reports of Ascend profiles say, in Simplified Chinese."""

from __future__ import annotations

TABLES = {
    "vendor_collectives": "采集数据自带的集合通信统计",
    "vendor_links": "采集数据自带的 Rank 间流量",
}

COLUMNS = {
    "elapsed_ns": "总耗时",
    "plane_transit_ns": "传输",
    "plane_wait_ns": "等待",
    "plane_rest_ns": "其余",
    "sent_bytes": "发送量",
}

COLUMN_MEANINGS = {
    "elapsed_ns": "从开始到结束，即表中的 Elapse Time",
    "plane_transit_ns": "单个 Plane 上的传输，即表中的 Transit Time",
    "plane_wait_ns": "单个 Plane 上的等待，即表中的 Wait Time",
    "plane_rest_ns": "该 Plane 上其余的时间，即表中的 Idle Time：大多是其他 Plane 上的等待",
    "sent_bytes": "经 Rank 间链路发送的字节数",
    "vendor_links.bytes": "这一类集合通信之和",
    "vendor_links.time_ns": "各次传输之和，传输之间可能并行",
    "vendor_links.bandwidth": "字节数除以该时间，每秒 10⁹ 字节",
}

MESSAGES = {
    "vendor_planes": "取自 {source}，仅供对照：它只看一个 Plane，因此多数等待算在“其余”里。",
}

CHECKS = {
    "vendor_differs_computing": (
        "采集数据自带的数值（{source}）相差超过 1 %：计算在其中为 {theirs_ns}，这里为 {ours_ns}。"
    ),
    "vendor_differs_communication": (
        "采集数据自带的数值（{source}）相差超过 1 %：通信在其中为 {theirs_ns}，这里为 {ours_ns}。"
    ),
    "vendor_differs_not_overlapped": (
        "采集数据自带的数值（{source}）相差超过 1 %：未掩盖通信在其中为 {theirs_ns}，这里为 {ours_ns}。"
    ),
    "collectives_missing": "{source} 中有 {count} 个集合通信（共 {time_ns}）不在时间线里：通信耗时偏低。",
    "collectives_differ": (
        "{source} 中 {of} 个集合通信里有 {count} 个的耗时与时间线不同，差别最大的是 {name}：其中为 {theirs_ns}，"
        "这里为 {ours_ns}。"
    ),
    "link_bytes_differ": "{source} 记录经 {link} 传输 {theirs_bytes}，时间线里的传输任务共 {ours_bytes}。",
    "exports_agree": "另一种导出 {source} 与所读的一致：比较的 {count} 项数值都相同。",
    "exports_not_compared": "另一种导出 {source} 中没有可以比较的数值。",
    "exports_differ_step_count": "另一种导出 {source} 有 {theirs} 步，所读的有 {ours} 步；两者是同一次采集吗？",
    "exports_differ_step_time": (
        "另一种导出 {source} 的 Host 侧步耗时共 {theirs_ns}，所读的为 {ours_ns}；两者是同一次采集吗？"
    ),
    "exports_differ_computing": (
        "另一种导出 {source} 的计算耗时为 {theirs_ns}，所读的为 {ours_ns}；两者是同一次采集吗？"
    ),
    "exports_differ_not_overlapped": (
        "另一种导出 {source} 的未掩盖通信为 {theirs_ns}，所读的为 {ours_ns}；两者是同一次采集吗？"
    ),
    "exports_differ_free": "另一种导出 {source} 的 Free 为 {theirs_ns}，所读的为 {ours_ns}；两者是同一次采集吗？",
    "exports_differ_kernel_count": (
        "另一种导出 {source} 有 {theirs} 个计算 Kernel，所读的有 {ours} 个；两者是同一次采集吗？"
    ),
    "exports_differ_kernel_time": (
        "另一种导出 {source} 的计算 Kernel 耗时共 {theirs_ns}，所读的为 {ours_ns}；两者是同一次采集吗？"
    ),
    "wait_of_one_plane": (
        "{source} 给出的集合通信等待为 {theirs_ns}，只是其中一个 Plane 的等待；按所有 Plane 计，没有传输的时间为 "
        "{ours_ns}。其中的 Idle Time 大多也是在等待其他 Rank。"
    ),
}

_BOTH = "同时采集 Host 与设备：torch_npu.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU])"
_LEVEL = (
    "profile(experimental_config=torch_npu.profiler._ExperimentalConfig("
    "profiler_level=torch_npu.profiler.ProfilerLevel.Level1))"
)

HINTS = {
    "no_device_events.ascend": _BOTH,
    "no_host_events.ascend": _BOTH,
    "no_api.ascend": _BOTH,
    "no_cann_calls.ascend": f"查看下发与同步点：{_LEVEL}",
    "no_collective_tasks.ascend": f"区分等待与传输：{_LEVEL}",
    # No option of torch_npu records which stream waits for which.
    "no_stream_waits.ascend": "",
}
