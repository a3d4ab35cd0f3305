"""Runs of mechanisms: their streams, where they are made, and what is counted."""

from dpwitness.runs.dask import on_cluster
from dpwitness.runs.dispatcher import Dispatcher, on_executor
from dpwitness.runs.executor import Executor, Threads, default_workers, in_time
from dpwitness.runs.processes import on_all_cores
from dpwitness.runs.runner import Progress, Runner, stack
from dpwitness.runs.streams import Role, generator, order

__all__ = [
    "Dispatcher",
    "Executor",
    "Progress",
    "Role",
    "Runner",
    "Threads",
    "default_workers",
    "generator",
    "in_time",
    "on_all_cores",
    "on_cluster",
    "on_executor",
    "order",
    "stack",
]
