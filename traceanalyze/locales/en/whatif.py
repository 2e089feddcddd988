"""Words of `traceanalyze whatif`."""

from __future__ import annotations

TERMS = {
    "whatif_without": "without",
    "whatif_faster": "faster",
    "whatif_overlap": "overlapped",
    "whatif_rank": "rank",
    "whatif_together": "all together",
    "limit_host": "the host",
    "limit_device": "the device",
    "limit_communication": "communication",
    "limit_loader": "the data loader",
    "limit_ranks": "waiting for other ranks",
    "path_host": "host",
    "path_compute": "compute",
    "path_memory_ops": "copies and fills",
    "path_between": "between device events",
    "path_communication": "communication",
    "path_data_loading": "data loading",
    "path_waiting": "waiting for other ranks",
}
