"""The command line: one file per command, each options → API → report → exit code."""
