"""Runs on a Dask cluster: one that is there, by its address or client, or one of this machine's own processes."""

import atexit
import logging
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar, cast

from dpwitness.checks import brief
from dpwitness.errors import ClusterLost, InvalidParameter, MechanismCrashed
from dpwitness.machine import Deadline
from dpwitness.mechanisms.mechanism import Mechanism
from dpwitness.runs.elsewhere import Remote
from dpwitness.runs.worker import Answer, Parcel, execute

#: The cluster of this machine's own processes, which is started when it is first used.
LOCAL: Final = "local"
#: Seconds that a scheduler is waited for, at the beginning and when it does not answer any more.
CONNECTING: Final = 10.0
#: Seconds between two looks at whether the scheduler is there.
LOOK: Final = 0.5

T = TypeVar("T")


class Cluster:
    """The workers of a Dask scheduler; see `portions.Place`.

    A portion that was on a worker which ended is done by another one: the scheduler knows what it was. Parcels are
    tasks themselves, so that each worker gets one once, and one that was lost is made again.
    """

    task_seconds = 1.0
    eager = True

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name
        self.workers = max(sum(self._threads().values()), 1)

    @property
    def started(self) -> bool:
        """Whether its scheduler answers."""
        return bool(self._client.status == "running")

    def _threads(self) -> dict[str, int]:
        """The threads of every worker."""
        return cast("dict[str, int]", self._reached(self._client.nthreads))

    def _reached(self, asked: Callable[[], T]) -> T:
        """Ask the scheduler. Raises `ClusterLost` where it does not answer."""
        from distributed.comm.core import CommClosedError

        try:
            return asked()
        except (OSError, CommClosedError, CancelledError, RuntimeError, ValueError) as error:
            raise self._lost(error) from error

    def _lost(self, error: object) -> ClusterLost:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        return ClusterLost(f"the scheduler of the cluster {self._name} does not answer any more ({why})")

    def start(self, deadline: Deadline | None) -> None:
        """Wait for a worker. Raises `ClusterLost` where none comes."""
        timeout = CONNECTING if deadline is None else min(max(deadline.left, 0.1), CONNECTING)
        try:
            self._reached(lambda: self._client.wait_for_workers(1, timeout=timeout))
        except ClusterLost as error:
            if not self.started:
                raise
            raise ClusterLost(f"the cluster {self._name} has no workers: start some with `dask worker`") from error
        self.workers = max(sum(self._threads().values()), 1)

    def ready(self, mechanism: Any) -> bool:
        """Whether workers have read a mechanism: they do with its first portion, and are never waited for."""
        return True

    def publish(self, content: Parcel) -> Any:
        """Make a task of a parcel: workers fetch its result from each other, once."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # large data are sent, and only once
            return self._reached(lambda: self._client.submit(_same, content, pure=False))

    def retract(self, published: Any) -> None:
        """Let the workers forget it."""
        published.release()

    def submit(self, mechanism: Any, work: Any, first: int, end: int) -> Any:
        """Have a portion done."""
        return self._reached(lambda: self._client.submit(execute, mechanism, work, first, end, pure=False))

    def answer(self, handle: Any, timeout: float | None) -> Answer | None:
        """Wait for an answer; see `portions.Place`.

        Raises `ClusterLost` without a scheduler, and `MechanismCrashed` where several workers ended over it.
        """
        from distributed import KilledWorker

        there = threading.Event()
        handle.add_done_callback(lambda _: there.set())
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LOOK if end is None else min(LOOK, max(end - time.monotonic(), 0.0))
            # Not `handle.result(left)`: where it is cancelled that fails in Dask's own code.
            there.wait(left)
            if handle.status == "finished":
                return cast(Answer, self._reached(handle.result))
            if handle.status == "cancelled":
                raise self._lost("what was on its way is cancelled")
            if handle.status == "error":
                error = handle.exception()
                if isinstance(error, KilledWorker):
                    raise MechanismCrashed(
                        f"several workers of the cluster {self._name} ended while they ran the mechanism: "
                        f"{str(error).splitlines()[0]}"
                    )
                raise error
            if self._silent():
                raise self._lost("its connection is closed")
            if end is not None and time.monotonic() >= end:
                return None

    def _silent(self) -> bool:
        """Whether the connection to the scheduler is closed."""
        comm = self._client.scheduler_comm
        return self._client.status != "running" or comm is None or bool(comm.comm.closed())

    def drop(self, handles: list[Any], *, at_once: bool) -> None:
        """Begin none of these. What a worker runs it runs to its end: others may use the cluster too."""
        if handles and not self._silent():
            self._client.cancel(handles, force=at_once)


def _same(content: Parcel) -> Parcel:
    """A parcel as the result of a task."""
    return content


class _LocalCluster(Cluster):
    """Processes of this machine, which may be ended."""

    def drop(self, handles: list[Any], *, at_once: bool) -> None:
        """As in `Cluster`; a portion that may never end is ended with its process."""
        super().drop(handles, at_once=at_once)
        if at_once and not self._silent() and any(self._client.processing().values()):
            self._client.restart(wait_for_workers=False)


_OPEN: dict[tuple[str, int], Cluster] = {}
_OPENING: Final = threading.Lock()


def on_cluster(mechanism: Mechanism, cluster: Any, workers: int, seed: int) -> Remote:
    """An executor of a mechanism on a cluster.

    Parameters
    ----------
    mechanism
        What runs.
    cluster
        "local", the address of a scheduler, such as "tcp://host:8786", or a `distributed.Client`.
    workers
        The processes of the local cluster; threads of this process where the mechanism must stay here.
    seed
        Of the runs by which the workers are compared with this process.

    Raises
    ------
    ClusterLost
        Where no scheduler answers.
    InvalidParameter
        Where Dask is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise InvalidParameter(f"cluster={brief(cluster)} needs Dask: pip install 'dpwitness[cluster]'") from error
    if isinstance(cluster, distributed.Client):
        place = Cluster(cluster, "of the client")
    else:
        with _OPENING:
            key = (cluster, workers if cluster == LOCAL else 0)
            if key not in _OPEN or not _OPEN[key].started:
                _OPEN[key] = _local(workers) if cluster == LOCAL else _connected(cluster)
            place = _OPEN[key]
    return Remote(mechanism, place, seed=seed, threads=workers)


def _local(workers: int) -> Cluster:
    """Start processes of this machine, one thread each; they end with this process."""
    from distributed import Client, LocalCluster

    _quiet()
    cluster = LocalCluster(  # type: ignore[no-untyped-call]  # Dask has few types

        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", memory_limit=0,
        silence_logs="ERROR",
    )  # fmt: skip
    client = Client(cluster, set_as_default=False)  # type: ignore[no-untyped-call]  # see above
    atexit.register(cluster.close)
    atexit.register(client.close)
    return _LocalCluster(client, LOCAL)


def _quiet() -> None:
    """Let Dask not print a traceback where its scheduler is gone: that is told by `ClusterLost`."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)


def _connected(address: str) -> Cluster:
    from distributed import Client

    _quiet()
    try:
        client = Client(address, timeout=CONNECTING, set_as_default=False)  # type: ignore[no-untyped-call]  # see above
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterLost(f"no scheduler answers at cluster={brief(address)} ({why})") from error
    atexit.register(client.close)
    return Cluster(client, address)
