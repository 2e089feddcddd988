"""Run operators of the model on a host: what they call, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.model import Op
from tests.simulate.streams import COMPUTE

if TYPE_CHECKING:
    from tests.simulate.host import Host


def run_op(host: Host, op: Op, stream: int = COMPUTE) -> None:
    """One operator."""
    with host.op(op.name, op.inputs):
        run_inside(host, op, stream)


def run_inside(host: Host, op: Op, stream: int = COMPUTE) -> None:
    """What an operator calls."""
    for each in op.inside:
        if isinstance(each, Op):
            run_op(host, each, stream)
        elif each.kind == "memset":
            host.memset(each, op.name)
        else:
            host.launch(each, op.name, stream)
