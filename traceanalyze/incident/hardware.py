"""What a host's kernel and the tools of devices say: messages of drivers, and states of devices over time.

okm is NVIDIA/open-gpu-kernel-modules, gpud leptonai/gpud, whose table of Xids is made of NVIDIA's catalogue
(2025-10-29). A state that was recorded once, after a crash, shows idle clocks and counters that were reset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from traceanalyze.incident.evidence import UNKNOWN, Device, Event, Evidence, FileRead, Series, Source, Value, What
from traceanalyze.incident.lines import YEAR_2200, bus_of, message_of, stamp_of, text_of
from traceanalyze.incident.text import Row, said
from traceanalyze.model.patterns import regex

_APP, _RESET, _IGNORE = "restart the program", "reset the GPU", "no action by itself"
XIDS: Final[Mapping[int, tuple[str, str, int]]] = {
    # Code → meaning, action, whether it is mostly the hardware.
    13: ("graphics engine exception", _APP, 0),
    31: ("GPU memory page fault", _APP, 0),
    32: ("invalid or corrupted push buffer", _APP, 0),
    43: ("GPU stopped processing, a fault of the program", _IGNORE, 0),
    45: ("preemptive clean-up after an earlier error", "follow the other Xid", 0),
    46: ("GPU stopped processing", _RESET, 1),
    48: ("double-bit ECC error", "drain the node and reset the GPU", 1),
    62: ("internal micro-controller halt", _RESET, 1),
    63: ("row remapping event", _IGNORE, 1),
    64: ("row remapping failure", _RESET, 1),
    69: ("graphics engine class error", _APP, 0),
    74: ("NVLink error", "check the NVLink", 1),
    79: ("GPU has fallen off the bus", "restart the machine", 1),
    92: ("high rate of single-bit ECC errors", _IGNORE, 1),
    94: ("contained memory error", _APP, 1),
    95: ("uncontained memory error", _RESET, 1),
    109: ("context switch timeout", _RESET, 0),
    110: ("security fault", _RESET, 0),
    119: ("GSP RPC timeout", _RESET, 1),
    120: ("GSP error", _RESET, 1),
    121: ("C2C error", _IGNORE, 1),
    136: ("link training failed", "reset the GPU, check the link", 1),
    137: ("NVLink privilege error", _APP, 0),
    140: ("unrecovered ECC error", _RESET, 1),
    143: ("GPU initialisation error", _RESET, 1),
    **dict.fromkeys(range(144, 151), ("NVLink 5 error", "check the link that its subcode names", 1)),
    154: ("recovery action changed", "do what it names; another Xid is the cause", 1),
    155: ("NVLink error defined by software", _RESET, 1),
    156: ("resource retirement event", _RESET, 1),
    157: ("resource retirement failure", "contact support", 1),
    158: ("GPU fatal timeout", _RESET, 1),
    171: ("uncorrectable DRAM error", "drain the node and reset the GPU", 1),
    172: ("uncorrectable SRAM error", "drain the node and reset the GPU", 1),
}


def _xid(data: Mapping[str, Value]) -> Mapping[str, Value]:
    known = XIDS.get(int(data.get("code", 0)))
    return {} if known is None else {"meaning": known[0], "action": known[1], "hardware": known[2]}


KERNEL: tuple[Row, ...] = (
    # okm: nvErrorLog
    said(What.SXID, rb"SXid \((?:PCI:)?(?P<device>[0-9a-fA-F:.]+)\): (?P<code>\d+), (?P<fatal>Fatal|Non-fatal)?"),
    said(
        What.XID,
        rb"Xid \((?:PCI:)?(?P<device>[0-9a-fA-F:.]+)(?: GPU-I:\w+)?[^)]*\): (?P<code>\d+)"
        rb"(?:, pid='?(?P<pid>[^,']*)'?)?(?:, name=(?P<process>[^,]*))?, (?P<text>.*)",
        needle=b"Xid (",
        explain=_xid,
    ),
    said(
        What.XID, rb"NVRM: (?:The NVIDIA )?GPU (?P<device>[0-9a-fA-F:.]+):? .*fallen off the bus", code=79, explain=_xid
    ),
    said(What.XID, rb"fallen off the bus", code=79, explain=_xid),
    # Linux, 5.0 and later
    said(
        What.HOST_OOM,
        rb"oom-kill:constraint=(?P<scope>\w+),.*?task_memcg=(?P<cgroup>[^,]*),task=(?P<process>[^,]*),pid=(?P<pid>\d+)",
        oom_kill=1,
    ),
    # Linux: oom_kill.c
    said(
        What.HOST_OOM,
        rb"(?P<scope>Memory cgroup out|Out) of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)"
        rb"(?:.*?anon-rss:(?P<anon_rss_kb>\d+)kB)?",
        oom_kill=1,
    ),
    said(What.HOST_OOM, rb"(?<!\S)(?P<process>\S+) invoked oom-killer"),
    said(What.MARK, rb"oom_reaper: reaped process (?P<pid>\d+)"),
    # Linux; gpud
    said(What.ECC, rb"EDAC MC\d+: (?P<corrected>\d+) CE ", where="host"),
    said(What.ECC, rb"EDAC MC\d+: (?P<uncorrected>\d+) UE ", where="host"),
    said(What.ECC, rb"Memory failure: 0x[0-9a-f]+: ", where="host"),
    said(What.HOST_FAULT, rb"\[Hardware Error\]: (?P<text>.*)", part="machine"),
    said(
        What.HOST_FAULT,
        rb"CPU\d+: .*temperature above threshold, cpu clock throttled \(total events = (?P<events>\d+)\)",
        part="processor",
    ),
    said(
        What.HOST_FAULT,
        rb"task (?P<process>[^:]+):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds",
        part="task",
    ),
    said(
        What.HOST_FAULT,
        rb"BUG: soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s! \[(?P<process>[^:\]]+):(?P<pid>\d+)\]",
        part="processor",
    ),
    # Linux: fault.c
    said(What.SEGFAULT, rb"(?<!\S)(?P<process>\S+)\[(?P<pid>\d+)\]: segfault at .* in (?P<library>[^\[\s]+)"),
    # Linux; gpud
    said(What.LINK_ERROR, rb"mlx5_core (?P<device>\S+): Port module event\[error\]: module \d+, (?P<code>.*)"),
    said(What.LINK_ERROR, rb"(?P<nic>mlx5_\d+): Port: \d+ Link DOWN"),
    said(What.LINK_ERROR, rb"insufficient power on the PCIe slot"),
    # Linux: pcie/aer.c
    said(What.LINK_ERROR, rb"pcieport (?P<device>[0-9a-f:.]+): (?:AER|DPC): (?P<code>.*[Ee]rror.*)"),
    # Linux; gpud
    said(What.HOST_FAULT, rb"nvme \S+: I/O \d+ QID \d+ timeout", part="storage"),
    said(What.HOST_FAULT, rb"Remounting filesystem read-only", part="storage"),
    said(What.HOST_FAULT, rb"nfs: server \S+ not responding", part="storage"),
    said(What.DEVICE_LOST, rb"amdgpu_job_timedout.*?\*ERROR\* ring (?P<ring>\S+) timeout"),
    said(What.DEVICE_LOST, rb"amdgpu (?P<device>[0-9a-f:.]+): amdgpu: GPU reset(?: begin!|\(\d+\))"),
    said(What.DEVICE_LOST, rb"VRAM is lost due to GPU reset"),
    said(What.DEVICE_ERROR, rb"page fault \(src_id", vendor="amd"),
)


# --- Devices over time -----------------------------------------------------------------------------------------------

THROTTLES: Final = (
    (0x08, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
)
"""Bits of NVML's mask that explain a slow device; 0x4, the software's power cap, is normal at full load."""
_SLOW: Final = sum(bit for bit, _ in THROTTLES)


class Quantity(NamedTuple):
    """What a column is of."""

    name: str
    unit: str
    factor: float = 1.0


_CLOCK, _MEMORY_CLOCK = Quantity("clock", "MHz"), Quantity("memory_clock", "MHz")
_POWER, _TEMPERATURE, _BUSY = Quantity("power", "W"), Quantity("temperature", "°C"), Quantity("utilisation", "%")
_USED, _MASK, _XID = Quantity("memory_used", "bytes", float(1 << 20)), Quantity("throttle", ""), Quantity("xid", "")
_ECC, _REPLAYS = Quantity("ecc_uncorrected", ""), Quantity("pcie_replays", "")
COLUMNS: Final[Mapping[str, Quantity]] = {
    name: quantity
    # nvidia-smi --query-gpu, as its header has them; DCGM: names of the exporter, of dcgmi dmon, numbers of fields.
    for quantity, names in (
        (_CLOCK, "clocks.current.sm clocks.sm dcgm_fi_dev_sm_clock smclk 100"),
        (_MEMORY_CLOCK, "clocks.current.memory dcgm_fi_dev_mem_clock mmclk 101"),
        (_POWER, "power.draw power.draw.instant dcgm_fi_dev_power_usage power 155"),
        (_TEMPERATURE, "temperature.gpu dcgm_fi_dev_gpu_temp tmptr 150"),
        (_BUSY, "utilization.gpu dcgm_fi_dev_gpu_util gputl 203"),
        (_USED, "memory.used dcgm_fi_dev_fb_used fbusd 252"),
        (_XID, "dcgm_fi_dev_xid_errors xider 230"),
        (_MASK, "clocks_event_reasons.active clocks_throttle_reasons.active dvccu clkth 112"),
        (_MASK, "dcgm_fi_dev_clock_throttle_reasons dcgm_fi_dev_clocks_event_reasons"),
        (_ECC, "ecc.errors.uncorrected.volatile.total dcgm_fi_dev_ecc_dbe_vol_total edvol 311"),
        (_REPLAYS, "pcie.replay.counter dcgm_fi_dev_pcie_replay_counter pciec 202"),
    )
    for name in names.split()
}
_REASONS: Final = {
    "hw_slowdown": 0x08,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
_NUMBER: Final = regex(rb"0[xX][0-9a-fA-F]+|[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


def _value(raw: bytes) -> float | None:
    found = _NUMBER.match(raw.strip())
    if found is None:
        return None
    return float(int(found[0], 16)) if found[0][:2].lower() == b"0x" else float(found[0])


class _Columns:
    """Samples of devices as they come."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: dict[tuple[str, Quantity], tuple[list[int], list[int], list[float]]] = {}
        self.clock = "none"
        self.samples: dict[str, int] = {}
        self.devices: dict[str, Device] = {}

    def add(self, device: str, time: int | None, values: Iterable[tuple[Quantity, float]]) -> None:
        """One sample of one device."""
        number = self.samples[device] = self.samples.get(device, -1) + 1
        for quantity, value in values:
            steps, times, column = self.rows.setdefault((device, quantity), ([], [], []))
            steps.append(number)
            times.append(UNKNOWN if time is None else time)
            column.append(value * quantity.factor)

    def states(self, kind: str, size: int, lines: int) -> Evidence:
        """Series of all columns, and what they say happened."""
        series = [
            Series(
                quantity.name,
                quantity.unit,
                np.array(steps, np.int64),
                np.array(times, np.int64),
                np.array(values, np.float64),
                Source(self.path),
                device=device or None,
                clock=self.clock,
            )
            for (device, quantity), (steps, times, values) in self.rows.items()
        ]
        stamps = [int(time) for one in series for time in one.times[[0, -1]] if time != UNKNOWN]
        read = FileRead(self.path, kind, size, lines, sum(self.samples.values()) + len(self.samples))
        read = read._replace(first_ns=min(stamps, default=None), last_ns=max(stamps, default=None), clock=self.clock)
        events = tuple(_happened(series, self.clock))
        return Evidence(events, tuple(series), devices=tuple(self.devices.values()), files=(read,))


