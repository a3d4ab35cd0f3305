"""Runs of mechanisms: their streams, where they are made, and what is counted."""

from dpwitness.runs.elsewhere import Dispatcher
from dpwitness.runs.executors import Pool, Threads, cluster_of, default_workers, in_time, is_of_dask, local_processes
from dpwitness.runs.runner import OVERRUN, Progress, Runner, Tried, stack
from dpwitness.runs.streams import Role, generator, order

__all__ = [
    "OVERRUN",
    "Dispatcher",
    "Pool",
    "Progress",
    "Role",
    "Runner",
    "Threads",
    "Tried",
    "cluster_of",
    "default_workers",
    "generator",
    "in_time",
    "is_of_dask",
    "local_processes",
    "order",
    "stack",
]
