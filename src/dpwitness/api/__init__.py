"""check, bound, curve, replay and shrink: the only rooms where search and confirm runs meet."""

from dpwitness.api.bounding import bound
from dpwitness.api.checking import check
from dpwitness.api.curves import curve
from dpwitness.api.replaying import replay
from dpwitness.api.shrinking import shrink

__all__ = ["bound", "check", "curve", "replay", "shrink"]
