"""Why the device is idle: gaps, sync points, launches, pauses of the garbage collector."""
