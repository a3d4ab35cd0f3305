"""Pools of workers: threads or processes of this machine, a Dask cluster, or the user's executor.

A pool takes tasks as an executor of `concurrent.futures` does; `ordered` yields results in the order of tasks.
"""

import atexit
import logging
import math
import os
import queue
import signal
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import TypeIs, override

from dpwitness.checks import brief, first_line
from dpwitness.errors import ClusterLost, DPWitnessError, InvalidParameter, MechanismCrashed, MechanismTimeout
from dpwitness.machine import THREAD_STATE, Deadline

if TYPE_CHECKING:
    from distributed import Client
    from distributed.cfexecutor import ClientExecutor

T = TypeVar("T")

#: The seconds that a task has to end after the deadline: a run of almost any mechanism ends in that time.
TASK_GRACE_SECONDS: Final = 0.5
#: The environment variables that set the number of threads of libraries of linear algebra.
THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
#: The seconds in which a scheduler, and its first worker, must answer.
CONNECT_SECONDS: Final = 10.0


def default_workers() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerLost(Exception):
    """Too many workers ended in a row, or one ended in a task that must not be repeated; the cause says how."""

    def __init__(self, task: Callable[[], object]) -> None:
        super().__init__(task)
        self.task = task


class Pool:
    """The user's executor, for example of loky or Ray, which the user shuts down; other pools are derived classes."""

    #: Whether the workers run already, so that all work is sent to them.
    eager = True
    #: The errors that a future has if its worker ended.
    lost: tuple[type[Exception], ...] = (BrokenExecutor, CancelledError)

    def __init__(self, executor: Executor, workers: int) -> None:
        self.executor = executor
        own = getattr(executor, "_max_workers", None)
        #: The number of tasks that run at the same time: the executor's own number, if it has one.
        self.workers: int = own if isinstance(own, int) and own > 0 else workers

    def submit(self, task: Callable[[], T]) -> "Future[T]":
        """Send a task. Raises `ClusterLost` if the executor takes no more tasks."""
        try:
            return self.executor.submit(task)
        except Exception as error:  # broken or shut down: only the user can start another one
            raise ClusterLost(f"the executor does not take any more work ({first_line(error)})") from error

    @property
    def ready(self) -> bool:
        """Whether a worker has answered; the first question starts the workers."""
        return True

    def publish(self, content: bytes) -> Any:
        """The argument that stands for the bytes in a task; the worker gets the bytes."""
        return content

    def repeated(self, content: Any) -> bool:
        """Whether the pool repeated tasks with this published argument, because a worker ended in one of them."""
        return False

    def failure(self, error: Exception) -> DPWitnessError:
        """The error to raise for an error of the pool, which no task raised."""
        return ClusterLost(f"the executor failed ({first_line(error)})")

    def end(self, futures: "Sequence[Future[Any]]", patience: float) -> None:
        """Cancel sent tasks; `patience`: the seconds to wait for threads, since no other tasks may run beside them.

        With a patience of 0 the pool also ends running tasks, which may hang, if it can.
        """
        for future in futures:
            future.cancel()


