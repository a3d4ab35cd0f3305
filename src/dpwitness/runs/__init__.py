"""Runs of mechanisms: their streams, where they are made, and what is counted."""

from dpwitness.runs.dask import is_of_dask, on_cluster
from dpwitness.runs.dispatcher import Dispatcher, on_executor
from dpwitness.runs.processes import on_all_cores
from dpwitness.runs.runner import Progress, Runner, Tried, stack
from dpwitness.runs.streams import Role, generator, order
from dpwitness.runs.threads import Threads, default_workers, in_time

__all__ = [
    "Dispatcher",
    "Progress",
    "Role",
    "Runner",
    "Threads",
    "Tried",
    "default_workers",
    "generator",
    "in_time",
    "is_of_dask",
    "on_all_cores",
    "on_cluster",
    "on_executor",
    "order",
    "stack",
]
