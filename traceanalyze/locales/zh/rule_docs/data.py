"""Documents of the rules about data loading (DAT)."""

from __future__ import annotations

DOCS = {
    "DAT101": """设备因 Host 等待数据加载而空闲。

发现什么
    训练线程等待下一个 batch 时设备空闲的步；由 Host 计算的程序，则是任何这样的等
    待。
为什么耗时
    batch 到来之前什么也无法下发。`num_workers=0`（默认）时，batch 就在训练循环
    里一个接一个地生成。
如何测量
    设备的空闲时间中，下一个 Kernel 因其线程或步所在的线程正处于
    `enumerate(DataLoader)#…__next__`、`enumerate(DataPipe)#…` 或 `--data-regex`
    指定的区间内而尚未下发的那部分（definitions §5）。设备忙碌时的加载时间没有代
    价，不算问题。估计时去掉加载后重放下发，因此直到 Host 重新领先为止的空闲时间
    也计入。只由 Host 计算时：步所在线程处于这些区间内的时间，减去 worker 已备好
    batch 时取一个 batch 所需的 0.6 ms；前提是 worker 有自己的 CPU 核可用。
怎么办
    多个 worker，然后是 `prefetch_factor`、`persistent_workers=True` 与
    `pin_memory=True`；降低解码与增强的开销；数据放在本地盘上，用少量大文件存
    放。worker 需要空闲的 CPU 核：由 Host 计算时，让 torch 少占核
    （`torch.set_num_threads`）。

参考
    torch.utils.data；PyTorch Performance Tuning Guide。""",
    "DAT102": """每个 epoch 都重新创建 DataLoader 的 worker。

发现什么
    等待 batch 的时间超过中位数的十倍，出现不止一次，且都不是第一次等待。
为什么耗时
    要启动新的 worker 进程并填满它们的队列，期间设备在等待。
如何测量
    DataLoader 区间的时长；可节省时间是去掉超出部分之后重放下发所得的收益；只由
    Host 计算时，就是超出部分本身。
怎么办
    `persistent_workers=True`；加长 epoch。

参考
    torch.utils.data。""",
    "DAT103": """在训练循环中对 batch 锁页。

发现什么
    步所在线程上的 `pin_memory` 算子，且一半或更多的步里都有。DataLoader 自己的
    锁页线程没有问题。
为什么耗时
    锁页要在 Host 上把 batch 拷贝一遍，还可能要锁住内存页，这一切都在开始拷贝到
    设备之前：往往比直接 `.to(device)` 慢一倍。
如何测量
    这些算子的耗时；可节省时间是去掉它们之后重放下发所得的收益。
怎么办
    DataLoader 设置 `pin_memory=True`（自定义类型的 batch 需要实现
    `pin_memory()` 方法）。

参考
    pin_memory 与 non_blocking 教程；torch.utils.data。""",
    "DAT104": """DataLoader 已有多个 worker，单步仍要等待它，且等待时长波动很大。

发现什么
    DataLoader 虽有 worker，仍要等待数据，且各次等待长短悬殊。
为什么耗时
    worker 共用的核太少，或存储慢、与他人共用。其代价计入 DAT101。
如何测量
    同 DAT101，且 DataLoader 为多进程，其 `__next__` 的变异系数大于 1。原因无法
    从一次采集看出：请比较不同 worker 数的运行。
怎么办
    检查 worker 的绑核与 `OMP_NUM_THREADS`；数据放在本地盘上；离线预处理。

参考
    PyTorch Performance Tuning Guide；msprof-analyze advisor。""",
    "DAT105": """采集过程中数据加载越来越慢。

发现什么
    等待 batch 的时间，其后三分之一的中位数达到前三分之一的两倍或以上。
为什么耗时
    worker 进程读取 Python 对象会改写引用计数，使其内存页被逐个复制；或者内存快
    要用尽。其代价计入 DAT101。
如何测量
    DataLoader 区间的时长，至少九个，且数据加载确实使设备空闲，或使 Host 没有
    工作可做。
怎么办
    样本用 numpy 或 arrow 数组保存，不要用 Python 对象列表。

参考
    torch.utils.data。""",
    "DAT106": """一个 Rank 为其他 Rank 读数据，其他 Rank 等它；或者所有 Rank 都在等待数据加载。

发现什么
    某个 Rank 有 5 % 或更多的单步时间在等待数据加载，而其他 Rank 不等加载，却在
    步开头的 broadcast 中等待；或者所有 Rank 都在等待数据加载。
为什么耗时
    一个 Rank 读数据时，其他所有 Rank 的设备都空闲。如果大家同时读，则可能共用拖
    慢自己的存储，或者读的是同样的数据。
如何测量
    各 Rank 在数据加载中的空闲时间；步内第一个集合通信若是 broadcast，取其耗时超
    出各 Rank 中最短者的部分。可节省时间是加载时间中其他 Rank 在该 broadcast 里
    等待、且没有计算同时进行的那部分；至多是读数据的 Rank 的全部加载时间。只出现
    在第一步的 broadcast（广播参数）不计入。所有 Rank 自己花在加载上的时间，由各
    自的 DAT101 给出。
怎么办
    在读数据的 Rank 上用线程预取，让下一个 batch 在步开始时已就绪；每个节点设一
    个读取者。张量并行组内各 Rank 需要同样的数据时，每组读一次再 broadcast；否则
    让每个 Rank 读自己的数据。

参考
    昇腾大模型调优指南；torch.distributed；torch.utils.data。""",
    "DAT107": """各 batch 的大小差别很大。

发现什么
    计算耗时波动超过 15 %、同时算子的 Shape 也各不相同的步。
为什么耗时
    多个 Rank 时，所有 Rank 都要等最大的 batch；显存也会一次次重新向设备申请。
如何测量
    完整步的计算耗时的变异系数，以及每步输入 Shape 的集合。梯度累积与评估步看起
    来也是这样。
怎么办
    按长度对样本分桶，保持每个 batch 的 Token 数不变，或填充到少数几种大小。

参考
    PyTorch Performance Tuning Guide。""",
}
