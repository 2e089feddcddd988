"""Where a process begins: the command `traceanalyze`, and `python -m traceanalyze`."""

import os
import sys


def run() -> None:
    """Run the command line and exit.

    Until a command has begun there is nothing to undo, and nothing to say to who stops it.
    """
    try:
        import signal

        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            each = getattr(signal, name, None)
            # Whoever started it may let it ignore them (nohup).
            if each is not None and signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, lambda *_: os._exit(130))
        from traceanalyze.cli import guard
        from traceanalyze.cli.main import main
    except KeyboardInterrupt:
        os._exit(130)
    sys.unraisablehook = guard.drop_interrupt
    try:
        main()
    except SystemExit as end:
        if end.code != guard.INTERRUPTED:
            raise
        # Else Python would say that SIGINT killed it, if that came while it made a class of a text.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(guard.INTERRUPTED)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Python put the folder one is in before everything else: what lies there is data, and no plug-ins to run.
        del sys.path[0]
    run()
