"""How hard to test: the level, runs, time, seed, workers, and who is told of the progress."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from dpwitness.checks import brief, number, seconds, whole
from dpwitness.errors import BudgetTooSmall, InvalidParameter
from dpwitness.runs import Progress, default_workers

CHECK_RUNS: Final = 4_000_000
MAX_TIME: Final = 60.0
MOST_WORKERS: Final = 1024
LONGEST_TIME: Final = 1e9  # seconds; the operating system waits no longer than a few times that
LARGEST_SEED: Final = (1 << 128) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Settings that say nothing of what is tested.

    `alpha`: the probability of a false alarm; `max_runs`: paired confirm runs; `max_time`: seconds for everything
    together, compiling left out; `search_runs`: paired search runs, None: as many as is usual, 0: none, a check bets
    from the first run on; `seed`: None draws one; `workers`: None takes every core; `cluster`: where to run instead:
    "local", the address of a Dask scheduler or a `distributed.Client`. Raises `InvalidParameter` and `BudgetTooSmall`.
    """

    alpha: float = 1e-6
    max_runs: int = CHECK_RUNS
    max_time: float = MAX_TIME
    search_runs: int | None = None
    seed: int | None = None
    workers: int | None = None
    cluster: Any = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.progress is not None and not callable(self.progress):
            raise InvalidParameter(
                f"progress={brief(self.progress)} must be a function of a stage, two numbers and a note"
            )
        if not 0 < number("alpha", self.alpha) < 1:
            raise InvalidParameter(f"alpha={brief(self.alpha)} must lie between 0 and 1")
        self._check_cluster()
        settled = {
            "max_runs": whole("runs", self.max_runs, 1, error=BudgetTooSmall),
            "max_time": min(seconds("max_time", self.max_time), LONGEST_TIME),
            "seed": secrets.randbits(32) if self.seed is None else whole("seed", self.seed, 0, LARGEST_SEED),
            "workers": default_workers() if self.workers is None else whole("workers", self.workers, 1, MOST_WORKERS),
        }
        if self.search_runs is not None:
            settled["search_runs"] = whole("search_runs", self.search_runs, 0, error=BudgetTooSmall)
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def _check_cluster(self) -> None:
        """Raise `InvalidParameter` for what is no cluster."""
        if self.cluster is None or hasattr(self.cluster, "scheduler_info"):
            return
        if not isinstance(self.cluster, str) or not (self.cluster == "local" or "://" in self.cluster):
            raise InvalidParameter(
                f'cluster={brief(self.cluster)} must be "local", the address of a Dask scheduler such as '
                '"tcp://host:8786", or a distributed.Client'
            )
