"""Gaussian and f-differential privacy: claims stated as trade-off functions (Dong, Roth & Su 2022, JRSS-B 84(1))."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np

from dpwitness.arrays import Floats
from dpwitness.checks import class_and_text, number
from dpwitness.claims.claim import LARGEST_PARAMETER, HalfPlane, Numbers, in_range, points_of
from dpwitness.claims.regions import BOUNDARY_POINTS, Contacts, CurvedClaim, Points, PolygonClaim, lower_hull
from dpwitness.errors import InvalidClaim


@dataclass(frozen=True, slots=True)
class GaussianDP(CurvedClaim):
    """μ-Gaussian differential privacy: P[M(D) ∈ S] ≤ Φ(Φ⁻¹(P[M(D′) ∈ S]) + μ) for all neighbours and all events S.

    That is, telling D from D′ by an outcome is at least as hard as telling N(0, 1) from N(μ, 1) (Dong, Roth & Su 2022,
    Definition 4). N(f(D), σ²) with a sensitivity Δ of f is exactly Δ/σ-GDP; μ is in standard deviations. Refuted means
    that some event tells D from D′ better than any test tells these two Gaussians apart. The claim is equivalent to the
    (ε, δ) claims with δ = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2) for all ε (Corollary 1): a refutation refutes some pair
    (ε, δ), which need not be named beforehand. Raises `InvalidClaim` unless 0 ≤ μ ≤ 700.
    """

    kind: ClassVar[str] = "gaussian-dp"
    symbol: ClassVar[str] = "μ"

    mu: float

    def __post_init__(self) -> None:
        in_range(self, "mu", 0.0, LARGEST_PARAMETER)

    @property
    def parameter(self) -> float:
        """The claim's μ, in standard deviations."""
        return self.mu

    @property
    def shown_by_one_event(self) -> bool:
        """True: every half-line of N(μ, 1) and N(0, 1) is on the boundary."""
        return True

    def at(self, parameter: float) -> "GaussianDP":
        """The claim of another μ."""
        return replace(self, mu=parameter)

    def reached(self, p: Numbers, q: Numbers) -> Numbers:
        """The smallest μ that allows (p, q): Φ⁻¹(p) − Φ⁻¹(q), at least 0."""
        from scipy.special import ndtri

        with np.errstate(invalid="ignore"):
            return np.maximum(np.nan_to_num(ndtri(p) - ndtri(q), posinf=np.inf, neginf=0.0), 0.0)

    def largest(self, q: float) -> float:
        """The largest probability on D, Φ(Φ⁻¹(q) + μ), of an event of probability q on D′."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(q) + self.mu))

    def smallest(self, p: float, parameter: float) -> float:
        """The smallest q, Φ(Φ⁻¹(p) − μ), for the parameter μ."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(p) - parameter))

    def contacts(self) -> Contacts:
        """Points Φ(z), Φ(z + μ); the hints are z."""
        from scipy.special import ndtr

        # The points are equally spaced in z, from the far tail of D to the far tail of D′.
        z = np.linspace(-7.0 - self.mu, 7.0, BOUNDARY_POINTS)
        return Contacts(ndtr(z), ndtr(z + self.mu), z[None])

    def planes(self, parameters: Numbers, hints: Floats) -> HalfPlane:
        """Tangents at q = Φ(z): slope e^(−zμ − μ²/2), intercept Φ(z + μ) − slope·Φ(z), rounded outwards."""
        from scipy.special import log_ndtr, ndtr

        mu = np.asarray(parameters, np.float64)
        z = np.maximum(hints[0], -(600.0 + mu**2 / 2) / np.maximum(mu, 1e-9))  # a slope above e^700 would overflow
        log_slope, allowed = -z * mu - mu**2 / 2, ndtr(z + mu)
        # The errors of an exponential and of Φ are relative, and grow with the size of the exponent.
        error = 1e-14 * (4 + np.abs(log_slope) + (z + mu) ** 2 / 2 * (z + mu < 0) + z**2 / 2 * (z < 0))
        below = np.exp(np.minimum(log_slope + log_ndtr(z), 0.0))
        intercept = np.maximum(allowed - below, 0.0) + error * allowed
        return HalfPlane(np.exp(log_slope) * (1 + error), intercept)

    def __str__(self) -> str:
        return f"μ = {self.mu:g}"

    @property
    def short(self) -> str:
        """The claim as "0.5-GDP"."""
        return f"{self.mu:g}-GDP"


