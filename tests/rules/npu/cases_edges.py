"""Rules about the Ascend environment where the queue is filled for half of the step: id → programs."""

from __future__ import annotations

from tests.rules.make import Fires, Silent
from tests.rules.npu.cases import UNBOUND, program_npu


def bursts(b, at, number, *, shapes="8,8"):
    """Kernels of 20 µs that are queued all at once, then some of 3 µs that come 40 µs apart."""
    told = {"Input Dims": shapes, "Input type": "float"} if shapes else {}
    for part in range(60):
        t = at + 3 * part
        b.op("aten::add", t, 2, **told)
        b.kernel("aclnnAdd_1", at + 10 + 20 * part, 20, op_type="Add", core="AI_VECTOR_CORE", launch=t + 1)
    b.queued("aclnnAdd", at + 2, at + 4, 2500)
    for part in range(40):
        t = at + 1300 + 40 * part
        b.op("aten::add", t, 36, **told)
        b.kernel("aclnnAdd_1", t + 32, 3, op_type="Add", core="AI_VECTOR_CORE", launch=t + 30)


def half_new(b, at, number):
    """The shapes of half of the steps come only once."""
    bursts(b, at, number, shapes=f"8,{max(number, 1)}")


def shapes_before(b, at, number):
    """Shapes were recorded only before the first step."""
    bursts(b, at, number, shapes=None)
    if number == 0:
        b.op("aten::add", at - 10, 2, **{"Input Dims": "8,8", "Input type": "float"})


SLOW, NEW = program_npu(bursts, **UNBOUND), program_npu(half_new, **UNBOUND)

FIRES = {
    "NPU102": [
        Fires(
            SLOW,
            severity="LOW",
            count=4,
            evidence={"share": 0.385096, "busy": 0.625156},
            ops=("TASK_QUEUE_ENABLE",),
            options={
                "share": (0.1, 0.38509627406851715, 0.3850962740685172),
                "late": (0.2, 801 / 893, 0.897),
                "busy": (0.5, 0.6251562890722681, 0.6251562890722682),
            },
        )
    ],
    "NPU103": [
        Fires(
            SLOW,
            severity="LOW",
            evidence={"share": 0.385096},
            ops=("CPU_AFFINITY_CONF",),
            options={
                "share": (0.1, 0.38509627406851715, 0.3850962740685172),
                "late": (0.2, 801 / 893, 0.897),
            },
        )
    ],
    "NPU105": [
        Fires(
            NEW,
            severity="LOW",
            evidence={"once": 0.5, "steps": 4},
            ops=("ACLNN_CACHE_LIMIT",),
            options={
                "share": (0.1, 0.38509627406851715, 0.3850962740685172),
                "late": (0.2, 801 / 893, 0.897),
                "once": (0.25, 0.5, 0.51),
            },
        )
    ],
}
SILENT = {"NPU105": [SLOW, Silent(NEW, once=0.51), program_npu(shapes_before, **UNBOUND)]}
