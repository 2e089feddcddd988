"""A comparison as the workbook of msprof-analyze, for scripts that read that: its sheets, headings, units and sums.

Facts of that layout: the first row names both sides, headings stand in the third; times and sizes have the unit of
their heading, whatever their size; numbers are sums over all steps, not per step. The ratio of two zeros is 1, and INF
where only the base is zero; what a side does not have is 0.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from operator import add, sub, truediv
from typing import Any, NamedTuple, Self

from xlsxwriter import Workbook

from traceanalyze.comparison.results import Part, SideInfo
from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, sentences
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import CompareReport, formatter_over
from traceanalyze.report.xlsx import OPTIONS, properties
from traceanalyze.report.xlsx.formats import SIDE_FILLS, Formats, clean

_SAY = sentences(
    vendor_sheet="Where this workbook differs from that of msprof-analyze",
    vendor_steps="Numbers are sums over the steps compared: {base} of the base, {candidate} of the candidate.",
    vendor_whole="Numbers are of all that was recorded, as there; `--base-step` and `--comparison-step` choose steps.",
    vendor_end=(
        "`E2E Time` is from the first to the last kernel or collective, with newer versions of torch also copy or "
        "fill, and `Free Time` what compute and communication leave of it, as there, with copies of all streams as "
        "`SDMA`; the host's work around it is part of the step in `traceanalyze compare`."
    ),
    vendor_kernels=(
        "Every kernel counts once, also those launched through the driver's API or on stream 0; work whose launch is "
        "not known has a row of its own. Sheets of kernels have compute, and of a GPU also fills (memset), for which "
        "an NPU runs kernels; `Computing Time` has compute alone, collectives and copies are elsewhere."
    ),
    vendor_classes=(
        "Kernels have their class by their own names, then by the operator around them; where a recording does not "
        "tell the unit, it is `Unknown`, not `Vector`."
    ),
    vendor_wait="`Wait` is what a collective's transfers leave of it; where a recording does not tell, it is left out.",
    vendor_pairs="Collectives are paired by kind, across vendors; the tasks they consist of have no rows.",
    vendor_calls=(
        "Of an NPU, calls of CANN and of the task queue have no rows, as there: their time is that of the operator "
        "around them. Self time is taken thread by thread, so that it is never below 0. What the vendors call "
        "otherwise is one row, and so are all data loaders. Times of calls are not rounded to 0.01 ms before they are "
        "added up."
    ),
    vendor_details=(
        "`Kernel Details` and `Allocated Details` have names, durations and sizes, as of a GPU; tasks, cores and "
        "shapes stand in the sheets of kernels. Self time of a module is, as there, that of the work launched while no "
        "module inside it runs, but with fills and collectives."
    ),
    vendor_memory=(
        "Memory is that of PyTorch's allocator, without the pool of the graph engine (`cann::…`), and the numbers "
        "beside it are of allocations, not of operators. `Allocated Duration` is left out where a recording states no "
        "addresses, as nothing tells then which allocation is freed; msprof-analyze gives there how long those lived "
        "that the very next record frees, and drops those after which another size is freed."
    ),
    vendor_order="Rows are ordered by how much they differ, single calls by time.",
    vendor_lost="Work that a recording lost has no sheet, or an empty cell instead of 0: {part} of {side}.",
    vendor_unrecorded="{name} is empty: not both sides recorded it.",
    vendor_cut="{name}: the first {shown} of {number} rows; more fit no sheet.",
)

_UNITS = {"(us)": 1_000, "(ms)": 1_000_000, "(KB)": 1 << 10, "(MB)": 1 << 20}
_COMPARED = {
    "overall_metrics": "time_ns",
    "communication_compare": "total_ns",
    "module_compare_statistic": "total_ns",
    "module_compare": "total_ns",
    "operator_compare_statistic": "device_ns",
    "operator_compare": "device_ns",
    "memory_compare_statistic": "bytes",
    "memory_compare": "size_bytes",
    "api_compare": "total_ns",
    "kernel_compare": "total_ns",
    "kernel_type_compare": "total_ns",
}
"""Tables that are sheets, in their order, each with what its plain differences and ratios are of."""
_IN_PLACE = frozenset({"operator_compare_statistic", "operator_compare"})
"""Tables that those of modules stand for where both sides recorded modules."""
_OF_COMPUTE = frozenset({"kernel_compare", "kernel_type_compare"})
_OF_MEMORY = frozenset({"memory_compare_statistic", "memory_compare"})
_NO_COMPUTE = frozenset({"work_communication", "work_copy"})
_SINGLE = frozenset({"operator_compare", "memory_compare"})
"""Tables of single calls, which are no sums."""
_NAMED = frozenset({"op", "base_op", "candidate_op", "api", "kernel", "kernel_type"})
"""Columns of names, some of which are words of ours."""
_EACH = frozenset({"avg_ns", "max_ns", "min_ns"})
_TASK = "Task Name"
_CANN = regex(r"(AscendCL|Node|Runtime|Model|Hccl|Communication)@|(Enqueue|Dequeue)\b")
"""Calls of CANN and of the task queue, which that workbook leaves out."""

MAX_ROWS = 50_000
"""Of a sheet; ten thousand take a second to write."""

_ALL = "[ TOTAL ]"
"""Operator that stands for all of a module in the sums of modules; in their calls it is `TOTAL`."""
_MODULES = ("module_compare_statistic", "module_compare")
_PYTHON = regex(r"(?:.*/)?(?P<name>.+)_\d+/(?P=name)")
"""A module's place and its class, where the profiler of Python calls it: by class and number."""
_OWN = ("base_self_ns", "candidate_self_ns")

