"""Analyses as tracks over a trace, in the JSON that Perfetto (and chrome://tracing) loads.

`overlay` makes the tracks of one rank from its analyses, `events` writes them as Chrome trace events, `splice` puts
them into the text of the trace, `merge` puts the texts of several ranks together.
"""
