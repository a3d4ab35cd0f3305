"""Mechanisms that another environment's interpreter runs."""

from dpwitness.mechanisms.remote.function import Remote, remote
from dpwitness.mechanisms.remote.mechanism import RemoteMechanism

__all__ = ["Remote", "RemoteMechanism", "remote"]
