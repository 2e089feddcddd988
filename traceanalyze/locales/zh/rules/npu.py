"""Texts of the rules about the Ascend environment (NPU)."""

from __future__ import annotations

TITLES = {
    "NPU101": "训练中在编译算子",
    "NPU102": "任务队列级别",
    "NPU103": "线程没有绑核",
    "NPU104": "日志级别",
    "NPU105": "算子缓存",
    "NPU106": "没有开启惰性融合",
    "NPU107": "优化器没有融合",
    "NPU108": "影响性能的设置",
}

SENTENCES = {
    "NPU101": "{count} 次算子编译{per}耗时 {host}，其中设备有 {idle} 没有任务。",
    "NPU102": "设备有单步的 {share} 在等待 Host，而任务队列线程有单步的 {busy} 在忙碌。",
    "NPU103": "设备有单步的 {share} 在等待 Host，而各线程没有绑核。",
    "NPU104": "各组件库从 {level} 级别开始打印日志。",
    "NPU105": "{once} 的算子调用，其 Shape 在 {steps} 步中只出现在一步里，而算子缓存为默认大小。",
    "NPU106": "{count} 个逐元素 Kernel {per}耗时 {time}（占计算 {part}）；没有开启惰性融合。",
    "NPU107": "{optimizer} {per}下发 {kernels} 个 Kernel（{time}）；torch_npu 有对应的融合优化器。",
    "NPU108": "{variable} 被设为 {setting}。",
}

ADVICE = {
    "no_jit_compile": (
        "设置 torch_npu.npu.set_compile_mode(jit_compile=False)；torch_npu.npu.config.allow_internal_format = "
        "False；ACL_OP_COMPILER_CACHE_MODE=enable。"
    ),
    "task_queue_level": "设置 TASK_QUEUE_ENABLE=2（占用更多显存；ASCEND_LAUNCH_BLOCKING 开启时无效）。",
    "bind_npu": "设置 CPU_AFFINITY_CONF=2，或设为 1 并加 npu_affine:1；npu-smi info -t topo 可查看各设备的亲和核。",
    "errors_only": "设置 ASCEND_GLOBAL_LOG_LEVEL=3。",
    "larger_op_cache": "设置 ACLNN_CACHE_LIMIT=100000 与 HOST_CACHE_CAPACITY=20。",
    "lazy_fusion": "尝试 TORCH_NPU_LAZY_FUSION=True（试验特性）。",
    "npu_fused_optimizer": "换用 torch_npu.optim.NpuFusedAdamW、NpuFusedSGD 等融合优化器。",
    "review_environment": "除非清楚为什么要设置，否则请取消；默认值适合几乎所有程序。",
}

EVIDENCE = {
    "level": "级别",
    "once": "只在一步出现的 Shape 的调用",
    "optimizer": "优化器",
    "variable": "变量",
    "setting": "取值",
    "count": "数量",
}
