"""Python that has imported torch, and forks where a test would start another one: importing takes longer than the test.

`python tests/torch_python.py` reads requests, one a line, and answers each with the exit status.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 90
"""A script that hangs is killed after so long, and all that it started."""


class TorchPython:
    """Runs what `python` would run after its options: a script or `-m module`, and arguments."""

    def __init__(self, folder: Path) -> None:
        self._outputs = folder / "stdout", folder / "stderr"
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def run(self, words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """What a process of its own would print and return."""
        if self._process.stdin is None or self._process.stdout is None:
            raise TypeError("no pipes")
        outputs = [str(path) for path in self._outputs]
        request = {"words": words, "folder": str(folder), "environment": environment, "outputs": outputs}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        out, err = (path.read_text() for path in self._outputs)
        if status == -signal.SIGALRM:
            raise AssertionError(f"{' '.join(words)} hangs\n{out}\n{err}")
        return subprocess.CompletedProcess(words, status, out, err)

    def record(self, words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """What `traceanalyze record` and these words would print and return; here runs what comes before the script."""
        import pytest

        from traceanalyze.cli.main import main

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "argv", ["traceanalyze", "record", *words])
            patch.setattr(os, "execvpe", _instead_of_exec)
            with pytest.raises(_BecomesError) as end:
                main()
        python, *rest = end.value.words
        assert python == sys.executable
        return self.run(rest, folder, {**end.value.environment, "PYTHONPATH": str(ROOT)})

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class _BecomesError(BaseException):
    """This process would now become another program."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        super().__init__(words)
        self.words, self.environment = words, environment


def _instead_of_exec(_program: str, words: list[str], environment: dict[str, str]) -> NoReturn:
    raise _BecomesError(words, environment)


def _become(words: list[str], folder: str, environment: dict[str, str], outputs: list[str]) -> None:
    """In a process just forked: be a Python that was started with these words."""
    os.setsid()
    signal.alarm(LIMIT_S)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # Read when multiprocessing is imported; processes that it spawns look there for the script.
    sys.modules["multiprocessing.process"].ORIGINAL_DIR = folder  # type: ignore[attr-defined]
    for number, path in enumerate((os.devnull, *outputs)):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        sys.path[0] = folder
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = words
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")


def _serve() -> None:
    # Optimizers import this with their first step.
    import torch._dynamo
    import torch.utils.data  # noqa: F401

    # Else the end of every process looks through all of torch for garbage.
    gc.freeze()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            # Returns from here, so that it ends as every Python does.
            _become(**request)
            return
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == -signal.SIGALRM:
            os.killpg(child, signal.SIGKILL)
        print(status, flush=True)


if __name__ == "__main__":
    _serve()
