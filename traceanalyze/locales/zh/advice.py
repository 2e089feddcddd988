"""What to check about each part of a step that takes longer; `locales/zh/__init__.py` adds these texts."""

from __future__ import annotations

TERMS = {
    "check_compute": (
        "对比这些 Kernel 的 Shape、数据类型和实现；若设备相同，同样的 Kernel 单个变长，说明频率降低或设备上有其他任务"
    ),
    "check_communication": "区分等待慢卡和传输（需要采集全部 Rank），再对比集合通信的大小与次数",
    "check_memory_ops": "查看哪些拷贝是新增的、变大的，或来自非锁页内存",
    "check_data_loading": "检查加载器的 num_workers、persistent_workers、pin_memory，以及存储和单个样本的解码",
    "check_sync": "查找让 Host 等待设备的操作：.item()、.cpu()、打印 loss；单独分析比对侧可得到源码行",
    "check_peer_wait": "采集全部 Rank，查看其他 Rank 在等待哪一个",
    "check_dispatch": "查看是否有更多、更小的 Kernel：融合算子、使用图模式或增大 batch",
    "check_host_op": "查看这些算子前后的 Python 代码，以及 CPU 的负载、频率和绑核；并确认两侧采集选项一致",
    "check_device_side": "在时间线上查看各 Stream 与 Event：下一个 Kernel 在等什么",
    "check_untraced": "查看 Host 在做什么：若没有采集调用栈，两侧都用 with_stack=True 采集",
    "check_idle": "两侧用相同的选项采集，才能区分原因",
    "check_outside_calls": "两侧用相同的选项采集，才能区分原因",
    "check_host_side": "两侧用相同的采集级别，才能区分原因",
    "check_api": "在调用表中查看变长的运行时调用",
    "check_step": "两侧都采集设备数据",
}

MESSAGES = {
    "advice": "接下来看哪里",
    "compare_advice": "{part} {diff}：{check}。",
    "compare_advice_cause": "{part} {diff}（其中最大的是 {cause} {cause_diff}）：{check}。",
}