#: CURVE_ROUNDING is the largest error of f(a), such as a violation of convexity, that is taken for rounding.
CURVE_ROUNDING: Final = 1e-9
#: TEST_SIZES has the test sizes a at which a callable is evaluated, with log-odds 0.04 apart.
TEST_SIZES: Final = 1 / (1 + np.exp(-np.linspace(-27.6, 27.6, 1381)))
#: LEAST_SIZE is the test size below which sizes count as 0: larger doubles are at least 10⁻²⁹⁶ apart, so the slopes
#: between them are finite.
LEAST_SIZE: Final = 1e-280
#: DIFFERENCE_ERROR is the rounding error of a difference of two values near 1.
DIFFERENCE_ERROR: Final = 2e-15


@dataclass(frozen=True, slots=True, init=False)
class TradeOff(PolygonClaim):
    """f-differential privacy: a test of D′ against D of size a errs on D with probability at least f(a).

    With the event S as rejection region, P[M(D) ∈ S] ≤ 1 − f(P[M(D′) ∈ S]) for all neighbours and all events (Dong,
    Roth & Su 2022, Definition 3). a and f(a) are probabilities; no conversion is made, since f is the boundary of the
    tested region. f is convex, falls, and f(a) ≤ 1 − a. It is given by the corners (a, f(a)) of a polygon, or as a
    callable. A callable is replaced by a polygon that is nowhere above it and, where a ≥ 10⁻¹², less than 10⁻² below it
    (10⁻³ for Gaussian or Laplace noise): a refutation of the polygon refutes the callable. Between corners f is a
    straight line, so give a strictly convex function as a callable, not by points. Refuted means that some event tells
    D from D′ better than f allows. The family's parameter is the excess x, in nats: it makes the slope of every
    supporting line e^x times as large and so adds x to every ε of the privacy profile of f; x = 0 is the claim itself.
    Raises `InvalidClaim` for a function that is not a trade-off function.
    """

    kind: ClassVar[str] = "trade-off"

    def __init__(self, f: Callable[[float], float] | Iterable[tuple[float, float]], excess: float = 0.0) -> None:
        PolygonClaim.__init__(self, _polygon_below(f) if callable(f) else _polygon_through(points_of(f)), excess)

    @staticmethod
    @lru_cache(maxsize=64)
    def sides(points: Points) -> tuple[Floats, Floats]:
        """The slope and the intercept of p ≤ 1 − f(q) on each side of the polygon, rounded outwards."""
        a, f = np.array(points).T
        slopes = -np.diff(f) / np.diff(a)
        # The intercept is the maximum over all corners: a slope between corners 10⁻¹³ apart is wrong by 10⁻³.
        intercepts = np.array([np.max(1 - f - slope * a) for slope in slopes])
        return slopes, np.maximum(intercepts + 1e-15, 0.0)

    def __str__(self) -> str:
        more = f", excess ε = {self.excess:g}" if self.excess else ""
        return f"the trade-off function with f(0.05) = {1 - self.at(0.0).largest(0.05):.4g}{more}"

    @property
    def short(self) -> str:
        """The claim as "f-DP for the trade-off function with f(0.05) = 0.9"."""
        return f"f-DP for {self}"


