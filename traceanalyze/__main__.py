"""`python -m traceanalyze`."""

from traceanalyze.cli.main import main

main()
