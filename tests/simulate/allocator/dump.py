"""The simulated allocator's state and history as `_dump_snapshot` writes them."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.allocator.pool import Allocator, Block, Segment


def dump(
    allocator: Allocator,
    *,
    keep: int | None = None,
    vendor: str = "cuda",
    settings: dict[str, Any] | None = None,
    pool_ids: bool = False,
) -> dict[str, Any]:
    """A snapshot.

    Args:
        allocator: What to write down.
        keep: Newest events that the ring buffer still has; None: all.
        vendor: cuda or npu.
        settings: `allocator_settings` beside the usual ones.
        pool_ids: Events name their pool, as from torch 2.12 on.
    """
    events = allocator.events if keep is None else allocator.events[len(allocator.events) - keep :]
    unwritten = {*(() if pool_ids else ("pool_id",)), *(("time_us",) if vendor == "npu" else ())}
    events = [{key: value for key, value in event.items() if key not in unwritten} for event in events]
    found: dict[str, Any] = {
        "segments": [
            _segment(one, run) for one in sorted(allocator.segments, key=lambda one: one.address) for run in _runs(one)
        ],
        "device_traces": [events, []],
    }
    if vendor == "cuda":
        found["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": allocator.max_split or -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": allocator.expandable,
            "roundup_power2_divisions": {"1": 0},
            **(settings or {}),
        }
        found["external_annotations"] = allocator.notes
    return found


def _runs(segment: Segment) -> Iterator[list[Block]]:
    """The mapped runs of a segment: one, unless memory in its middle went back to the device."""
    for mapped, run in groupby(segment.blocks, key=lambda block: block.state != "unmapped"):
        if mapped:
            yield list(run)


def _segment(segment: Segment, blocks: list[Block]) -> dict[str, Any]:
    active = [block for block in blocks if block.state != "inactive"]
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size for block in blocks),
        "allocated_size": sum(block.size for block in active if block.state == "active_allocated"),
        "active_size": sum(block.size for block in active),
        "requested_size": sum(block.requested for block in active),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": segment.pool,
        "is_expandable": segment.expandable,
        "frames": segment.frames or [],
        "blocks": [_block(block) for block in blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested,
        "state": block.state,
        "frames": block.frames or [],
    }