def _happened(series: Sequence[Series], clock: str) -> list[Event]:
    by_device = {(one.device, one.name): one for one in series}
    return [event._replace(clock=clock) for one in series for event in _changes(one, by_device)]


def _changes(one: Series, by_device: Mapping[tuple[str | None, str], Series]) -> Iterator[Event]:
    at = [None if time == UNKNOWN else time for time in one.times.tolist()]
    if one.name == "throttle":
        masks = np.where(np.isfinite(one.values), one.values, 0).astype(np.int64) & _SLOW
        for first, last in _runs(masks != 0):
            mask = int(np.bitwise_or.reduce(masks[first : last + 1]))
            reason = ", ".join(text for bit, text in THROTTLES if mask & bit)
            data: dict[str, Value] = {"mask": mask, "samples": last - first + 1, "reason": reason}
            for name, key, worst in (("clock", "clock_mhz", np.min), ("temperature", "temperature", np.max)):
                beside = by_device.get((one.device, name))
                if beside is not None and len(beside.values) == len(masks):
                    data[key] = float(worst(beside.values[first : last + 1]))
            event = Event(What.THROTTLE, reason, one.source, stamp_ns=at[first], device=one.device, data=data)
            yield event._replace(until_ns=at[last])
    # Both stay for ever: only a change is an event.
    elif one.name == "xid":
        for row in (np.flatnonzero((one.values[1:] != one.values[:-1]) & (one.values[1:] > 0)) + 1).tolist():
            data = {"code": (code := int(one.values[row])), **_xid({"code": code})}
            yield Event(What.XID, f"last Xid is {code}", one.source, stamp_ns=at[row], device=one.device, data=data)
    elif one.name == "ecc_uncorrected":
        for row in (np.flatnonzero(np.diff(one.values) > 0) + 1).tolist():
            text = f"{(count := int(one.values[row]))} uncorrected errors of memory"
            data = {"uncorrected": count}
            yield Event(What.ECC, text, one.source, stamp_ns=at[row], device=one.device, data=data)


