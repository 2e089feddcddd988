"""What the rules about the host must find, and what not: id → programs."""

from __future__ import annotations

from tests.rules.make import busy, crowded, kernel, program


def many_kernels(gap):
    """Kernels of 50 µs that all lie in the queue before the first begins."""

    def body(b, at, number):
        for part in range(30):
            b.op("aten::mul", at + 6 * part, 5)
            # Not a clock of whole microseconds.
            b.launch(at + 6 * part + 1.125, 3, at + 200 + part * (50 + gap), 50)

    return body


def collected(b, at, number):
    if number == 1:
        b.event("gc", "Python GC", at + 10, 1500)
        for part in range(4):
            kernel(b, at + 1600 + 100 * part, 75)
    else:
        busy(b, at, number)


def collected_under_work(b, at, number):
    kernel(b, at, 1900)
    b.event("gc", "Python GC", at + 100, 1500)


def stopped(chosen):
    """The whole host stands still for 12 ms in the chosen steps of 20 ms."""

    def body(b, at, number):
        pause = 12_000 if number in chosen else 0
        kernel(b, at, 1000)
        kernel(b, at + 1100 + pause, 17_000 - pause)

    return body


def anomaly(b, at, number):
    b.python("torch/autograd/anomaly_mode.py(80): __enter__", at, 50)
    busy(b, at, number)


def blocking(sync):
    def body(b, at, number):
        for part in range(30):
            t = at + part * 60
            b.op("aten::mul", t, 10)
            b.launch(t + 1, 5, t + 8, 40)
            if sync:
                b.api("cudaStreamSynchronize", t + 11, 38)

    return body


def after_python(time):
    def body(b, at, number):
        kernel(b, at + time, 1980 - time)

    return body


def uneven(slow):
    def body(b, at, number):
        for part in range(100):
            t = at + part * 20
            b.op("aten::mul", t, 18)
            b.launch(t + 1, slow if part % 5 == 0 else 3, t + 17, 1)

    return body


def copied(count, size):
    def body(b, at, number):
        for part in range(count):
            b.copy(at + part * 50, 5, at + part * 50 + 10, 20, name="Memcpy HtoD (Pinned -> Device)", bytes=size)
        kernel(b, at + 1000, 900)

    return body


def half_idle(part):
    def body(b, at, number):
        b.op("aten::mm", at, 2000 * (1 - part))
        b.launch(at + 2000 * (1 - part) - 10, 5, at + 2000 * (1 - part), 2000 * part)

    return body


def optimized(op, count):
    def body(b, at, number):
        kernel(b, at, 500)
        b.annotation("Optimizer.step#Adam.step", at + 520, 10 * count)
        for part in range(count):
            kernel(b, at + 520 + 10 * part, 5, host=4, op=op)

    return body


def zeroed(name):
    def body(b, at, number):
        b.annotation(name, at, 420)
        for part in range(20):
            b.op("aten::zero_", at + 20 * part, 10)
            b.launch(
                at + 20 * part + 2, 4, at + 20 * part + 8, 10, api="cudaMemsetAsync", cat="gpu_memset", name="Memset"
            )
        kernel(b, at + 500, 1400)

    return body


FIRES = {
    "HST101": [program(crowded)],
    "HST102": [program(crowded)],
    "HST103": [program(many_kernels(8))],
    "HST104": [program(collected), program(stopped({1, 3}), length=20_000)],
    "HST105": [program(anomaly)],
    "HST106": [program(blocking(sync=True))],
    "HST107": [program(after_python(900))],
    "HST108": [program(uneven(15))],
    "HST109": [program(copied(12, 1024))],
    "HST110": [program(half_idle(0.3))],
    "HST111": [program(optimized("aten::addcdiv_", 120)), program(optimized("aten::_foreach_add_", 30))],
    "HST112": [program(zeroed("Optimizer.zero_grad#Adam.zero_grad"))],
}

SILENT = {
    "HST101": [program(busy), program(many_kernels(1))],
    "HST102": [program(busy)],
    "HST103": [program(many_kernels(1)), program(crowded)],
    "HST104": [program(busy), program(collected_under_work), program(stopped({1}), length=20_000)],
    "HST105": [program(busy)],
    "HST106": [program(blocking(sync=False)), program(busy)],
    "HST107": [program(busy), program(after_python(100))],
    "HST108": [program(uneven(4)), program(busy)],
    "HST109": [program(copied(12, 1 << 20)), program(copied(2, 1024))],
    "HST110": [program(busy), program(half_idle(0.7))],
    "HST111": [program(optimized("aten::_fused_adamw_", 120)), program(busy)],
    "HST112": [program(zeroed("something else"))],
}
