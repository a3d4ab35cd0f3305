"""Processes that do portions of work, behind a `concurrent.futures.Executor`: the one interface to all of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Any

from dpwitness.errors import ClusterLost
from dpwitness.machine import Deadline
from dpwitness.runs.worker import Answer, Parcel, execute

#: What `Pool.publish` makes of a parcel, and `execute` gets as a parcel again.
Published = Any


def first_line(error: BaseException) -> str:
    """What an error says, in one line; its class where it says nothing."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class WorkerDied(Exception):
    """A process ended while it worked; nothing is known of what was on its way."""


class Pool:
    """The processes of an executor that the user has started and will end: of joblib's loky, Ray and others.

    Attributes
    ----------
    workers
        How many portions are done at the same time.
    task_seconds
        How long a portion should take: so long that handing it over costs little.
    eager
        Whether they run anyway, so that everything goes there.
    """

    task_seconds = 1.0
    eager = True
    #: What a future raises whose process has ended.
    gone: tuple[type[Exception], ...] = (BrokenExecutor, CancelledError)

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor: Executor | None = executor
        own = getattr(executor, "_max_workers", None)
        self.workers: int = own if isinstance(own, int) and own > 0 else workers

    @property
    def started(self) -> bool:
        """Whether they run."""
        return self._executor is not None

    def start(self, deadline: Deadline | None) -> None:
        """Start them, if they do not run yet."""

    def ready(self, mechanism: Published) -> bool:
        """Whether they have read a mechanism. The first call has them do so, none waits."""
        return True

    def publish(self, content: Parcel) -> Published:
        """Make a parcel available to all of them; return what `submit` takes for it."""
        return content

    def submit(self, mechanism: Published, work: Published, first: int, end: int) -> "Future[Answer]":
        """Have a portion done: the shards from `first` to before `end`."""
        return self._submit(execute, mechanism, work, first, end)

    def _submit(self, function: Callable[..., object], *arguments: object) -> "Future[Any]":
        assert self._executor is not None
        try:
            return self._executor.submit(function, *arguments)
        except Exception as error:  # broken or shut down: nobody here can start it again
            raise ClusterLost(f"the executor does not take any more work ({first_line(error)})") from error

    def answer(self, future: "Future[Answer]", timeout: float | None) -> Answer | None:
        """Wait for an answer at most so many seconds; None if there is none yet.

        Raises `WorkerDied` where a process ended, `ClusterLost` where all of them are out of reach.
        """
        if not wait([future], timeout).done:
            return None
        try:
            return future.result()
        except self.gone as error:
            raise WorkerDied(str(error) or type(error).__name__) from error
        except Exception as error:  # what the runs raise comes back in an answer
            raise ClusterLost(f"the executor failed ({first_line(error)})") from error

    def close(self, work: Published, futures: Sequence["Future[Answer]"], *, at_once: bool) -> None:
        """Forget these portions, the last of a published piece of work.

        `at_once`: what runs may never end, and must not stand in the way.
        """
        for future in futures:
            future.cancel()
