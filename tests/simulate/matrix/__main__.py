"""Every fault of the simulator, alone, in twos and in threes, judged by the tool: `python -m tests.simulate.matrix`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from random import Random

from tests.simulate.matrix.cases import Case, every
from tests.simulate.matrix.figures import by_fault, by_group, misses, table
from tests.simulate.matrix.pairs import measured
from tests.simulate.matrix.readme import store
from tests.simulate.matrix.verdicts import Verdict, judge

PROCESSES = 2


def run(cases: list[Case], processes: int = PROCESSES) -> list[Verdict]:
    """Judge them; answers in their order."""
    if processes == 1 or len(cases) < 2 * processes:
        return [judge(case) for case in cases]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        return list(pool.map(judge, cases))


def main(arguments: list[str]) -> int:
    """Print the figures and what does not come true."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulate.matrix", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="programs whose names hold one of these words")
    parser.add_argument("--sample", type=int, help="so many of them, drawn")
    parser.add_argument("--write", action="store_true", help="store the figures, and show them in the READMEs")
    parser.add_argument("--pairs", action="store_true", help="only the recordings before and after a change")
    given = parser.parse_args(arguments)
    if given.write and (given.only or given.sample is not None):
        parser.error("only the figures of all programs are stored")
    cases = [case for case in every() if not given.only or any(word in case.name for word in given.only)]
    if given.sample is not None and given.sample < len(cases):
        cases = Random(0).sample(cases, given.sample)
    verdicts = [] if given.pairs else run(cases)
    found = by_group(verdicts) | measured()
    print(misses(verdicts), by_fault(verdicts), table(found), sep="\n\n")
    if given.write:
        store(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
