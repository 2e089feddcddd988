"""Device memory: what a trace records of the allocator, and what its snapshots tell."""