def _check_points(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    for a, value in points:
        if not (0 <= a <= 1 and 0 <= value <= 1 - a + CURVE_ROUNDING):
            raise InvalidClaim(f"points: f({a!r}) = {value!r} must lie from 0 to 1 − {a!r}, and {a!r} from 0 to 1")
    return [(a, min(value, 1 - a)) for a, value in sorted(points)]


def _polygon_through(points: list[tuple[float, float]]) -> Points:
    """The corners of the polygon through points, with ends at 0 and 1. Raises `InvalidClaim` if it is not convex."""
    points = _check_points(points)
    for before, after in pairwise(points):
        if after[1] > before[1] + CURVE_ROUNDING:
            raise InvalidClaim(
                f"points: f({after[0]!r}) = {after[1]!r} follows f({before[0]!r}) = {before[1]!r}: f must fall"
            )
    if len(points) < 2:
        raise InvalidClaim(f"points={points!r} must hold at least two points of the trade-off function")
    points = _start_at_zero(_extend_to_ends(points))
    corners = lower_hull(points)
    a, f = np.array(corners).T
    for x, value in points:
        if value > np.interp(x, a, f) + CURVE_ROUNDING:
            raise InvalidClaim(
                f"points: f({x!r}) = {value!r} lies above its neighbours: a trade-off function is convex"
            )
    return corners


def _extend_to_ends(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points with ends at 0 and 1: the first and last sides are prolonged, the lowest convex continuation."""
    (a, first), (b, second) = points[:2]
    if a > 0:
        points = [(0.0, min(first + (first - second) / (b - a) * a, 1.0)), *points]
    (a, second_last), (b, last) = points[-2:]
    if b < 1:
        falls = (second_last - last) / (b - a)
        zero = b + last / falls if falls > 0 else math.inf
        points += [(zero, 0.0), (1.0, 0.0)] if zero < 1 else [(1.0, 0.0)]
    return points


def _start_at_zero(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points, with a point at 0, of the least value, for all points below `LEAST_SIZE`; they claim no more."""
    least = min(value for a, value in points if a < LEAST_SIZE)
    return [(0.0, least), *(point for point in points if point[0] >= LEAST_SIZE)]


def _polygon_below(f: Callable[[float], float]) -> Points:
    """The corners of a polygon that lies nowhere above a convex function.

    Between two points of the grid a convex function lies above the lines through the two points before and the two
    points behind, which meet in a corner. The lower hull of all corners lies nowhere above the function.
    """
    at = [0.0, *TEST_SIZES.tolist(), 1.0]
    try:
        values = [number(f"f({a:.3g})", f(a), InvalidClaim) for a in at]
    except InvalidClaim:
        raise
    except Exception as error:  # whatever the user's function raises
        raise InvalidClaim(
            f"f raised {class_and_text(error, brackets=True)}: it must give a number for every a"
        ) from error
    grid = _check_points(list(zip(at, values, strict=True)))
    a, y = np.array(grid).T
    if np.any(np.diff(y) > CURVE_ROUNDING):
        raise InvalidClaim("f rises somewhere between 0 and 1: a trade-off function falls")
    slopes = np.minimum(np.diff(y) / np.diff(a), 0.0)
    slope_error = DIFFERENCE_ERROR / np.diff(a)
    if np.any(np.diff(slopes) < -CURVE_ROUNDING * (1 + np.abs(slopes[1:])) - slope_error[1:] - slope_error[:-1]):
        raise InvalidClaim("f is not convex between 0 and 1: a trade-off function is")
    return lower_hull(_corners(a, y, slopes))


def meeting_points(x: Floats, y: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """The meeting points of the lines through the two points before and the two points behind each inner interval.

    `slopes`: the slopes of the intervals. A convex function through the points lies nowhere below the meeting points.
    Lines that do not meet within their interval are replaced by one of its ends.
    """
    width, height = np.diff(x)[1:-1], np.diff(y)[1:-1]
    before, behind = slopes[:-2], slopes[2:]
    bend = behind - before
    # The lines run from the left end along `before` and to the right end along `behind`.
    meets = np.divide(behind * width - height, bend, out=np.zeros_like(bend), where=bend > 0)
    across = np.clip(meets, 0.0, width)
    return x[1:-2] + across, np.minimum(y[1:-2] + before * across, y[2:-1] - behind * (width - across))


def _corners(a: Floats, y: Floats, slopes: Floats) -> list[tuple[float, float]]:
    """The `meeting_points` and both ends, as corners (a, f(a))."""
    at, lower = meeting_points(a, y, slopes)
    first = (0.0, max(float(y[1] - slopes[1] * a[1]), 0.0))
    corners = [first, *zip(at.tolist(), np.maximum(lower - DIFFERENCE_ERROR, 0.0).tolist(), strict=True)]
    fall, rest = -float(slopes[-2]), float(y[-2])
    zero = float(a[-2]) + rest / fall if fall > 0 else math.inf
    return [*corners, *([(zero, 0.0)] if zero < 1 else []), (1.0, 0.0)]
