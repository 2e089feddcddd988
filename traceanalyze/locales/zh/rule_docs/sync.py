"""Documents of the rules about synchronisation points (SYN)."""

from __future__ import annotations

DOCS = {
    "SYN101": """从设备读取数值，期间设备没有任务可执行。

发现什么
    `loss.item()`、`print(loss)` 或 `if tensor:` 这类从设备读取一个数的位置。
为什么耗时
    Host 要等此前下发的任务全部执行完；拿到数值时已没有任务在排队，设备只能等
    Host 下发新任务。
如何测量
    `aten::item`、`_local_scalar_dense`、`is_nonzero` 或 `equal` 之下的同步调用
    造成的设备空闲时间（definitions §7），绝不是 Host 阻塞的时间。没有代价的读取
    不算问题。读取之后 10 ms 及以上的停顿归入 HST104 与 HST107。
怎么办
    每 N 步才读取一次数值；或在设备上累加，再读取总和。
    `torch.cuda.set_sync_debug_mode("warn")` 会指出位置（分布式与稀疏算子以及可
    分页内存的拷贝除外）。

参考
    PyTorch Performance Tuning Guide；CUDA semantics。""",
    "SYN102": """结果的 Shape 取决于设备上的数值。

发现什么
    `nonzero`、`masked_select`、用掩码索引、`unique`、不带 `output_size` 的
    `repeat_interleave`。
为什么耗时
    Host 要知道 Shape 才能继续，于是等待设备，之后设备又要等 Host。
如何测量
    这些算子之下的同步调用造成的设备空闲时间（definitions §7）。
怎么办
    使用 `torch.where` 与掩码、固定容量；算子支持时传入 `output_size=`。

参考
    PyTorch Performance Tuning Guide；msprof-analyze advisor。""",
    "SYN103": """程序在等待整个设备或一条流。

发现什么
    算子之外的 `torch.cuda.synchronize()` 之类的调用，且出现在一半或更多的步中。
为什么耗时
    设备没有任务可执行，要等到 Host 下发新任务。
如何测量
    这些调用造成的设备空闲时间（definitions §7）。trace 中的最后一次不计入，它多
    半来自 Profiler 自身。
怎么办
    删除这些调用；计时请用设备事件。

参考
    CUDA semantics。""",
    "SYN104": """在步的中途把张量拷贝到 Host。

发现什么
    `.cpu()`、`.numpy()`、`.tolist()` 以及其他会等待设备的设备到 Host 拷贝。
为什么耗时
    Host 要等拷贝完成，期间不下发任何新任务。
如何测量
    属于设备到 Host 拷贝的同步调用所造成的设备空闲时间（definitions §7）。
怎么办
    让计算留在设备上；把要读取的内容汇集起来一次拷贝，拷到锁页内存，使用
    `non_blocking=True` 与事件。

参考
    pin_memory 与 non_blocking 教程；PyTorch Performance Tuning Guide。""",
    "SYN105": """从可分页内存向设备拷贝张量，或拷贝拖住了 Host。

发现什么
    采集数据标明为可分页的 Host 到设备拷贝，以及调用实际阻塞的 Host 到设备拷贝。
为什么耗时
    驱动要先把可分页内存拷到中转缓冲区，速度只有链路的几分之一，而调用要等这一步
    完成才返回：期间 Host 什么也不下发。
如何测量
    去掉阻塞调用、并把可分页拷贝缩短到同样字节数的锁页拷贝的时长之后，重放下发所
    得的收益。至多为这些调用造成的空闲时间（definitions §7）加上这些拷贝全部未掩
    盖的时间，因为另一条流上的拷贝可以被掩盖。
怎么办
    DataLoader 设置 `pin_memory=True`，并使用 `.to(device, non_blocking=True)`，
    两者缺一不可；在另一条流上提前拷贝下一个 batch。

参考
    pin_memory 与 non_blocking 教程；torch.utils.data；CUDA semantics。""",
    "SYN106": """在 Host 上读取梯度范数。

发现什么
    `clip_grad_norm_` 内或范数算子之下的同步调用。
为什么耗时
    在反向与优化器之间，设备要等 Host 读到范数并下发优化器。
如何测量
    这些调用造成的设备空闲时间（definitions §7）。
怎么办
    让范数留在设备上：`error_if_nonfinite=False`，并减少打印。

参考
    PyTorch Performance Tuning Guide。""",
    "SYN107": """梯度缩放器要从设备读取梯度是否有限。

发现什么
    `GradScaler.step`、`unscale_` 或 `update` 内的同步调用。
为什么耗时
    每一步设备都要等 Host 读到这个标志并下发优化器。
如何测量
    这些调用造成的设备空闲时间（definitions §7）。
怎么办
    bfloat16 不需要梯度缩放器；融合优化器可直接在设备上使用该标志。

参考
    Automatic mixed precision package。""",
    "SYN108": """Host 等待集合通信。

发现什么
    `torch.distributed` 的等待中的同步调用。
为什么耗时
    Host 等待期间什么也不下发；流之间可以互相等待，并不需要 Host 参与。
如何测量
    这些调用造成的设备空闲时间（definitions §7）。
怎么办
    取消设置 `TORCH_NCCL_BLOCKING_WAIT` 或 `TORCH_HCCL_BLOCKING_WAIT`；删除
    barrier。

参考
    torch.distributed；torch_npu 环境变量。""",
}
