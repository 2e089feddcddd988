"""One pass over the text of a Chrome trace into columns: a native scanner, and the pure-Python twin that specifies it.

The native scanner does the work wherever its library was built; the twin stands in elsewhere, slowly.
"""

from collections.abc import Callable, Sequence

from traceanalyze.readers.scan.result import Field, Scan


def backend() -> str:
    """Which scanner `scan` uses: "native", or "python" for the slow twin."""
    from traceanalyze.readers.scan import native

    return "native" if native.available() else "python"


def scan(
    readinto: Callable[[memoryview], int], *, event_fields: Sequence[Field], instant_fields: Sequence[Field]
) -> Scan:
    """Read the text of a Chrome trace into columns, with the fastest scanner there is.

    `readinto` fills a buffer and returns the number of bytes written, 0 at the end, as that of `io.RawIOBase` does. The
    fields are the members of `args` to keep of complete and of instant events.
    """
    if backend() == "native":
        from traceanalyze.readers.scan import native

        return native.scan(readinto, event_fields=event_fields, instant_fields=instant_fields)
    # Imported only when needed: its expressions take time to compile.
    from traceanalyze.readers.scan import twin

    return twin.scan(readinto, event_fields=event_fields, instant_fields=instant_fields)
