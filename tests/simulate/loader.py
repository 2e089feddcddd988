"""When the next batch is ready: workers make batches ahead of the loop, each worker one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.noise import scattered
from tests.simulate.streams import on_grid

if TYPE_CHECKING:
    from tests.simulate.workload import Workload


class Workers:
    """Batches are asked for in turn: at the start `prefetch` of each worker, then one whenever one is taken."""

    def __init__(self, workload: Workload, rank: int) -> None:
        self._workload = workload
        self._rank = rank
        self._ready: list[int] = []
        self._taken: list[int] = []

    def ready(self, now: int) -> int:
        """When the next batch is (or was) ready, for a loop that asks for it now."""
        loader = self._workload.loader
        index = len(self._ready)
        ahead = loader.workers * loader.prefetch
        asked = self._taken[index - ahead] if index >= ahead else 0
        free = self._ready[index - loader.workers] if index >= loader.workers else 0
        # New workers begin when the loop has done its work and comes again, and none of the old ones is ahead.
        anew = now + self.restart(index) if self.restart(index) else 0
        self._ready.append(max(asked, free, anew) + self.cost(index))
        return self._ready[-1]

    def take(self, now: int) -> None:
        """The loop takes the batch."""
        self._taken.append(now)

    def cost(self, index: int) -> int:
        """Time to make a batch."""
        workload = self._workload
        nominal = scattered(workload.loader.cost, 0.05, workload.seed, "batch", self._rank, index)
        late = workload.ranks.slow_batches if self._rank == workload.ranks.slow_rank else 0
        return on_grid(nominal + late, workload.tick)

    def anew(self) -> bool:
        """Whether the workers start anew before the next batch."""
        return self.restart(len(self._ready)) > 0

    def restart(self, index: int) -> int:
        """Time to start the workers before this batch."""
        loader = self._workload.loader
        return loader.restart if index and index % 5 == 0 else 0
