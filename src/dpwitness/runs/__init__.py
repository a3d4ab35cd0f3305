"""Runs of mechanisms: their streams, where they are made, and what is counted."""

from dpwitness.runs.dask import cluster_of, is_of_dask
from dpwitness.runs.dispatcher import Dispatcher, Pool
from dpwitness.runs.processes import local_processes
from dpwitness.runs.runner import OVERRUN, Progress, Runner, Tried, stack
from dpwitness.runs.streams import Role, generator, order
from dpwitness.runs.threads import Threads, default_workers, in_time

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
