"""Texts of the rules about the Ascend environment (NPU)."""

from __future__ import annotations

TITLES = {
    "NPU101": "operators compiled while training",
    "NPU102": "level of the task queue",
    "NPU103": "threads bound to no cores",
    "NPU104": "log level",
    "NPU105": "caches of operators",
    "NPU106": "no lazy fusion",
    "NPU107": "optimizer that is not fused",
    "NPU108": "settings that cost time",
}

SENTENCES = {
    "NPU101": "{count} compilation(s) of operators take {host} {per}; the device has no work for {idle} of it.",
    "NPU102": (
        "The device waits for the host {share} of the step, while the thread of the task queue is busy {busy} of it."
    ),
    "NPU103": "The device waits for the host {share} of the step, and the threads are bound to no cores.",
    "NPU104": "The libraries log from level {level} on.",
    "NPU105": (
        "{once} of the operator calls have shapes that only one of {steps} steps has, and the caches of "
        "operators have their default size."
    ),
    "NPU106": "{count} element-wise kernels take {time} {per} ({part} of compute); lazy fusion is not on.",
    "NPU107": "{optimizer} launches {kernels} kernels {per} ({time}); torch_npu has a fused one.",
    "NPU108": "{variable} is set to {setting}.",
}

ADVICE = {
    "no_jit_compile": (
        "torch_npu.npu.set_compile_mode(jit_compile=False); torch_npu.npu.config.allow_internal_format = "
        "False; ACL_OP_COMPILER_CACHE_MODE=enable."
    ),
    "task_queue_level": "TASK_QUEUE_ENABLE=2 (takes more memory; off under ASCEND_LAUNCH_BLOCKING).",
    "bind_npu": "CPU_AFFINITY_CONF=2, or 1 with npu_affine:1; npu-smi info -t topo shows the cores near each device.",
    "errors_only": "ASCEND_GLOBAL_LOG_LEVEL=3.",
    "larger_op_cache": "ACLNN_CACHE_LIMIT=100000 and HOST_CACHE_CAPACITY=20.",
    "lazy_fusion": "Try TORCH_NPU_LAZY_FUSION=True (experimental).",
    "npu_fused_optimizer": "torch_npu.optim.NpuFusedAdamW, NpuFusedSGD and the like in its place.",
    "review_environment": "Unset it, unless you know why it is set; the default suits nearly all programs.",
}

EVIDENCE = {
    "level": "level",
    "once": "calls with shapes of one step",
    "optimizer": "optimizer",
    "variable": "variable",
    "setting": "set to",
    "count": "number",
}
