"""Runs on a Dask cluster: one that is there, by its address or client, or one of this machine's own processes."""

import atexit
import logging
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import TypeIs, override

from dpwitness.checks import brief, first_line
from dpwitness.errors import ClusterLost, InvalidParameter, MechanismCrashed
from dpwitness.machine import Deadline
from dpwitness.runs.dispatcher import Pool, Published, WorkerDied
from dpwitness.runs.worker import Answer, Parcel, execute

if TYPE_CHECKING:
    from distributed import Client
    from distributed.cfexecutor import ClientExecutor

#: The cluster of this machine's own processes, which is started when it is first used.
LOCAL: Final = "local"
#: Seconds that a scheduler is waited for, at the beginning and when it does not answer any more.
CONNECTING: Final = 10.0
#: Seconds between two looks at whether the scheduler is there.
LOOK: Final = 0.5

T = TypeVar("T")


class Cluster(Pool):
    """The workers of a Dask scheduler.

    A portion that was on a worker which ended is done by another one: the scheduler knows what it was. Parcels are
    tasks themselves, so that each worker gets one once, and one that was lost is made again.
    """

    def __init__(self, client: "Client", name: str, settings: Mapping[str, object] | None = None) -> None:
        self._client = client
        self._name = name
        self._settings = {**(settings or {}), "pure": False}  # of its executors: for example which workers they use
        # One for each piece of work, by which what is left of it is cancelled together.
        self._executors: dict[object, Executor] = {}
        self.workers = self._threads()

    @property
    @override
    def started(self) -> bool:
        """Whether its scheduler answers."""
        return bool(self._client.status == "running")

    def _threads(self) -> int:
        """The threads of all workers."""
        return max(sum(cast("dict[str, int]", self._reached(self._client.nthreads)).values()), 1)

    def _reached(self, ask: Callable[[], T]) -> T:
        """Ask the scheduler. Raises `ClusterLost` where it does not answer."""
        from distributed.comm.core import CommClosedError

        try:
            return ask()
        except (OSError, CommClosedError, CancelledError, RuntimeError, ValueError) as error:
            raise self._lost(first_line(error)) from error

    def _lost(self, why: str) -> ClusterLost:
        return ClusterLost(f"the scheduler of the cluster {self._name} does not answer any more ({why})")

    @override
    def start(self, deadline: Deadline | None) -> None:
        """Wait for a worker. Raises `ClusterLost` where none comes."""
        timeout = CONNECTING if deadline is None else min(max(deadline.left, 0.1), CONNECTING)
        try:
            self._reached(lambda: self._client.wait_for_workers(1, timeout=timeout))
        except ClusterLost as error:
            if not self.started:
                raise
            raise ClusterLost(f"the cluster {self._name} has no workers: start some with `dask worker`") from error
        self.workers = self._threads()

    @override
    def publish(self, content: Parcel) -> Published:
        """Make a task of a parcel: workers fetch its result from each other, once."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # large data are sent, and only once
            return self._reached(lambda: self._client.submit(_same, content, pure=False))

    @override
    def submit(self, mechanism: Published, work: Published, first: int, end: int, task: str) -> "Future[Answer]":
        if work.key not in self._executors:
            self._executors[work.key] = self._client.get_executor(**self._settings)  # type: ignore[no-untyped-call]  # Dask has few types
        executor = self._executors[work.key]
        return self._reached(lambda: executor.submit(execute, mechanism, work, first, end, task))

    @override
    def repeated(self, work: Published) -> bool:
        return bool(self._reached(lambda: self._client.run_on_scheduler(_suspicious, work.key)))  # type: ignore[no-untyped-call]

    @override
    def answer(self, future: "Future[Answer]", timeout: float | None) -> Answer | None:
        """The answer of a portion. Raises `MechanismCrashed` if several workers ended while they ran it."""
        from distributed import KilledWorker

        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                answer = super().answer(future, min(LOOK, max(end - time.monotonic(), 0.0)))
            except WorkerDied as error:
                raise self._lost("what was on its way is cancelled") from error
            except ClusterLost as error:
                if not isinstance(error.__cause__, KilledWorker):
                    raise
                raise MechanismCrashed(
                    f"several workers of the cluster {self._name} ended while they ran the mechanism: "
                    f"{first_line(error.__cause__)}"
                ) from error.__cause__
            if answer is not None:
                return answer
            if self._silent():
                raise self._lost("its connection is closed")
            if time.monotonic() >= end:
                return None

    def _silent(self) -> bool:
        """Whether the connection to the scheduler is closed."""
        comm = self._client.scheduler_comm
        return self._client.status != "running" or comm is None or bool(comm.comm.closed())

    @override
    def close(self, work: Published, futures: "Sequence[Future[Answer]]", *, at_once: bool) -> None:
        """Begin none of these, and let the workers forget the work.

        What a worker runs it runs to its end: others may use the cluster too.
        """
        executor = self._executors.pop(work.key, None)
        if futures and executor is not None and not self._silent():
            executor.shutdown(wait=False)
        work.release()


def _suspicious(work: str, dask_scheduler: Any) -> bool:
    """On the scheduler: whether a worker ended that had a portion of this work."""
    return any(portion.suspicious for portion in dask_scheduler.tasks[work].dependents)


def _same(content: Parcel) -> Parcel:
    """A parcel as the result of a task."""
    return content


class _LocalCluster(Cluster):
    """Processes of this machine, which may be ended."""

    @override
    def close(self, work: Published, futures: "Sequence[Future[Answer]]", *, at_once: bool) -> None:
        """A portion that may never end is ended with its process."""
        super().close(work, futures, at_once=at_once)
        if at_once and not self._silent() and any(self._client.processing().values()):  # type: ignore[no-untyped-call]  # as above
            self._client.restart(wait_for_workers=False)


_OPEN: dict[tuple[str, int], Cluster] = {}
_OPENING: Final = threading.Lock()


def is_of_dask(executor: Executor | None) -> "TypeIs[ClientExecutor]":
    """Whether an executor is that of a Dask client.

    Its scheduler repeats what a worker did that ended, and tells only who asks (`Cluster.repeated`).
    """
    dask = sys.modules.get("distributed.cfexecutor")  # who has such an executor has imported it
    return dask is not None and isinstance(executor, dask.ClientExecutor)


def cluster_of(cluster: "str | Client | ClientExecutor", workers: int) -> Cluster:
    """The cluster that is given: "local", with so many workers, an address, a `distributed.Client` or its executor.

    An address is that of a scheduler, such as "tcp://host:8786". Raises `ClusterLost` where no scheduler answers,
    `InvalidParameter` where Dask is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise InvalidParameter(f"cluster={brief(cluster)} needs Dask: pip install '.[cluster]'") from error
    if isinstance(cluster, distributed.Client):
        return Cluster(cluster, "of the client")
    if not isinstance(cluster, str):
        return Cluster(cluster._client, "of the client", cluster._kwargs)
    with _OPENING:
        key = (cluster, workers if cluster == LOCAL else 0)
        if key not in _OPEN or not _OPEN[key].started:
            _OPEN[key] = _local(workers) if cluster == LOCAL else _connected(cluster)
        return _OPEN[key]


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


def _connected(address: str) -> Cluster:
    from distributed import Client

    _quiet()
    try:
        client = Client(address, timeout=CONNECTING, set_as_default=False)  # type: ignore[no-untyped-call]  # see above
    except (OSError, ValueError) as error:
        raise ClusterLost(f"no scheduler answers at cluster={brief(address)} ({first_line(error)})") from error
    atexit.register(client.close)
    return Cluster(client, address)


def _quiet() -> None:
    """Let Dask print no traceback where its scheduler is gone: `ClusterLost` says so."""
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
