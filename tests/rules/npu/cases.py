"""What the rules about the Ascend environment must find, and what not: id → programs."""

from __future__ import annotations

from dataclasses import replace

from tests.ascend_builder import PID, AscendBuilder
from tests.rules.make import Fires, crowded, program
from tests.rules.sequences import read_npu

STEP = 4000


def work(b, at, number):
    """The device is busy for most of the step."""
    b.op("aten::mm", at + 5, 20)
    b.kernel("aclnnMatMul_1", at + 100, 3700, op_type="MatMulV2", launch=at + 10)


def program_npu(body, **metadata):
    b = AscendBuilder()
    for number in range(4):
        b.step(number, number * STEP, STEP - 1)
        body(b, number * STEP, number)
    return read_npu(b, **metadata)


def slow_host(b, at, number, *, shapes="8,8", dequeue=True):
    """Kernels of 3 µs, launched 40 µs apart."""
    for part in range(90):
        t = at + 40 * part
        b.op("aten::add", t, 36, **{"Input Dims": shapes, "Input type": "float"})
        if dequeue:
            b.queued("aclnnAdd", t + 2, t + 6, 30)
        b.kernel("aclnnAdd_1", t + 32, 3, op_type="Add", core="AI_VECTOR_CORE", launch=t + 30)


def idle_queue(b, at, number):
    slow_host(b, at, number, dequeue=False)


def new_shapes(b, at, number):
    slow_host(b, at, number, shapes=f"8,{number + 8}")


def compiling(count, busy=False):
    def body(b, at, number):
        for part in range(count):
            b.call("aclopCompileAndExecute", at + 150 + 60 * part, 50)
        b.kernel("aclnnMatMul_1", at + 100, 3700 if busy else 40, op_type="MatMulV2", launch=at + 10)
        b.kernel("aclnnMatMul_1", at + 3850, 100, op_type="MatMulV2", launch=at + 3700)

    return body


def pointwise(count):
    def body(b, at, number):
        for part in range(count):
            t = at + 80 * part
            b.kernel("aclnnMul_1", t + 20, 70, op_type="Mul", core="AI_VECTOR_CORE", launch=t + 2)

    return body


def optimizing(name, kernels):
    def body(b, at, number):
        b.op(f"Optimizer.step#{name}.step", at + 10, 3000)
        for part in range(kernels):
            t = at + 20 + 20 * part
            b.op("aten::mul_", t, 10)
            b.kernel("aclnnMul_1", t + 12, 5, op_type="Mul", core="AI_VECTOR_CORE", launch=t + 5)
            b.flow("async_npu", part + 1000 * number + 1, (PID, PID, t), (b.npu, 2, t + 12))

    return body


UNBOUND = {"CPU_AFFINITY_CONF": "", "TASK_QUEUE_ENABLE": ""}
SLOW = program_npu(slow_host, **UNBOUND)
NEW_SHAPES = program_npu(new_shapes, **UNBOUND)
CHAINS = program_npu(pointwise(40))
BUSY = program_npu(work, ASCEND_GLOBAL_LOG_LEVEL="3", HCCL_ALGO="")


def stating(trace, **environment):
    return replace(trace, environment=environment)


FIRES = {
    "NPU101": [
        Fires(
            program_npu(compiling(30)),
            saving=1500,
            severity="HIGH",
            count=120,
            evidence={"idle": 1500, "host": 1500, "count": 120},
            ops=("aclopCompileAndExecute",),
            draws="idle",
            each=1500,
            first=(150, 200),
            look=(150, 200),
            options={"least": (20, 120, 121)},
        )
    ],
    "NPU102": [
        Fires(
            SLOW,
            severity="LOW",
            count=360,
            evidence={"share": 0.742686, "busy": 0.675169},
            ops=("TASK_QUEUE_ENABLE",),
            options={
                "share": (0.1, 0.7426856714178545, 0.7426856714178546),
                "busy": (0.5, 0.6751687921980495, 0.6751687921980496),
            },
        )
    ],
    "NPU103": [
        Fires(
            SLOW,
            severity="LOW",
            evidence={"share": 0.742686},
            ops=("CPU_AFFINITY_CONF",),
            options={"share": (0.1, 0.7426856714178545, 0.7426856714178546)},
        )
    ],
    "NPU104": [
        Fires(
            stating(BUSY, ASCEND_GLOBAL_LOG_LEVEL="1"),
            severity="LOW",
            evidence={"level": "1"},
            ops=("ASCEND_GLOBAL_LOG_LEVEL",),
        )
    ],
    "NPU105": [
        Fires(
            NEW_SHAPES,
            severity="LOW",
            evidence={"once": 1, "steps": 4},
            ops=("ACLNN_CACHE_LIMIT",),
            options={"share": (0.1, 0.7426856714178545, 0.7426856714178546), "once": (0.25, 1, 1.01)},
        )
    ],
    "NPU106": [
        Fires(
            stating(CHAINS, ASCEND_GLOBAL_LOG_LEVEL=""),
            evidence={"time": 2800, "part": 1, "count": 160},
            ops=("TORCH_NPU_LAZY_FUSION",),
            options={"share": (0.1, 1, 1.01), "least": (20, 40, 41)},
        )
    ],
    "NPU107": [
        Fires(
            program_npu(optimizing("AdamW", 120)),
            severity="LOW",
            count=4,
            evidence={"optimizer": "AdamW", "kernels": 120, "time": 600},
            ops=("Optimizer.step#AdamW.step",),
            options={"least": (100, 120, 121)},
        )
    ],
    "NPU108": [
        Fires(
            stating(BUSY, HCCL_ALGO="level0:NA;level1:ring"),
            severity="LOW",
            evidence={"variable": "HCCL_ALGO", "setting": "level0:NA;level1:ring"},
            ops=("HCCL_ALGO",),
        ),
        Fires(
            stating(BUSY, ASCEND_LAUNCH_BLOCKING="1"),
            severity="LOW",
            evidence={"variable": "ASCEND_LAUNCH_BLOCKING", "setting": "1"},
            ops=("ASCEND_LAUNCH_BLOCKING",),
        ),
        Fires(
            stating(BUSY, MULTI_STREAM_MEMORY_REUSE="0"),
            severity="LOW",
            evidence={"variable": "MULTI_STREAM_MEMORY_REUSE", "setting": "0"},
            ops=("MULTI_STREAM_MEMORY_REUSE",),
        ),
    ],
}
SILENT = {
    "NPU101": [program_npu(compiling(30, busy=True)), program_npu(compiling(4))],
    "NPU102": [stating(SLOW, TASK_QUEUE_ENABLE="2"), program_npu(idle_queue), BUSY, program(crowded).trace()],
    "NPU103": [stating(SLOW, CPU_AFFINITY_CONF="2"), stating(BUSY, CPU_AFFINITY_CONF=""), stating(SLOW)],
    "NPU104": [BUSY, stating(BUSY, ASCEND_GLOBAL_LOG_LEVEL="")],
    "NPU105": [stating(NEW_SHAPES, ACLNN_CACHE_LIMIT="100000"), SLOW],
    "NPU106": [stating(CHAINS, TORCH_NPU_LAZY_FUSION="True"), CHAINS, BUSY],
    "NPU107": [program_npu(optimizing("NpuFusedAdamW", 120)), program_npu(optimizing("AdamW", 10))],
    "NPU108": [BUSY, stating(BUSY, HCCL_BLOCKING_WAIT="0")],
}
