"""Runs of mechanisms: random streams, the threads and processes that make runs, and counts of events."""

from dpwitness.runs.elsewhere import Dispatcher
from dpwitness.runs.executors import (
    Pool,
    Threads,
    cluster_of,
    default_workers,
    is_of_dask,
    local_processes,
    within_seconds,
)
from dpwitness.runs.runner import OVERRUN_SECONDS, Progress, Runner, Tried
from dpwitness.runs.streams import Role, generator, order, seed_after

__all__ = [
    "OVERRUN_SECONDS",
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
    "is_of_dask",
    "local_processes",
    "order",
    "seed_after",
    "within_seconds",
]