def _runs(flags: np.ndarray) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True)


def is_device_table(head: bytes) -> str | None:
    """Which tool wrote the text, by its first lines."""
    first = head[:2000]
    if b"NVSMI LOG" in first or b"<nvidia_smi_log" in first or _ATTACHED.search(first):
        return "nvidia_smi"
    if _NPU_HEAD.search(first):
        return "npu_smi"
    if first.lstrip().startswith(b"#Entity"):
        return "dcgm"
    line = first.partition(b"\n")[0].lower()
    names = [_heading(name) for name in line.split(b",")]
    known = sum(name in COLUMNS and not name.isdigit() for name in names)
    if known and len(names) > 1 and (known > 1 or any(name in _DEVICE_NAMES or name == "timestamp" for name in names)):
        return "dcgm" if b"dcgm_fi" in line else "nvidia_smi"
    return None


_ATTACHED: Final = regex(rb"(?m)^Attached GPUs\s+: \d+")
_NPU_HEAD: Final = regex(rb"(?m)^\|\s*(?:npu-smi |NPU\s+(?:Name|ID)\b)|^\s*NPU ID\s+: \d+")
_DEVICE_NAMES: Final = ("pci.bus_id", "gpu_bus_id", "index", "gpu", "uuid", "name", "gpu_uuid", "entity")


