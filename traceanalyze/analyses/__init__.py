"""Analyses: pure functions from a trace to tables. `analyze_trace` runs them all on one rank."""