Cells = dict[str, Any]
"""Of a row, by the key of the column; amounts of a side are sums, in the unit of their heading."""


class _Sheet(NamedTuple):
    table: Table
    columns: tuple[Column, ...]
    """Those that msprof-analyze has."""
    steps: Mapping[str | None, int]
    """How many steps a side's sums are of."""
    formatter: Formatter

    @classmethod
    def of(cls, table: Table, steps: Mapping[str | None, int], formatter: Formatter) -> Self:
        known = tuple(column for column in table.columns if column.alias and not column.alias.startswith(_TASK))
        return cls(table, known, steps, formatter)

    @property
    def name(self) -> str:
        """`operator_compare` as msprof-analyze writes it."""
        return "".join(word.capitalize() for word in self.table.key.split("_"))

    def rows(self) -> Iterator[Cells]:
        keys = self.table.keys
        for row in self.table.known_rows:
            cells = dict(zip(keys, row, strict=True))
            yield {**cells, **{column.key: self._sum(column, cells) for column in self.columns}}

    def _sum(self, column: Column, cells: Cells) -> Any:
        value, key = cells[column.key], column.key.partition("_")[2]
        if isinstance(value, NotMeasured):
            return None
        if column.side is None or column.kind not in {Kind.DURATION, Kind.BYTES, Kind.NUMBER}:
            return value
        if value is None:
            return None if self.table.key == "overall_metrics" else 0
        alone = self.table.key in _SINGLE or key in _EACH
        amount = value * (1 if alone else self.steps[column.side])
        if key == _COMPARED[self.table.key]:
            # Exact, where the table has it: means are rounded.
            amount = cells.get(f"{column.side}_sum_ns") or amount
        return round(amount) if column.kind == Kind.NUMBER else amount / _unit(column)

    def cell(self, column: Column, cells: Cells, place: int) -> Any:
        """What stands in a column of the sheet."""
        if column.alias in {"Order Id", "Top"}:
            return place
        if column.par is None:
            value = cells[column.key]
            if column.alias in _DETAILS and isinstance(value, str):
                return _details(value, 1 if self.table.key in _SINGLE else self.steps[column.side])
            known = column.key in _NAMED and isinstance(value, str)
            return self.formatter.value(column.kind, value) if known else value
        what = column.key.partition("_")[0]
        of = "calls" if what == "calls" else f"{what}_ns" if f"base_{what}_ns" in cells else _COMPARED[self.table.key]
        base, candidate = cells[f"base_{of}"], cells[f"candidate_{of}"]
        if base is None or candidate is None:
            return None
        if column.kind != Kind.RATIO:
            return candidate - base
        return candidate / base if base else "INF" if candidate else 1


