"""Which last bits of floating-point outcomes tell D from D′. Never evidence.

Noise of double precision that is added to x ends on the grid of the last bits of the sum: 1 + noise is a multiple of
2^−53, and of 0 + noise nearly half is not (Mironov 2012; Haney et al. 2022). In real arithmetic there is nothing of the
kind, so these events are looked at apart from all others: `api.floating_point`.

A leak of this kind is in a large part of the runs or nowhere, so few runs of a few pairs show it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.candidate import Candidate, Estimate
from dpwitness.claims import Claim
from dpwitness.events import Feature, FeatureEvent, Interval, widen
from dpwitness.events.features import numbers
from dpwitness.neighbours import Pair

Rows = NDArray[np.float64]

#: Runs of each pair that are looked at, and pairs.
RUNS: Final = 256
PAIRS: Final = 12
#: Columns of an outcome that are looked at, and those of which every cut is tried: where the bits differ most.
COLUMNS: Final = 64
TRIED: Final = 4
#: A grid is of rounding, not of the mechanism, where it is finer than typical outcomes by so many bits: with fewer it
#: would be seen in real arithmetic too, and is for all other learners.
SIGNIFICANT: Final = 20
MANTISSA: Final = 53
#: An entry of which such a share is on a coarser grid, on either side, is left to them.
COARSE: Final = 0.25
#: What an event has to show in the runs that chose it, in nats, where chance may give less; and what suffices to stop.
LEAST: Final = 12.0
ENOUGH: Final = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBits:
    """A candidate, and how many nats its event showed against the claim in the runs that chose it."""

    candidate: Candidate
    nats: float


def is_rounded(rows: Rows) -> bool:
    """Whether outcomes hold floating-point numbers that are not whole; others have no last bits that tell anything."""
    plain = numbers(rows)
    return bool(np.any(plain != np.round(plain), where=np.isfinite(plain)))


def best_bits(outcomes: Iterable[tuple[Pair, Rows, Rows]], claim: Claim) -> Candidate | None:
    """The set of last bits that shows most against a claim in outcomes of some pairs; None where none shows anything.

    Rows have the shape (n, any width), with n paired runs, at least 2. Pairs behind one that shows enough are not asked
    for. The estimate is of the same runs.
    """
    best: FoundBits | None = None
    for pair, x, y in outcomes:
        best = max(filter(None, (best, *_of_pair(pair, x, y, claim))), key=lambda one: one.nats, default=None)
        if best is not None and best.nats >= ENOUGH:
            break
    return best.candidate if best is not None and best.nats >= LEAST else None


def _of_pair(pair: Pair, x: Rows, y: Rows, claim: Claim) -> Iterator[FoundBits]:
    """The best event of each of the most promising columns and features."""
    width = min(max(x.shape[1], y.shape[1]), COLUMNS)
    sides = np.stack([widen(rows, width)[:, :width] for rows in (x, y)])
    if not is_rounded(sides):
        return
    plain = numbers(sides)
    sizes = np.abs(plain).reshape(-1, width)
    sizes[~np.isfinite(sizes) | (sizes == 0)] = np.nan
    columns = np.flatnonzero(~np.isnan(sizes).all(axis=0))
    finest = np.floor(np.log2(np.nanmedian(sizes[:, columns], axis=0))) - SIGNIFICANT
    entries = sides[:, :, columns]
    for name in ("power of two", "trailing zeros"):
        values = Feature(name=name, columns=(0,)).values(entries.reshape(-1, 1)).reshape(entries.shape)
        most = finest if name == "power of two" else np.full(len(columns), MANTISSA - 1.0 - SIGNIFICANT)
        coarse = (values > most).mean(axis=1).max(axis=0) > COARSE
        for place in _promising(np.where(coarse, np.nan, values), most):
            feature = Feature(name=name, columns=(int(columns[place]),))
            one = _best_cut(pair, feature, values[:, :, place], most[place], claim)
            if one is not None:
                yield one


def _promising(values: Rows, most: Rows) -> list[int]:
    """The columns in which the values differ most, in standard errors; shape (2, n, width)."""
    clipped = np.where(np.isnan(values), most, np.minimum(values, most))
    means, spread = clipped.mean(axis=1), clipped.var(axis=1).sum(axis=0)
    apart = np.abs(means[0] - means[1]) / np.sqrt(spread + 1e-9)
    return [int(column) for column in np.argsort(-apart, kind="stable")[:TRIED] if apart[column] > 0]


def _best_cut(pair: Pair, feature: Feature, values: Rows, most: float, claim: Claim) -> FoundBits | None:
    """The best of {value ≥ t} and {value < t} with t ≤ `most`, in either direction; `values` has the shape (2, n)."""
    n = values.shape[1]
    cuts = np.unique(values)  # NaN goes last
    cuts = cuts[cuts <= most]
    if not len(cuts):
        return None
    members = np.stack([values[None] >= cuts[:, None, None], values[None] < cuts[:, None, None]])
    shares = members.mean(axis=3)  # of {≥, <}, cut and side
    p = np.stack([shares[..., 0], shares[..., 1]])
    q = p[::-1]
    plane = claim.half_plane(p, q)
    allowed = plane.slope * q + plane.intercept
    # One imagined run in the event on either side: what was not seen in a few runs is not impossible.
    nats = n * p * np.log((p + 1 / n) / (allowed + 1 / n))
    swapped, below, k = np.unravel_index(int(np.argmax(nats)), nats.shape)
    cut = float(cuts[k])
    within = Interval(coordinate=0, high=cut) if below else Interval(coordinate=0, low=cut)
    both = float(np.logical_and(*members[below, k]).mean())
    estimate = Estimate(p=float(p[swapped, below, k]), q=float(q[swapped, below, k]), both=both)
    event = FeatureEvent(feature=feature, within=within)
    found = Candidate(pair=pair.swapped() if swapped else pair, event=event, estimate=estimate)
    return FoundBits(candidate=found, nats=float(nats[swapped, below, k]))