def ordered(
    pool: Pool, tasks: Iterable[Callable[[], T]], deadline: Deadline | None = None, *, again: int = 0
) -> Generator[T | None, None, None]:
    """Yield the results of tasks in the order of the tasks; the last result is None if the deadline passes first.

    A task's error is raised after the results of all tasks before it. When a deadline with patience closes, no more
    tasks are sent, and sent tasks are waited for. At most twice as many tasks as workers are sent at a time, so that
    memory does not grow.

    After the loss of a worker the sent tasks are sent again. `WorkerLost` is raised if `again` workers are lost in a
    row without a result, or, with `again=0`, at the first loss.
    """
    tasks, sent = iter(tasks), deque[tuple[Callable[[], T], Future[T]]]()
    patience = math.inf  # seconds to wait for sent tasks at the end
    losses = 0
    most = 2 * pool.workers
    if isinstance(pool, Threads) and deadline is not None and deadline.patience:
        most = pool.workers  # no sent task waits for a thread when the deadline closes
    try:
        while True:
            while len(sent) < most and not (deadline is not None and deadline.closed):
                task = next(tasks, None)
                if task is None:
                    break
                sent.append((task, pool.submit(task)))
            if not sent:
                return
            first, future = sent[0]
            if not wait([future], None if deadline is None else deadline.left).done:
                if deadline is not None and deadline.left > 0:  # compiling moves the deadline
                    continue
                patience = 0.0
                break
            try:
                result = future.result()
            except pool.lost as error:
                losses += 1
                if losses >= again:
                    raise WorkerLost(first) from error
                sent = deque((task, pool.submit(task)) for task, _ in sent)
                continue
            sent.popleft()
            losses = 0
            yield result
    except KeyboardInterrupt:
        patience = 0.0  # a mechanism that hangs must not delay Ctrl-C
        raise
    except BaseException:  # a task raised, or the caller needs no more results; the deadline ends the wait for tasks
        patience = math.inf if deadline is None else deadline.left
        raise
    finally:
        pool.end([future for _, future in sent], patience)
    yield None  # after the end of all tasks


