"""Rules about memory and its allocator."""