def _heading(raw: bytes) -> str:
    return text_of(raw).strip().strip('"').partition(" [")[0].lower()


def read_table(lines: Iterator[bytes], path: str, size: int, kind: str) -> Evidence:
    """A table of devices over time: csv of nvidia-smi or DCGM, or `dcgmi dmon`."""
    columns = _Columns(path)
    names: list[str] = []
    count = 0
    for raw in lines:
        count += 1
        text = raw.strip()
        if text.startswith(b"#Entity") or not names:
            spaced = text.startswith(b"#")
            names = [_heading(name) for name in (text[1:].split() if spaced else text.split(b","))]
            places = [(at, COLUMNS[name]) for at, name in enumerate(names) if name in COLUMNS]
            reasons = [
                (at, bit) for at, name in enumerate(names) for end, bit in _REASONS.items() if name.endswith(end)
            ]
            identity = next((names.index(name) for name in _DEVICE_NAMES if name in names), None)
            number = names.index("index") if "index" in names else names.index("gpu") if "gpu" in names else None
            title = names.index("name") if "name" in names else None
            stamped = next((at for at, name in enumerate(names) if name in {"timestamp", "time"}), None)
            continue
        cells = text.split() if spaced else text.split(b",")
        if spaced and cells[:1] == [b"GPU"]:
            cells = [b" ".join(cells[:2]), *cells[2:]]
        if len(cells) != len(names):
            continue
        values = [(what, value) for at, what in places if (value := _value(cells[at])) is not None]
        if reasons and not any(what is _MASK for what, _ in values):
            values.append((_MASK, float(sum(bit for at, bit in reasons if cells[at].strip() == b"Active"))))
        stamp = None if stamped is None else _stamped(cells[stamped])
        if stamp is not None:
            columns.clock = stamp[1]
        device = "" if identity is None else _device(names[identity], text_of(cells[identity]).strip().strip('"'))
        columns.add(device, None if stamp is None else stamp[0], values)
        if device and device not in columns.devices:
            index = None if number is None else _value(cells[number])
            columns.devices[device] = Device(
                None,
                None if index is None else int(index),
                bus_of(device),
                "" if title is None else text_of(cells[title]).strip(),
                Source(path, count),
            )
    return columns.states(kind, size, count)


