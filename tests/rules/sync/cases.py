"""What the rules about sync points must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import busy, kernel, program

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
    "SYN101": [SCALAR],
    "SYN102": [NONZERO, program(waits("aten::masked_select", "aten::item"))],
    "SYN103": [PLAIN, program(waits(call="cudaDeviceSynchronize"))],
    "SYN104": [READ],
    "SYN105": [WROTE],
    "SYN106": [program(waits("aten::item", frame="torch/nn/utils/clip_grad.py(20): clip_grad_norm_"))],
    "SYN107": [program(waits("aten::item", frame="torch/amp/grad_scaler.py(400): step"))],
    "SYN108": [program(waits("c10d::wait_tensor"))],
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
