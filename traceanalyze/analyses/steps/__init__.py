"""The analysed steps: their windows, exclusive parts, phases and critical path."""
