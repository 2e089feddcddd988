"""Rules about the host and dispatch."""