def _device(name: str, text: str) -> str:
    return bus_of(text) or text if "bus" in name else f"GPU {text}" if text.isdigit() else text


def _stamped(cell: bytes) -> tuple[int, str] | None:
    stamp = stamp_of(cell.strip().strip(b'"'))
    if stamp is not None:
        return stamp.ns, stamp.clock
    value = _value(cell)
    if value is None or not 1e9 <= value < YEAR_2200 * 1e9:
        return None
    # Unix time in s, ms, µs or ns.
    return int(value * 10 ** (9 - 3 * min(int(np.log10(value / 1e9) // 3), 3))), "utc"


# --- One state, as a tool prints it ----------------------------------------------------------------------------------

_GPU: Final = regex(r"^GPU ([0-9A-Fa-f:.]+)$")
_STATED: Final = (
    # End of a path of keys → quantity.
    ("clocks/sm", _CLOCK),
    ("clocks/sm clock", _CLOCK),
    ("temperature/gpu temp", _TEMPERATURE),
    ("utilization/gpu util", _BUSY),
    ("temperature/gpu current temp", _TEMPERATURE),
    ("fb memory usage/used", _USED),
    ("power readings/power draw", _POWER),
    ("power readings/average power draw", _POWER),
    ("utilization/gpu", _BUSY),
)


def read_query(lines: Iterator[bytes], path: str, size: int) -> Evidence:
    """`nvidia-smi -q`: keys below keys, four spaces a level; unknown ones are passed over."""
    return _stated(_query_pairs(lines), path, size)


def _query_pairs(lines: Iterator[bytes]) -> Iterator[tuple[int, str, str]]:
    keys: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, 1):
        text = text_of(raw[:500]).rstrip()
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        key, colon, value = text.strip().partition(" : ")
        key = key.strip()
        if found := _GPU.match(text.strip()):
            key, colon, value = "gpu", " : ", found[1]
            keys = []
            yield number, "gpu", value
            continue
        while keys and keys[-1][0] >= indent:
            keys.pop()
        path = "/".join([*(each for _, each in keys), key]).lower()
        if colon:
            yield number, path, value.strip()
        else:
            keys.append((indent, key))


_REASON_HEAD: Final = regex("clocks (?:event|throttle) reason ")
_TAG: Final = regex(r"<(/?)([\w.-]+)([^<>]*?)(/?)>([^<]*)")


def read_xml(text: str, path: str, size: int) -> Evidence:
    """`nvidia-smi -q -x`, without a parser of XML, which would expand what a file defines."""
    return _stated(_xml_pairs(text), path, size)


def _xml_pairs(text: str) -> Iterator[tuple[int, str, str]]:
    keys: list[str] = []
    line, seen = 1, 0
    for found in _TAG.finditer(text):
        line, seen = line + text.count("\n", seen, found.start()), found.start()
        closing, name, attributes, single, value = found.groups()
        if closing:
            if name in keys:
                del keys[len(keys) - 1 - keys[::-1].index(name) :]
            continue
        if name == "gpu" and (bus := bus_of(attributes)):
            yield line, "gpu", bus
            keys = []
            continue
        if single:
            continue
        keys.append(name)
        if len(keys) > 32:
            return
        if value.strip():
            yield line, _REASON_HEAD.sub("", "/".join(keys).replace("_", " ")), value.strip()


def _stated(pairs: Iterator[tuple[int, str, str]], path: str, size: int) -> Evidence:
    columns, events, device, time = _Columns(path), list[Event](), "", None
    masks: dict[str, int] = {}
    count = 0
    for number, key, value in pairs:
        count, source = number, Source(path, number)
        if key.endswith("timestamp") and (stamp := stamp_of(value.encode())):
            time, columns.clock = stamp.ns, stamp.clock
            continue
        if key == "gpu":
            device = bus_of(value)
            columns.devices[device] = Device(None, len(columns.devices), device, "", source)
            continue
        if not device:
            continue
        if key.endswith("product name"):
            columns.devices[device] = columns.devices[device]._replace(name=value)
        quantity = next((what for end, what in _STATED if key.endswith(end)), None)
        amount = _value(value.encode())
        if quantity is not None and amount is not None:
            columns.add(device, time, ((quantity, amount),))
        elif value == "Active" and (
            bit := next((bit for end, bit in _REASONS.items() if key.endswith(end.replace("_", " "))), 0)
        ):
            masks[device] = masks.get(device, 0) | bit
        event = _odd(key, value, amount)
        if event is not None:
            what, data = event
            text = f"{key.rpartition('/')[2]}: {value}"
            events.append(Event(what, text, source, stamp_ns=time, clock=columns.clock, device=device, data=data))
    for device, mask in masks.items():
        columns.add(device, time, ((_MASK, float(mask)),))
    made = columns.states("nvidia_smi", size, count)
    read = made.files[0]._replace(first_ns=time, last_ns=time)
    return made._replace(events=(*made.events, *events), files=(read,))


def _odd(key: str, value: str, amount: float | None) -> tuple[What, dict[str, Value]] | None:
    """What a single value of the state tells that it should not."""
    if amount and "volatile" in key and "uncorrectable" in key:
        return What.ECC, {"uncorrected": int(amount), "where": "device"}
    if value == "Yes" and key.endswith(
        ("reset required", "drain and reset recommended", "remapping failure occurred", "pending")
    ):
        return What.DEVICE_HEALTH, {"health": key.rpartition("/")[2]}
    if amount and key.endswith("remapped rows/uncorrectable error"):
        return What.ECC, {"remapped": int(amount), "where": "device"}
    return None


_CHIP: Final = regex(r"^\|\s*(\d+)\s+(\S+)\s*\|\s*([A-Za-z]+)\s*\|\s*([\d.]+|-)\s+(\d+|-)")
_CHIP_MORE: Final = regex(
    r"^\|\s*(\d+)(?:\s+(\d+))?\s*\|\s*([0-9A-Fa-f:.]+)\s*\|\s*(\d+|-)\s+(?:(\d+)\s*/\s*\d+\s*)?(?:(\d+)\s*/\s*\d+)?"
)
_NPU_KEY: Final = regex(r"^\s*(NPU ID|Chip ID|[A-Z][\w ()%-]*?)\s+: (.*)$")


def read_npu(lines: Iterator[bytes], path: str, size: int) -> Evidence:
    """`npu-smi info`: two rows a chip; or one of its lists of keys and values."""
    columns, events = _Columns(path), list[Event]()
    head: re.Match[str] | None = None
    device, count, time = "", 0, None
    for number, raw in enumerate(lines, 1):
        count = number
        text = text_of(raw[:500]).rstrip()
        source = Source(path, number)
        if stamp := stamp_of(raw[:100]):
            time, columns.clock = stamp.ns, stamp.clock
        if found := _CHIP.match(text):
            head = found
        elif head is not None and (found := _CHIP_MORE.match(text)):
            device = f"NPU {found[2] or head[1]}"
            columns.devices[device] = Device(None, int(found[2] or head[1]), bus_of(found[3]), head[2], source)
            memory = found[6] or found[5]
            cells = ((_POWER, head[4]), (_TEMPERATURE, head[5]), (_BUSY, found[4]), (_USED, memory))
            columns.add(device, time, [(what, float(cell)) for what, cell in cells if cell and cell != "-"])
            events += _health(head[3], device, source, time, columns.clock)
            head = None
        elif found := _NPU_KEY.match(text):
            key, value = found[1].strip(), found[2].strip()
            if key == "NPU ID":
                device = f"NPU {value}"
                columns.samples.setdefault(device, 0)
            elif key.startswith("Health"):
                events += _health(value, device, source, time, columns.clock)
            elif _NPU_ERRORS.search(key) and (amount := _value(value.encode())):
                what: dict[str, Value] = {"uncorrected": int(amount), "where": "device"}
                event = Event(What.ECC, f"{key}: {value}", source, None, columns.clock, time, device=device, data=what)
                events.append(event)
    made = columns.states("npu_smi", size, count)
    return made._replace(events=(*made.events, *events))


_NPU_ERRORS: Final = regex(r"(?i)double[ -]bit|multi[ -]bit|uncorrect")


def _health(value: str, device: str, source: Source, time: int | None, clock: str) -> list[Event]:
    if value in {"OK", "-", "NA"}:
        return []
    text = f"Health: {message_of(value.encode())}"
    return [Event(What.DEVICE_HEALTH, text, source, stamp_ns=time, clock=clock, device=device, data={"health": value})]
