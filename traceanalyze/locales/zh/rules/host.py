"""Texts of the rules about the host and dispatch (HST)."""

from __future__ import annotations

TITLES = {
    "HST101": "Host 下发太慢",
    "HST102": "Kernel 比下发还短",
    "HST103": "排队的 Kernel 之间间隙过多",
    "HST104": "垃圾回收停顿",
    "HST105": "开启了调试工具",
    "HST106": "下发后等待 Kernel 完成",
    "HST107": "算子之外的 Host 工作",
    "HST108": "Launch 调用快慢不均",
    "HST109": "小拷贝过多",
    "HST110": "每次的计算量太小",
    "HST111": "优化器没有融合",
    "HST112": "用 0 填充梯度",
}

SENTENCES = {
    "HST101_first_use": (
        "设备{per}有 {idle}（{share}）、一次最长 {longest} 在等待 Host 上不再重复的工作，"
        "例如首次使用时的加载库、编译 Kernel 或捕获图。"
    ),
    "HST101": "设备{per}等待 Host 准备并下发任务 {idle}；其空闲间隙中有 {late} 以下发过晚的任务结束。",
    "HST102": "{share} 的 Kernel 比下发它的调用还短；紧随其后设备{per}空闲 {idle}。",
    "HST103": "在已排队的 Kernel 之间，设备{per}空闲 {idle}，共 {count} 个间隙。",
    "HST104": "Python 垃圾回收有 {count} 次达到 1 ms 以上，最长 {longest}；期间设备{per}空闲 {idle}。",
    "HST104_host": "Python 垃圾回收有 {count} 次达到 1 ms 以上，最长 {longest}；{per}占用 {time}。",
    "HST104_suspected": (
        "所有下发线程同时停住 {count} 次，最长 {longest}，像是 Python 在做垃圾回收；期间设备{per}空闲 {idle}。"
    ),
    "HST105": "步内有调试工具在运行，共 {count} 次：{what}。",
    "HST106": "{share} 的下发之后 Host 都在等待设备，与开启 launch blocking 时的现象相同。",
    "HST107": "设备{per}有 {idle} 在等待 trace 中看不到的 Host 工作；最长的一段为 {longest}。",
    "HST107_lines": "设备{per}有 {idle} 在等待算子之外的 Host 工作，主要在 {line} 附近；最长的一段为 {longest}。",
    "HST107_host": "Host {per}有 {time} 花在 trace 中看不到的工作上（每段 1 ms 以上）；最长的一段为 {longest}。",
    "HST107_host_lines": (
        "Host {per}有 {time} 花在算子之外（每段 1 ms 以上），主要在 {line} 附近；最长的一段为 {longest}。"
    ),
    "HST108": "半数 Launch 调用不超过 {median}，但有十分之一达到 {slow} 以上。",
    "HST109": "{per}有 {each} 次 Host 与设备之间的拷贝，半数小于 {bytes}；{per}代价 {time}。",
    "HST110": "设备只有单步的 {busy} 在忙碌。",
    "HST110_host": "优化器以外的算子每个只做很少的工作，仅调用它们{per}就要 {time}（扣除采集开销后占单步 {share}）。",
    "HST111": "优化器{per}逐个执行 {kernels} 个 Kernel，共 {time}。",
    "HST111_foreach": "优化器{per}以张量列表方式执行 {kernels} 个 Kernel，共 {time}。",
    "HST111_host": "优化器{per}逐个执行 {operators} 个算子，共 {time}。",
    "HST111_host_foreach": "优化器{per}以张量列表方式执行 {operators} 个算子，共 {time}。",
    "HST112": "zero_grad 用 0 填充梯度，共 {count} 次：{per} {time}。",
}

ADVICE = {
    "fewer_kernels": "减少 Kernel 数量、增大单个 Kernel：torch.compile 或融合算子、融合优化器。",
    "fewer_kernels.ascend": "减少 Kernel 数量、增大单个 Kernel：融合算子（torch_npu.npu_*）、融合优化器。",
    "graphs.cuda": '使用 CUDA graph 重放：torch.compile(mode="reduce-overhead") 或 make_graphed_callables。',
    "graphs.ascend": "将任务队列设为 TASK_QUEUE_ENABLE=2，开启绑核（CPU_AFFINITY_CONF=1），或使用图模式。",
    "record_later": "采集之后的步：schedule(wait=…, warmup=…)，或在采集之前先运行几次。",
    "larger_batch": "在显存与训练效果允许时增大 batch。",
    "compile_host": "用 torch.compile 把许多小算子合并成少量大算子。",
    "host_light_run": "采集调用栈与 Shape 会拖慢 Host：请关闭这些选项再采一次加以确认。",
    "freeze_gc": "初始化完成后调用一次 gc.freeze()，并调高阈值：gc.set_threshold(100_000, 50, 100)。",
    "collect_together": "或者 gc.disable()，每 N 步在所有 Rank 的同一步中调用 gc.collect()。",
    "no_debugging": "正式训练时请关闭调试工具。",
    "unset_launch_blocking.cuda": "取消设置环境变量 CUDA_LAUNCH_BLOCKING。",
    "unset_launch_blocking.ascend": "取消设置环境变量 ASCEND_LAUNCH_BLOCKING；它还会关闭任务队列。",
    "move_python": "把这些工作移到 DataLoader 的 worker 或其他线程中，或每 N 步才做一次。",
    "record_stacks": "用 with_stack=True 采集一次，查看具体是哪些代码行。",
    "bind_cores.cuda": (
        "把每个进程绑定到其设备所在的 CPU：torchrun --numa-binding=node，或 numactl --cpunodebind --membind。"
    ),
    "bind_cores.ascend": "绑核：CPU_AFFINITY_CONF=1（或 2）；npu-smi info -t topo 可查看亲和关系。",
    "pack_copies": "把小张量打包到一块锁页缓冲区，一次拷贝。",
    "create_on_device": "直接在设备上创建张量（device=…），不要先建在 Host 再拷贝。",
    "fused_optimizer.cuda": "优化器设置 fused=True；不支持时设置 foreach=True。",
    "fused_optimizer.ascend": "使用 torch_npu.optim 的融合优化器（NpuFusedAdamW、NpuFusedSGD 等）。",
    "fused_optimizer_host": "给优化器加上 fused=True（CPU 需 torch 2.4 及以上）；foreach=True 几乎不会更快。",
    "set_to_none": "使用 optimizer.zero_grad(set_to_none=True)。",
}

EVIDENCE = {
    "late": "以下发过晚结束的间隙",
    "depth": "队列深度中位数",
    "longest": "最长",
    "what": "内容",
    "line": "源码行",
    "median": "Launch 调用中位数",
    "slow": "90 分位",
    "each": "每步拷贝数",
    "bytes": "大小中位数",
    "time": "每步耗时",
    "busy": "忙碌",
    "kernels": "每步 Kernel 数",
    "operators": "每步算子数",
}
