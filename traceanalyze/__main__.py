"""Run as `python -m traceanalyze`."""

import sys

if not sys.flags.safe_path:
    # Python put the folder one is in before everything else: what lies there is data, and no plug-ins to run.
    del sys.path[0]

from traceanalyze.cli.main import main

if __name__ == "__main__":
    main()
