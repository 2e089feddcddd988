"""What the rules about sync points must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import Fires, busy, kernel, program

D2H, H2D = "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)"


def waits(*ops, after=400, frame=None, call="cudaStreamSynchronize"):
    """The host waits under the operators for a kernel; the next one comes `after` µs later."""

    def body(b, at, number):
        kernel(b, at, 1000)
        for depth, op in enumerate(ops):
            b.op(op, at + 100 + depth, 930 - 2 * depth)
        if frame is not None:
            b.python(frame, at + 99, 940)
        b.api(call, at + 110, 915)
        kernel(b, at + 1025 + after, 500 - after / 2)

    return body


def copies(name, *, op="aten::copy_", speed=1.0):
    """A blocking copy of 100 µs in the middle of the step; nothing is queued behind it."""

    def body(b, at, number):
        kernel(b, at, 1000)
        b.op(op, at + 100, 1110)
        b.copy(at + 110, 1090, at + 1030, 160, name=name, bytes=int(speed * 160_000))
        kernel(b, at + 1500, 400)

    return body


def queued(b, at, number):
    """The host waits for a small kernel while more is queued: nothing is lost."""
    b.op("aten::item", at + 40, 960)
    b.launch(at + 1, 5, at + 10, 990)
    b.launch(at + 20, 5, at + 1000, 980, stream=8)
    b.api("cudaStreamSynchronize", at + 50, 940)


SCALAR = program(waits("aten::item", "aten::_local_scalar_dense"))
NONZERO = program(waits("aten::index", "aten::nonzero"))
PLAIN = program(waits())
READ = program(copies(D2H))
WROTE = program(copies(H2D))

FIRES = {
    "SYN101": [
        Fires(
            SCALAR,
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("aten::_local_scalar_dense",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="aten::_local_scalar_dense",
        )
    ],
    "SYN102": [
        Fires(
            NONZERO,
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("aten::nonzero",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="aten::nonzero",
        ),
        Fires(
            program(waits("aten::masked_select", "aten::item")),
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("aten::item",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="aten::item",
        ),
    ],
    "SYN103": [
        Fires(
            PLAIN,
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("cudaStreamSynchronize",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="cudaStreamSynchronize",
        ),
        Fires(
            program(waits(call="cudaDeviceSynchronize")),
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("cudaDeviceSynchronize",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="cudaDeviceSynchronize",
        ),
    ],
    "SYN104": [
        Fires(
            READ,
            saving=582.375,
            bound=652.26,  # The copy is gone, too: no idle time alone, and 12 % more.
            cost=500,
            severity="HIGH",
            count=4,
            evidence={"idle": 340, "exposed": 160, "count": 4, "blocked": 1090, "place": 340},
            ops=("aten::copy_",),
            draws="idle.sync",
            each=500,
            first=(1020, 1520),
            look=(110, 1200),
            line="aten::copy_",
        )
    ],
    "SYN105": [
        Fires(
            WROTE,
            saving=569.042,
            bound=637.327,  # Copies are faster, too: no idle time alone, and 12 % more.
            cost=500,
            severity="HIGH",
            count=4,
            evidence={"idle": 340, "exposed": 160, "count": 4, "place": 340},
            ops=("aten::copy_",),
            draws="idle.sync",
            each=500,
            first=(1020, 1520),
            look=(110, 1200),
            line="aten::copy_",
        )
    ],
    "SYN106": [
        Fires(
            program(waits("aten::item", frame="torch/nn/utils/clip_grad.py(20): clip_grad_norm_")),
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("aten::item",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="aten::item",
        )
    ],
    "SYN107": [
        Fires(
            program(waits("aten::item", frame="torch/amp/grad_scaler.py(400): step")),
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("aten::item",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="aten::item",
        )
    ],
    "SYN108": [
        Fires(
            program(waits("c10d::wait_tensor")),
            saving=692.375,
            cost=425,
            severity="HIGH",
            count=4,
            evidence={"idle": 425, "count": 4, "blocked": 915, "place": 425},
            ops=("c10d::wait_tensor",),
            draws="idle.sync",
            each=425,
            first=(1020, 1445),
            look=(110, 1025),
            line="c10d::wait_tensor",
        )
    ],
}

SILENT = {
    "SYN101": [program(busy), program(queued), NONZERO, PLAIN],
    "SYN102": [program(busy), SCALAR],
    "SYN103": [program(busy), SCALAR],
    "SYN104": [program(busy), SCALAR, WROTE],
    "SYN105": [program(busy), READ],
    "SYN106": [SCALAR],
    "SYN107": [SCALAR],
    "SYN108": [SCALAR],
}
