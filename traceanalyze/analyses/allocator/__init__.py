"""What an allocator snapshot tells, replayed from its end: the dump is complete, the history before it is not."""
