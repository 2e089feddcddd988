"""A rule, a classifier and a reader for traceanalyze, as a company may have its own."""
