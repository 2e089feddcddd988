"""The host side of each collective: the record that describes it, and its canonical type."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows
from traceanalyze.model.collectives import TYPES, collective_type, counts_output, element_bytes
from traceanalyze.model.op_calls import MOST_ELEMENTS, parse_call
from traceanalyze.model.patterns import regex

_RANGE = regex(r"(nccl|rccl|hccl|c10d|_c10d_functional|symm_mem|deep_?ep)::?")


def description_rows(context: Context, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Event row with each collective's arguments: its own, else that of the `record_param_comms` around its launch."""
    row = context.device.row[event]
    if len(event) == 0:
        return row
    if "collective" not in context.trace.events.fields:
        return np.where(context.trace.events.numbers("group", row) >= 0, row, -1)
    own = (context.trace.events.numbers("collective", row) >= 0) | (context.trace.events.numbers("group", row) >= 0)
    return np.where(own, row, _innermost(context, event, context.once(describing)))


def types(context: Context, event: NDArray[np.int64], described: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `TYPES` of each collective's canonical type.

    By its arguments, else by the `nccl:` or `c10d::` range around its launch (NCCL runs an all_to_all in a kernel
    named SendRecv), else by the kernel's name.
    """
    if len(event) == 0:
        return np.empty(0, np.int64)
    strings = context.trace.strings
    stated = context.trace.events.numbers("collective", described)
    around = _innermost(context, event, context.once(named_ranges))
    ranges = np.where(around >= 0, context.trace.events.name[around], -1)
    keys = group(stated, ranges, context.device.name[event])
    decided = np.empty(len(keys), np.int64)
    for index, first in enumerate(keys.first.tolist()):
        codes = (int(stated[first]), int(ranges[first]), int(context.device.name[event[first]]))
        found = (collective_type(strings.text(code)) for code in codes if code >= 0)
        decided[index] = TYPES.index(next((kind for kind in found if kind is not None), "other"))
    return decided[keys.of]


def sizes(context: Context, described: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each collective (definitions §12): of its input, of an all_gather its output; -1 where not stated."""
    given, result, dtype = (
        context.trace.events.numbers(field, described) for field in ("in_elements", "out_elements", "dtype")
    )
    rows = group(kind, given, result, dtype)
    found = []
    for first in rows.first.tolist():
        elements = int((result if counts_output(TYPES[int(kind[first])]) else given)[first])
        each = element_bytes(context.trace.strings.text(int(dtype[first]))) if dtype[first] >= 0 else None
        found.append(-1 if each is None or not 0 <= elements <= MOST_ELEMENTS else elements * each)
    return np.array(found, np.int64)[rows.of]


def shown_sizes(context: Context, event: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same by the shapes of the `nccl:` range around the launch, as PyTorch before 2.1 has them alone."""
    row = _innermost(context, event, context.once(named_ranges))
    shapes, dtypes = (context.trace.events.numbers(field, row, -1) for field in ("shapes", "dtypes"))
    rows, text = group(kind, shapes, dtypes), context.trace.strings.text
    found = []
    for first in rows.first.tolist():
        stated = min(shapes[first], dtypes[first]) >= 0 and not counts_output(TYPES[int(kind[first])])
        call = parse_call("", text(int(shapes[first])), text(int(dtypes[first])), None) if stated else None
        found.append((call and call.input_bytes()) or -1)
    return np.array(found, np.int64)[rows.of]


def describing(context: Context) -> Nest:
    """Host events that describe a collective."""
    described = np.zeros(len(context.trace.events), np.bool_)
    described[context.trace.events.fields["collective"].row] = True
    return nest_rows(context.trace, context.host_rows[described[context.host_rows]])


def named_ranges(context: Context) -> Nest:
    """Host events that are named like a call of a communication library."""
    names = context.trace.events.name[context.host_rows]
    named = context.trace.strings.matches(names, _RANGE.match)
    return nest_rows(context.trace, context.host_rows[named])


def _innermost(context: Context, event: NDArray[np.int64], nested: Nest) -> NDArray[np.int64]:
    """Which of some host events is innermost around the launch of each device event, -1 for none."""
    call = context.issued_by[event]
    if len(nested) == 0 or len(context.calls) == 0:
        return np.full(len(event), -1, np.int64)
    thread = np.where(call >= 0, context.calls.track[call], -1)
    return nested.rows(innermost(nested, thread, context.calls.start[call]))
