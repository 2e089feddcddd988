"""The simulated allocator's state and history as `_dump_snapshot` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulate.allocator.pool import Allocator, Block, Segment


def dump(
    allocator: Allocator, *, keep: int | None = None, vendor: str = "cuda", settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A snapshot.

    Args:
        allocator: What to write down.
        keep: Newest events that the ring buffer still has; None: all.
        vendor: cuda or npu.
        settings: `allocator_settings` beside the usual ones.
    """
    events = allocator.events if keep is None else allocator.events[len(allocator.events) - keep :]
    if vendor == "npu":
        events = [{key: value for key, value in event.items() if key != "time_us"} for event in events]
    found: dict[str, Any] = {
        "segments": [_segment(one) for one in sorted(allocator.segments, key=lambda one: one.address)],
        "device_traces": [events, []],
    }
    if vendor == "cuda":
        found["allocator_settings"] = {
            "PYTORCH_CUDA_ALLOC_CONF": "",
            "max_split_size": -1,
            "garbage_collection_threshold": 0.0,
            "expandable_segments": allocator.expandable,
            "roundup_power2_divisions": {"1": 0},
            **(settings or {}),
        }
        found["external_annotations"] = allocator.notes
    return found


def _segment(segment: Segment) -> dict[str, Any]:
    active = [block for block in segment.blocks if block.state != "inactive"]
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(block.size for block in active),
        "active_size": sum(block.size for block in active),
        "requested_size": sum(block.requested for block in active),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": segment.expandable,
        "frames": segment.frames or [],
        "blocks": [_block(block) for block in segment.blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested,
        "state": block.state,
        "frames": block.frames or [],
    }