_DETAILS = frozenset({"Kernel Details", "Allocated Details"})
_KERNEL = regex(r"(?P<name>.+?) \[(?P<time>[\d.]+) µs(?:, (?P<times>\d+) times)?\](?:; |$)")
_MORE = regex(r"… \d+ more$")
_ALLOCATION = regex(r"(?P<size>\d+) B(?:, (?P<time>[\d.]+) µs)?(?:; |$)")


def _details(text: str, steps: int) -> str:
    """Kernels, or allocations, a line each, as scripts find their times (µs) and sizes (KB): `[duration: 1.5]`.

    Of neighbours with one name each has their mean; times a step are summed over the steps.
    """
    lines = []
    for one in _KERNEL.finditer(text):
        times = int(one["times"] or 1)
        lines += [f"{one['name']} [duration: {float(one['time']) * steps / times:.10g}]"] * times
    for one in () if lines else _ALLOCATION.finditer(text):
        lived = f"[duration: {float(one['time']):.10g}], " if one["time"] else ""
        lines.append(f"{lived}[size: {int(one['size']) / _UNITS['(KB)']:.10g}]")
    left = _MORE.search(text)
    return "\n".join([*lines, *([left[0]] if left else [])]) if lines else text


def _unit(column: Column) -> int:
    return next((size for name, size in _UNITS.items() if column.alias.endswith(name)), 1)


def render(reports: Sequence[CompareReport], texts: Texts) -> bytes:
    """The comparison as that workbook; one sheet more says where it differs on purpose."""
    (report,) = reports
    if report.comparison is None:
        raise ValueError("no comparison")
    base, candidate = report.comparison.base, report.comparison.candidate
    tables, formatter, target = {table.key: table for table in report.summary}, formatter_over(report, texts), BytesIO()
    with Workbook(target, OPTIONS) as workbook:
        about = f"traceanalyze {report.command} · {base.path} · {candidate.path}"
        workbook.set_properties(properties(about, "", report.version))
        formats, lost = Formats(workbook), _lost(report.comparison.parts)
        cut = [
            Message(_SAY["vendor_lost"], (("part", Kind.TERM, part), ("side", Kind.TERM, side))) for side, part in lost
        ]
        for key in _COMPARED:
            table, modules = tables.get(key), _recorded(tables.get(_MODULES[0]))
            if table is None or (modules if key in _IN_PLACE else key in _MODULES and not modules):
                continue
            # A script may ask for memory that one of the sides did not record: headings alone are no zeros.
            unrecorded = key in _OF_MEMORY and table.absent is not None
            if not len(table) and not unrecorded:
                continue
            sheet = _Sheet.of(table, {"base": base.count, "candidate": candidate.count}, formatter)
            sums = _Sheet.of(tables[_MODULES[0]], sheet.steps, formatter) if key in _MODULES else sheet
            every = list(_shown(sheet, sums, (base, candidate), lost))
            if not every and not unrecorded:
                continue
            if unrecorded:
                cut.append(Message(_SAY["vendor_unrecorded"], (("name", Kind.NAME, sheet.name),)))
            _write(workbook, formats, sheet, every[:MAX_ROWS], (base.path, candidate.path))
            if len(every) > MAX_ROWS:
                numbers = ("shown", Kind.COUNT, MAX_ROWS), ("number", Kind.COUNT, len(every))
                cut.append(Message(_SAY["vendor_cut"], (("name", Kind.NAME, sheet.name), *numbers)))
        counts = ("base", Kind.COUNT, base.count), ("candidate", Kind.COUNT, candidate.count)
        whole = base.step_choice == candidate.step_choice == "whole_trace"
        steps = Message(_SAY["vendor_whole"]) if whole else Message(_SAY["vendor_steps"], counts)
        _write_differences(workbook, formats, formatter, (steps, *cut))
    return target.getvalue()


