"""Mechanisms that another environment's interpreter runs."""

from dpwitness.mechanisms.remote.client import Remote, RemoteMechanism, remote

__all__ = ["Remote", "RemoteMechanism", "remote"]