class Threads(Pool):
    """Daemon threads of this process, for one call of `ordered`; one worker without a deadline is the caller's thread.

    A mechanism that hangs in compiled code cannot be stopped. A daemon thread does not keep the process alive, as
    threads of `concurrent.futures` would. Threads that do not hang are waited for: a thread that runs a library's code
    when the interpreter ends can crash the process.
    """

    lost = ()

    def __init__(self, workers: int = 1) -> None:
        self.workers = max(workers, 1)
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed, self._abandoned = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def ordered(self, tasks: Iterable[Callable[[], T]], deadline: Deadline | None = None) -> Iterator[T | None]:
        """Yield the results of tasks as the function `ordered` does."""
        if self.workers == 1 and deadline is None:
            return (task() for task in tasks)
        return ordered(self, tasks, deadline)

    @override
    def submit(self, task: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._waiting.put((task, future))
        if len(self._threads) < self.workers:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        return future

    def _work(self) -> None:
        THREAD_STATE.abandoned = self._abandoned
        while (job := self._waiting.get()) is not None and not self._closed.is_set():
            task, future = job
            try:
                future.set_result(task())
            except BaseException as error:  # the caller raises it
                future.set_exception(error)

    @override
    def end(self, futures: "Sequence[Future[Any]]", patience: float) -> None:
        """Wait for running tasks; tasks that outlast the patience end before their next run of a mechanism."""
        self._closed.set()
        for _ in self._threads:
            self._waiting.put(None)
        self._join(patience)
        self._abandoned.set()  # an abandoned task must not run beside the next tasks
        self._join(TASK_GRACE_SECONDS)

    def _join(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for thread in self._threads if seconds else []:
            thread.join(None if seconds == math.inf else max(end - time.monotonic(), 0.0))


def within_seconds(task: Callable[[], T], seconds: float, *, what: str) -> T:
    """The result of a task that may take `seconds`, beside compiling; `what`: the beginning of the error's text."""
    for result in Threads().ordered([lambda: (task(),)], Deadline(time.monotonic() + seconds)):
        if result is not None:
            return result[0]
    raise MechanismTimeout(f"{what} in {seconds:g} s: give more time, as max_time, or make it faster")


class Processes(Pool):
    """Processes of this machine, by loky, one for each worker; they end with this process.

    Processes are spawned, not forked: a fork would repeat the state of every generator of this process. The pool does
    not use loky's reusable executor, which belongs to one thread, and which joblib may use with other settings.
    """

    eager = False
    lost = (RuntimeError, CancelledError)  # loky's own errors are derived from `RuntimeError`

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._loky: Any = None  # loky's executor, which has no types
        self._first_answer: Future[int] | None = None

    @property
    @override
    def ready(self) -> bool:
        first = self._first_answer
        if first is None:
            try:
                first = self._first_answer = self.submit(int)
            except Exception:  # sending work raises it again, as an error of the pool
                return True
        return first.done()

    @override
    def submit(self, task: Callable[[], T]) -> "Future[T]":
        """Send a task, to new processes if an old process has ended."""
        from loky.process_executor import (  # type: ignore[import-untyped]  # it has no types
            BrokenProcessPool,
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        while True:
            with self._lock:
                if self._loky is None:
                    self._loky = ProcessPoolExecutor(
                        self.workers,
                        timeout=60.0,  # a process without work ends
                        initializer=_prepare_process,
                        initargs=(os.getpid(),),
                        env=threads_of_each(self.workers),
                    )
                    # In another thread than the main one, where Ctrl-C would leave a half-started executor: at exit
                    # Python would wait for its thread for ever.
                    with ThreadPoolExecutor(1) as aside:
                        aside.submit(self._loky.submit, int).result()
                executor = self._loky
            try:
                future: Future[T] = executor.submit(task)
                return future
            except (BrokenProcessPool, ShutdownExecutorError):
                with self._lock:
                    if self._loky is executor:
                        self._loky = None

    @override
    def end(self, futures: "Sequence[Future[Any]]", patience: float) -> None:
        left = [future for future in futures if not future.cancel()]
        if not patience and left and wait(left, TASK_GRACE_SECONDS).not_done:
            self.stop()

    def stop(self) -> None:
        """Kill the processes of the pool."""
        with self._lock:
            executor, self._loky, self._first_answer = self._loky, None, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)


def threads_of_each(workers: int) -> dict[str, str]:
    """Environment variables that give the libraries in each of several processes its share of the cores as threads.

    If each process starts a thread for every core, a small product of matrices may take ten times as long. Variables
    that the user has set stay.
    """
    threads = str(max(default_workers() // workers, 1))
    return {name: threads for name in THREAD_VARIABLES if name not in os.environ}


def _prepare_process(parent: int) -> None:
    """Prepare a worker process: it ignores Ctrl-C, which is for the process `parent`, and ends with that process.

    Text that a mechanism prints goes to standard error: standard output may be for the result of a command.
    """
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()


def end_with_parent(parent: int) -> None:
    """End this process when its parent has ended; a killed parent sends no message."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@cache
def local_processes(workers: int) -> Processes:
    """The pool with `workers` processes, which is made at the first call."""
    pool = Processes(workers)
    atexit.register(pool.stop)
    return pool


class Cluster(Pool):
    """The workers of a Dask scheduler, which silently repeats the tasks of a lost worker on another worker.

    `settings`: options of `Client.get_executor`, such as `workers`.
    """

    lost = ()

    def __init__(self, client: "Client", name: str, settings: Mapping[str, Any] | None = None) -> None:
        self._client, self._name = client, name
        self._prefix = f"dpwitness{uuid.uuid4().hex}"  # of the keys of tasks, for which the scheduler counts losses
        self._losses: dict[str, int] = {}  # the tasks whose workers had ended when work was published, by its key
        with self._require_answer():
            try:
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            except TimeoutError as error:
                if client.status != "running":
                    raise
                raise ClusterLost(f"the cluster {name} has no workers: start some with `dask worker`") from error
            workers = sum(client.nthreads().values())  # type: ignore[no-untyped-call]  # Dask has few types
            executor = client.get_executor(**{**(settings or {}), "pure": False})  # type: ignore[no-untyped-call]  # Dask has few types
        super().__init__(executor, max(workers, 1))

    @contextmanager
    def _require_answer(self) -> Iterator[None]:
        """Raise `ClusterLost` if the scheduler does not answer a request in the context."""
        from distributed.comm.core import CommClosedError

        try:
            yield
        except ClusterLost:
            raise
        except (OSError, CommClosedError, CancelledError, RuntimeError, ValueError) as error:
            raise self._lost_error(first_line(error)) from error

    def _lost_error(self, why: str) -> ClusterLost:
        return ClusterLost(f"the scheduler of the cluster {self._name} does not answer any more ({why})")

    @override
    def submit(self, task: Callable[[], T]) -> "Future[T]":
        assert isinstance(task, partial)  # arguments are passed one by one, so that Dask finds published ones
        with self._require_answer():
            key = f"{self._prefix}-{uuid.uuid4().hex}"
            return self.executor.submit(task.func, *task.args, key=key)  # an option of Dask

    @override
    def publish(self, content: bytes) -> Any:
        """The bytes as the result of a Dask task: each worker fetches it once, and Dask makes a lost result again."""
        with warnings.catch_warnings(), self._require_answer():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # large data are sent once
            losses: int = self._client.run_on_scheduler(_losses_of, self._prefix)  # type: ignore[no-untyped-call]  # Dask has few types
            published = self._client.submit(bytes, content, pure=False)
            self._losses[str(published.key)] = losses
            return published

    @override
    def repeated(self, content: Any) -> bool:
        with self._require_answer():
            losses: int = self._client.run_on_scheduler(_losses_of, self._prefix)  # type: ignore[no-untyped-call]  # Dask has few types
            return losses > self._losses[content.key]

    @override
    def failure(self, error: Exception) -> DPWitnessError:
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return MechanismCrashed(
                f"several workers of the cluster {self._name} ended while they ran the mechanism: {first_line(error)}"
            )
        cancelled = isinstance(error, CancelledError)
        return self._lost_error("work on its way was cancelled") if cancelled else super().failure(error)


def _losses_of(prefix: str, dask_scheduler: Any) -> int:
    """The number of tasks with a prefix of their keys whose workers ended; called on the scheduler."""
    found = dask_scheduler.task_prefixes.get(prefix)
    return 0 if found is None else int(found.suspicious)


#: The clients that this process has opened, by address.
_CLIENTS: "dict[str, Client]" = {}
#: A lock for opening clients.
_CLIENTS_LOCK: Final = threading.Lock()


def is_of_dask(executor: Executor | None) -> "TypeIs[ClientExecutor]":
    """Whether an executor is the executor of a Dask client."""
    dask = sys.modules.get("distributed.cfexecutor")  # imported if there is an executor of its class
    return dask is not None and isinstance(executor, dask.ClientExecutor)


def cluster_of(cluster: "str | Client | ClientExecutor") -> Cluster:
    """The cluster of a scheduler's address, such as "tcp://host:8786", of a `distributed.Client` or of its executor.

    Raises `ClusterLost` if no scheduler answers or if it has no workers, and `InvalidParameter` if Dask is not
    installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise InvalidParameter(f"cluster={brief(cluster)} needs Dask: pip install '.[cluster]'") from error
    if isinstance(cluster, distributed.Client):
        return Cluster(cluster, "of the client")
    if not isinstance(cluster, str):
        return Cluster(cluster._client, "of the client", cluster._kwargs)
    with _CLIENTS_LOCK:
        if cluster not in _CLIENTS or _CLIENTS[cluster].status != "running":
            _CLIENTS[cluster] = _connect(cluster)
        return Cluster(_CLIENTS[cluster], cluster)


def _connect(address: str) -> "Client":
    """A new client of the scheduler at `address`. Raises `ClusterLost` if no scheduler answers."""
    from distributed import Client

    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # `ClusterLost` reports a lost scheduler
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask has few types
    except (OSError, ValueError) as error:
        raise ClusterLost(f"no scheduler answers at cluster={brief(address)} ({first_line(error)})") from error
    atexit.register(client.close)
    return client