def _shown(
    sheet: _Sheet, sums: _Sheet, sides: tuple[SideInfo, SideInfo], lost: Collection[tuple[str | None, str]]
) -> Iterable[Cells]:
    """Rows of a sheet as they are there; `sums` are those of modules."""
    rows, key = sheet.rows(), sheet.table.key
    if key == "overall_metrics":
        return _told(_overall(rows, sides))
    if key == "communication_compare":
        return _collectives(rows, lost)
    if key in _MODULES:
        return _modules(sums.rows(), None if key == _MODULES[0] else rows)
    if key == "api_compare":
        return _calls(rows, sheet.steps)
    if key in _OF_COMPUTE:
        return (cells for cells in rows if cells["work"] not in _NO_COMPUTE)
    return rows


def _calls(rows: Iterable[Cells], steps: Mapping[str | None, int]) -> Iterator[Cells]:
    """Calls without those of CANN, whose time is that of the operators around them."""
    every = [(cells, {side: cells[f"{side}_api"] or "" for side in _SIDES}) for cells in rows]
    npus = [side for side in _SIDES if any(_CANN.match(own[side]) for _, own in every)]
    for cells, own in every:
        kept = {side: name for side, name in own.items() if name and not _CANN.match(name)}
        if not kept:
            continue
        for side in npus:
            cells[f"{side}_self_ns"] += (cells[f"{side}_runtime_ns"] or 0) * steps[side] / _UNITS["(ms)"]
        keys = (
            f"{side}_{key}" for side in own.keys() - kept.keys() for key in ("total_ns", "self_ns", "avg_ns", "calls")
        )
        # What only CANN has in common with the other side is called as that calls it.
        yield (
            cells
            | dict.fromkeys(keys, 0)
            | ({"api": kept.popitem()[1]} if "" not in own.values() and len(kept) == 1 else {})
        )


def _lost(parts: Iterable[Part]) -> list[tuple[str | None, str]]:
    """Sides that did not record what the device did, and what that is."""
    return [
        (side, part.key)
        for part in parts
        for side in _SIDES
        if part.key in {"compute", "communication"} and isinstance(getattr(part, side), NotMeasured)
    ]


_PARTS = {
    "compute": "Computing Time",
    "communication": "Uncovered Communication Time",
    "matmul": "Matmul",
    "attention_forward": "Flash Attention (Forward)",
    "attention_backward": "Flash Attention (Backward)",
    "attention": "Flash Attention",
    "convolution_forward": "Conv (Forward)",
    "convolution_backward": "Conv (Backward)",
    "convolution": "Conv",
    "paged_attention": "Page Attention",
    "vector_work": "Vector",
    "tensor_move": "SDMA (Tensor Move)",
    "cube": "Cube",
    "vector": "Vector",
    "other": "Other",
    "comm_wait": "Wait",
    "comm_transfer": "Transmit",
    "units_unknown": "Unknown",
}
_SIDES = ("base", "candidate")


