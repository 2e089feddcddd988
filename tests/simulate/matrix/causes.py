"""What is put into programs, which rules may name it, and what it would be mended to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.workload import Fault

if TYPE_CHECKING:
    from tests.simulate.workload import Workload

Setting = tuple[tuple[str, float], ...]

LAUNCHING = ("HST101", "HST102", "HST110", "CGR103", "CGR104", "NPU102", "NPU103")
"""Rules that say that the host is too slow as a whole."""
RANKS, BOTH = ("RNK101", "RNK102"), ("nvidia", "ascend")


@dataclass(frozen=True, slots=True)
class Cause:
    """A fault of the simulator in programs that the device, or the host, limits."""

    fault: str
    rules: tuple[str, ...]
    """That may name it; the first is expected of a single device."""
    device: float = 0
    """Its size where the device is the limit; 0: there it is not tried."""
    host: float = 0
    """And where the host is."""
    vendors: tuple[str, ...] = BOTH
    several: bool = False
    """It takes two ranks."""
    setting: Setting = ()
    """What the program is like with and without it."""
    cure: str = ""
    """What takes its place; else it goes without a trace."""
    free_host: bool = False
    """Its cure is a host that needs no time. Rules about that speak from a tenth of the step on."""
    knob: str = ""
    """Causes of one knob do not go together."""
    special: str = ""
    """`once`: it costs no step anything; `unpriced`: what it costs is seen, but not what would be without it."""

    def size(self, bound: str) -> float:
        """Its size in programs with this limit."""
        return self.device if bound == "device" else self.host


CAUSES = (
    Cause("slow_loader", ("DAT101", "DAT104"), 9, 6, knob="loader"),
    Cause("loaded_in_loop", ("DAT101",), 3, 2, cure="loaded_beside", knob="loader"),
    Cause("new_workers", ("DAT102", "DAT101"), 40, 30, setting=(("steps", 11),), knob="loader"),
    Cause("pinning", ("DAT103",), 6, 2),
    Cause("item_sync", ("SYN101",), 12, 12),
    Cause("norm_read", ("SYN106", "SYN101"), 900, 900, cure="norm"),
    Cause("device_sync", ("SYN103",), 3, 3),
    Cause("pageable_copy", ("SYN105", "SYN103"), 0.6, 0.6),
    Cause("small_copies", ("HST109",), 60, 40),
    Cause("collections", ("HST104",), 12, 6),
    Cause("program_pause", ("HST107", "HST113"), 6, 3, knob="pause"),
    Cause("slow_op", ("HST114", "HST113", "HST107"), 2500, 600),
    Cause("unused_search", ("COM103",), 6, 3),
    Cause("compile_again", ("CGR102",), 16, 8),
    Cause("host_slow", LAUNCHING, 6, 2, free_host=True, knob="host"),
    Cause("small_kernels", LAUNCHING, 32, 16, free_host=True, knob="model"),
    Cause("loop_optimizer", ("HST111",), 2, 2, knob="optimizer"),
    Cause("listed_optimizer", ("HST111",), 2, 2, knob="optimizer"),
    Cause("zero_fill", ("HST112",), 2, 2),
    Cause("empty_cache", ("MEM102",), 0.3, 0.3),
    Cause("churn", ("MEM101", "MEM103"), 4, 4),
    Cause("fp32", ("KRN101",), 3, 3, vendors=("nvidia",), knob="types"),
    Cause("plain_attention", ("KRN104",), 512, 512, knob="model"),
    Cause("written_out", ("KRN106",), 6, 6),
    Cause("odd_vocabulary", ("KRN102",), 1.5, 1.5, setting=(("vocabulary", 32768),)),
    Cause("casts", ("KRN110",), 2, 2, knob="types"),
    Cause("relayouts", ("KRN107",), 2, 2),
    Cause("quantized", ("KRN110", "KRN106", "KRN105", "KRN120"), 1, 1, cure="dequantized", knob="types"),
    Cause("layout_changes", ("KRN107",), 40, 40, vendors=("ascend",)),
    Cause("scalar_kernel", ("KRN116",), 1500, 1000, vendors=("ascend",)),
    Cause("straggler", RANKS, 1.4, 1.6, several=True, knob="late"),
    Cause("late_batches", RANKS, 8, 6, several=True, knob="loader"),
    Cause("late_host", RANKS, 6, 3, several=True, knob="late"),
    Cause("host_barrier", RANKS, 1.4, 1.6, several=True, cure="barrier", knob="late"),
    Cause("late_buckets", ("COM101", "COM105"), 6, 3, several=True, cure="due_buckets"),
    Cause("blocking_metric", ("COM107", "COM101"), 64, 16, several=True, cure="metric"),
    Cause("always_synced", ("COM102",), 1, 1, several=True, setting=(("micro_steps", 2),)),
    Cause("list_gather", ("COM106",), 2, 2, vendors=("nvidia",), several=True, setting=(("sharded", 1),)),
)
SPECIAL = (
    Cause("compile_once", ("CGR106", "CGR102"), 60, 30, special="once"),
    Cause("graph_capture", ("CGR102", "CGR104", "CGR106", "HST107"), 1, 1, vendors=("nvidia",), special="once"),
    # That only other ranks' recordings tell what communication waits for is COM101's word, too.
    Cause("dead_rank", ("COM120", "COM101", "RNK105", "CAP105", "RNK101"), 1.5, 2, several=True, special="unpriced"),
)
"""Judged by themselves."""
BY_NAME = {cause.fault: cause for cause in (*CAUSES, *SPECIAL)}


def with_causes(base: Workload, bound: str, causes: tuple[Cause, ...], setting: Setting = ()) -> Workload:
    """The program with all of them; settings come first."""
    before = [Fault(*each) for cause in causes for each in cause.setting] + [Fault(*each) for each in setting]
    return replace(base, faults=(*before, *(Fault(cause.fault, cause.size(bound)) for cause in causes)))


def mended(workload: Workload, *causes: Cause) -> Workload:
    """The program without them, all else equal."""
    cured = {cause.fault: cause for cause in causes}
    faults = []
    for fault in workload.faults:
        cause = cured.get(fault.name)
        if cause is None:
            faults.append(fault)
        elif cause.cure:
            faults.append(Fault(cause.cure, fault.size))
        elif cause.free_host:
            faults.append(fault)
    # Last, so that it holds whatever the other faults make of the host.
    if any(cause.free_host for cause in causes):
        faults.append(Fault("free_host", 1))
    return replace(workload, faults=tuple(faults))
