"""Mechanisms that another environment's interpreter runs."""

from dpwitness.mechanisms.remote.client import Connection, RemoteFunction, RemoteMechanism, remote

__all__ = ["Connection", "RemoteFunction", "RemoteMechanism", "remote"]
