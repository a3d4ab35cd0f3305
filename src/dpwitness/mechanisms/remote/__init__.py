"""Mechanisms that another environment's interpreter runs."""

from dpwitness.mechanisms.remote.client import RemoteFunction, RemoteMechanism, remote

__all__ = ["RemoteFunction", "RemoteMechanism", "remote"]
