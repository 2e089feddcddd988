"""Texts of the rules about synchronisation points (SYN)."""

from __future__ import annotations

TITLES = {
    "SYN101": "从设备读取数值",
    "SYN102": "Shape 依赖数据",
    "SYN103": "显式同步",
    "SYN104": "步内拷贝到 Host",
    "SYN105": "从可分页内存拷贝",
    "SYN106": "读取梯度范数",
    "SYN107": "梯度缩放器等待",
    "SYN108": "Host 等待集合通信",
}

_AHEAD = "没有它们，Host 随后也能领先于设备；收益已计入这一部分。"

_PLAIN = {
    "SYN101": "从设备读取数值（共 {count} 次）使设备{per}有 {idle} 没有任务。",
    "SYN102": "Shape 依赖数据的算子（共 {count} 次同步）使设备{per}有 {idle} 没有任务。",
    "SYN103": "在算子之外等待设备（共 {count} 次）使设备{per}有 {idle} 没有任务。",
    "SYN104": "拷贝到 Host（共 {count} 次同步）使设备{per}有 {idle} 没有任务。",
    "SYN105": (
        "拷贝到设备时阻塞了 Host，或来自可分页内存（共 {count} 次）：设备{per}有 {idle} 没有任务，"
        "有 {exposed} 只在执行这些拷贝。"
    ),
    "SYN106": "读取梯度范数（共 {count} 次同步）使设备{per}有 {idle} 没有任务。",
    "SYN107": "梯度缩放器（共 {count} 次同步）使设备{per}有 {idle} 没有任务。",
    "SYN108": "Host 等待集合通信（共 {count} 次同步）：设备{per}有 {idle} 没有任务。",
}
SENTENCES = _PLAIN | {f"{rule}_ahead": text + _AHEAD for rule, text in _PLAIN.items()}

ADVICE = {
    "read_rarely": "每 N 步才读取一次数值，或在设备上累加（detach()）后再读取总和。",
    "sync_debug_mode.cuda": 'torch.cuda.set_sync_debug_mode("warn") 可给出具体代码行。',
    "sync_debug_mode.ascend": 'torch_npu.npu.set_sync_debug_mode("warn") 可给出具体代码行。',
    "fixed_shapes": "使用 torch.where 或掩码、固定容量；算子支持时传入 output_size=。",
    "fixed_shapes.ascend": (
        "使用 torch.where 或掩码、固定容量；算子支持时传入 output_size=；这类算子还可能落在 AI CPU 上执行。"
    ),
    "device_events.cuda": "删除这些调用；计时请用 torch.cuda.Event。",
    "device_events.ascend": "删除这些调用；计时请用 torch_npu.npu.Event。",
    "keep_on_device": "让计算留在设备上。",
    "read_late": "在步的末尾一次性拷回结果：拷到锁页内存，使用 non_blocking=True 与事件。",
    "pin_memory": "DataLoader 设置 pin_memory=True，并使用 .to(device, non_blocking=True)；两者缺一不可。",
    "prefetch_copy": "在另一条流上提前拷贝下一个 batch。",
    "norm_on_device": "让范数留在设备上（error_if_nonfinite=False），并减少打印。",
    "bf16_no_scaler": "bfloat16 不需要梯度缩放器。",
    "fused_scaler": "融合优化器（fused=True）可直接在设备上使用缩放器的标志。",
    "fused_scaler.ascend": "torch_npu.optim.NpuFused* 优化器可直接在设备上使用缩放器的标志。",
    "unset_blocking_wait.cuda": "取消设置环境变量 TORCH_NCCL_BLOCKING_WAIT；删除只用于计时的 barrier。",
    "unset_blocking_wait.ascend": "取消设置环境变量 TORCH_HCCL_BLOCKING_WAIT；删除只用于计时的 barrier。",
}

EVIDENCE = {
    "count": "同步调用",
    "blocked": "Host 阻塞",
    "place": "其中位于",
    "exposed": "未掩盖的拷贝",
}
