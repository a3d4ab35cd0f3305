"""check, bound, curve, replay and shrink: the only rooms where search and confirm runs meet."""

from dpwitness.api.bound import bound
from dpwitness.api.check import check
from dpwitness.api.curve import curve
from dpwitness.api.replay import replay
from dpwitness.api.shrink import shrink

__all__ = ["bound", "check", "curve", "replay", "shrink"]