def _overall(rows: Iterable[Cells], sides: tuple[SideInfo, SideInfo]) -> Iterator[Cells]:
    """Compute and communication with their classes, and what they leave of the time from first to last kernel."""
    whole, copied = (
        {f"{side}_time_ns": _joined(truediv, time, _UNITS["(ms)"]) for side, time in zip(_SIDES, times, strict=True)}
        for times in ([side.kernel_span for side in sides], [side.copied for side in sides])
    )
    end = {"index": "E2E Time", **whole}
    free: Cells = {"index": "Free Time", **whole}
    found = list[Cells]()
    part = above = ""
    for cells in rows:
        level, key = cells["level"], str(cells["index"])
        part = key if level == 0 else part
        if part not in {"compute", "communication"}:
            continue
        name = _PARTS.get(key, key)
        if level == 0:
            for side in whole:
                free[side] = _joined(sub, free[side], cells[side])
        elif part == "communication" and not key.startswith("comm_"):
            name = f"{name[0].upper()}{name[1:]} Communication"
        elif level == 1 and part == "compute":
            above = key
        elif level == 2 and part == "compute":
            kind = ("Trans" if key == "layout" else "No Trans") if above == "vector_work" else name
            name = f"{_PARTS.get(above, above)} ({kind})"
        name = "\t" * level + name
        same = next((each for each in found if part == "compute" and each["index"] == name), None)
        if same is not None:
            same.update(
                {each: _joined(add, same[each], cells[each]) for each in (*whole, "base_number", "candidate_number")}
            )
            continue
        found.append({**cells, "index": name})
    left = {side: _joined(sub, free[side], copied[side]) for side in whole}
    for cells in (*found, free, {"index": "\tSDMA", **copied}, {"index": "\tFree", **left}, end):
        shares = {
            f"{side}_share": _joined(truediv, cells[at], span) if span != 0 else 0
            for side, (at, span) in zip(_SIDES, whole.items(), strict=True)
        }
        numbers = {f"{side}_number": "/" for side in _SIDES if cells.get(f"{side}_number") is None}
        yield {**cells, **shares, **numbers}


