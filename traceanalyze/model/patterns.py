"""Regular expressions that are compiled when first used: a run needs few of the hundreds that modules declare."""

import re
from typing import Any, AnyStr, cast


class _Regex:
    """Stands for a compiled expression and becomes one when anything of it is asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        for method in ("match", "search", "fullmatch", "sub", "split", "findall", "finditer"):
            # Found on the instance from now on, at no cost.
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The expression, for a module's own level; elsewhere, and for what users write, there is `re.compile`."""
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))
