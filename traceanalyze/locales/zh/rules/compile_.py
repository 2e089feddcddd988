"""Texts of the rules about compilation and graphs (CGR)."""

from __future__ import annotations

TITLES = {
    "CGR101": "编译图被打断",
    "CGR102": "重复编译",
    "CGR103": "编译后的代码逐个下发 Kernel",
    "CGR104": "可以整步入图",
    "CGR105": "编译后的反向结束才归约梯度",
}

SENTENCES = {
    "CGR101": (
        "编译后的代码被拆成 {graphs} 个不同的图，{per}调用 {regions} 次，"
        "其间{per}有 {eager} 个来自 eager 算子的 Kernel。"
    ),
    "CGR102": "编译（共 {count} 次）{per}耗时 {host}，其中设备有 {idle} 没有任务。",
    "CGR103": "编译后的代码逐个下发 Kernel，设备{per}因此等待 {idle}。",
    "CGR104": "{steps} 步都以同样的顺序下发同样的 {kernels} 个 Kernel，设备{per}等待下发 {idle}。",
    "CGR105": "梯度的 all-reduce 在整个编译后的反向结束之后才开始：{per}有 {exposed} 没有被掩盖。",
}

ADVICE = {
    "find_graph_breaks": "TORCH_LOGS=graph_breaks 可给出打断位置；torch.compile(fullgraph=True) 会将其变为报错。",
    "find_recompiles": (
        "TORCH_LOGS=recompiles 可给出失败的 guard；变化的尺寸用 dynamic=True 或 torch._dynamo.mark_dynamic，"
        "变化的数值用张量传入。"
    ),
    "reduce_overhead": 'torch.compile(mode="reduce-overhead") 会以 CUDA graph 方式下发 Kernel。',
    "reduce_overhead.ascend": "使用 torchair 后端以图模式编译。",
    "capture_graph": '把整步捕获为图：torch.compile(mode="reduce-overhead") 或 torch.cuda.make_graphed_callables。',
    "capture_graph.ascend": "把整步捕获为图：torchair 图模式或 aclgraph。",
    "compile_after_ddp": "先用 DistributedDataParallel 包装模块，再编译包装后的模块。",
}

EVIDENCE = {
    "graphs": "图数",
    "regions": "编译区域数",
    "eager": "每步 eager Kernel 数",
    "host": "Host 耗时",
    "steps": "步数",
    "idle": "空闲时间",
}