def _joined(join: Callable[[float, float], float], one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else join(one, other)


def _told(rows: Iterable[Cells]) -> Iterator[Cells]:
    """Without what is zero, or not recorded, on both sides."""
    return (cells for cells in rows if any(cells[f"{side}_time_ns"] for side in _SIDES))


def _collectives(rows: Iterable[Cells], lost: Collection[tuple[str | None, str]]) -> Iterator[Cells]:
    """A row for each kind, over groups and sizes."""
    found: dict[str, Cells] = {}
    for cells in rows:
        kind = str(cells["collective"]).replace("_", "")
        same = found.setdefault(kind, {f"{side}_name": None for side in _SIDES})
        for side in _SIDES:
            calls = cells[f"{side}_calls"]
            if not calls:
                continue
            old = same[f"{side}_name"] is not None
            same[f"{side}_name"] = kind
            for key, join in (("calls", sum), ("total_ns", sum), ("max_ns", max), ("min_ns", min)):
                at = f"{side}_{key}"
                same[at] = join((same[at], cells[at])) if old else cells[at]
            same[f"{side}_avg_ns"] = same[f"{side}_total_ns"] / same[f"{side}_calls"]
    for same in found.values():
        yield {
            **{
                f"{side}_{key}": None if (side, "communication") in lost else 0
                for side in _SIDES
                for key in ("calls", "total_ns", "avg_ns", "max_ns", "min_ns")
            },
            **same,
        }


def _modules(sums: Iterable[Cells], calls: Iterable[Cells] | None) -> Iterator[Cells]:
    """Modules with a row for all of each and, below it, its operators, or its single `calls`.

    Times of what is inside a module count for it alone. The backward pass is a tree of its own, one level deeper.
    """
    below: dict[tuple[str, str], list[Cells]] = {}
    for cells in () if calls is None else calls:
        below.setdefault((cells["module"], cells["direction_of_pass"]), []).append(cells)
    whole = {f"{side}_total_ns": None for side in _SIDES}
    for cells in sums:
        name, of_all = _module(cells), cells["op"] == _ALL
        if calls is None:
            yield {**cells, **name} if of_all else {**cells, **name, **whole}
        elif of_all:
            named = {f"{side}_op": "TOTAL" for side in _SIDES}
            times = {key: None if cells[key] is None else cells[key] * 1000 for key in (*whole, *_OWN)}
            yield {**cells, **name, **named, **times}
            yield from (
                {**call, **name, **whole} for call in below.get((cells["module"], cells["direction_of_pass"]), ())
            )


def _recorded(table: Table | None) -> bool:
    """Whether both sides recorded calls of modules, not annotations that say as much."""
    rows = (
        []
        if table is None
        else [row for row in table.records() if _PYTHON.fullmatch(f"{row.module}/{row.module_class}")]
    )
    return all(any(getattr(row, f"{side}_total_ns") is not None for row in rows) for side in _SIDES)


def _module(cells: Cells) -> Cells:
    backward = cells["direction_of_pass"].endswith("backward")
    path = cells["module"].replace("/", "/ ")
    return {
        "module_class": cells["module_class"] and f"nn.Module: {cells['module_class']}",
        "module": f"/[ BACKWARD ]/ {path}" if backward else f"/ {path}" if cells["module_class"] else path,
        "module_level": cells["module_level"] + 1 + backward,
    }


def _write(workbook: Workbook, formats: Formats, sheet: _Sheet, rows: Sequence[Cells], paths: tuple[str, str]) -> None:
    page = workbook.add_worksheet(sheet.name)
    page.freeze_panes(3, 0)
    headings = [_heading(column, sheet.table.key) for column in sheet.columns]
    # Empty, as tasks have no rows here; scripts count columns.
    tasks = [at + 1 for at, heading in enumerate(headings) if heading == "Communication OP Name"]
    sides = [column.side for column in sheet.columns]
    for at in reversed(tasks):
        headings.insert(at, _TASK)
        sides.insert(at, sides[at - 1])
    for side, word, path in zip(_SIDES, ("Base", "Comparison"), paths, strict=True):
        first = sides.index(side)
        last = next((at for at in range(first, len(sides)) if sides[at] != side), len(sides)) - 1
        page.merge_range(0, first, 0, last, clean(f"{word} Profiling: {path}"), formats.group(SIDE_FILLS[side]))
    for at, heading in enumerate(headings):
        page.write_string(2, at, heading, formats.header(right=False, fill=SIDE_FILLS.get(sides[at] or "", "#DCE6F1")))
        page.set_column(at, at, 42 if "Name" in heading or heading in {"Index", "Kernel", "api name"} else 16)
    for place, cells in enumerate(rows, start=1):
        line = [sheet.cell(column, cells, place) for column in sheet.columns]
        for at in reversed(tasks):
            line.insert(at, None)
        for at, value in enumerate(line):
            if isinstance(value, str):
                page.write_string(place + 2, at, "\t" * _level(value) + clean(value.lstrip("\t")))
            elif value is not None:
                page.write_number(place + 2, at, value)


def _level(text: str) -> int:
    return len(text) - len(text.lstrip("\t"))


def _heading(column: Column, table: str) -> str:
    """Those of differences between modules have no unit of their own."""
    alone = column.alias.endswith("Time Diff")
    return column.alias + (("(ms)" if table.endswith("statistic") else "(us)") if alone else "")


def _write_differences(workbook: Workbook, formats: Formats, formatter: Formatter, of_this: Sequence[Message]) -> None:
    page = workbook.add_worksheet("Differences")
    page.set_column(0, 0, 120)
    page.write_string(0, 0, formatter.texts.messages[_SAY["vendor_sheet"]], formats["title"])
    always = [
        Message(_SAY[f"vendor_{key}"])
        for key in ("end", "kernels", "classes", "wait", "pairs", "calls", "details", "memory", "order")
    ]
    for row, message in enumerate((*of_this, *always), start=2):
        page.write_string(row, 0, clean(formatter.message(message)), formats["wrapped"])
