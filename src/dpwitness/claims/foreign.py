"""Claims of other packages: all that a check asks a claim is asked at a few points before it makes runs.

Evidence is valid where each half-plane that is bet on contains the region. So this is asked again of the half-planes
that bets use.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from typing import Any, Final, TypeVar, cast

import numpy as np

from dpwitness.checks import brief, is_ours, on_one_line
from dpwitness.claims.claim import Claim, Floats, HalfPlane, Numbers
from dpwitness.codec import require_shown
from dpwitness.errors import DPWitnessError, InvalidClaim

F = TypeVar("F", bound=Callable[..., Any])

#: Probabilities at which a claim is compared with its own half-planes.
RATES: Final = np.concatenate([[0.0], 1 / (1 + np.exp(np.linspace(14.0, -14.0, 57))), [1.0]])
#: Those by which a claim that was changed is told from what it was.
FEW_RATES: Final = (1e-5, 0.01, 0.3)
#: What a half-plane may cut off by rounding: as a share, and for intercepts near 0.
ROUNDING: Final = 1e-9
LEAST: Final = 1e-12
#: By how much `smallest` and `reached` may differ from `largest`, as a share: they are no evidence.
NEAR: Final = 1e-4
#: By so much at most is the detectable parameter looked for above the claim's.
FARTHEST: Final = 50.0
#: A probability of a rare event.
RARE: Final = 1e-6


def require_region(claim: Claim) -> None:
    """Raise `InvalidClaim` unless the answers of a claim of another package fit what its `largest` allows.

    A half-plane that cuts the region would accuse mechanisms that keep the claim; a wrong `smallest` would say of a
    pass that it had caught what it had not. A claim without all members of `Claim` is refused too.
    """
    if is_ours(claim):
        return
    members = [member for member in (*vars(Claim), *Claim.__annotations__) if not member.startswith("_")]
    missing = [member for member in members if not hasattr(type(claim), member) and not hasattr(claim, member)]
    if missing:
        raise InvalidClaim(
            f"the claim {type(claim).__name__} lacks {', '.join(missing)}: let its class inherit dpwitness.claims.Claim"
        )
    _require_answers(_Region.of(claim))


@dataclass(frozen=True, slots=True)
class _Region:
    """What a claim of another package allows, told apart by a few numbers: the claim itself may be changed."""

    kind: type
    numbers: tuple[float, ...]
    claim: Claim = field(compare=False)

    @classmethod
    def of(cls, claim: Claim) -> "_Region":
        parameter = float(_numbers(claim, "parameter", lambda: claim.parameter))
        if not 0 <= parameter < math.inf:
            raise _refusal(claim, f"parameter={parameter!r} must be finite and not negative")
        few = _numbers(claim, "largest(q)", lambda: [float(claim.largest(q)) for q in FEW_RATES], (len(FEW_RATES),))
        return cls(type(claim), (parameter, *few.tolist()), claim)


@lru_cache(maxsize=64)
def _require_answers(region: _Region) -> None:
    """Ask a claim that has all members."""
    claim, parameter = region.claim, region.numbers[0]
    texts = {name: partial(getattr, claim, name) for name in ("kind", "symbol", "short", "variant", "condition")}
    require_shown(
        claim, "the claim", {"str()": lambda: str(claim), "tail()": lambda: claim.tail(RARE), **texts}, InvalidClaim
    )
    _answer(claim, f"largest_order({RARE:g})", lambda: float(claim.largest_order(RARE) or 0.0))
    allowed = _allowed(region)
    within = (allowed >= RATES * (1 - ROUNDING)) & (allowed <= 1 + ROUNDING)
    if not (np.all(within) and np.all(np.diff(allowed) >= -LEAST)):
        raise _refusal(claim, "largest(q) must not fall in q, and be at least q, as equal inputs are private")
    # Estimates within the region, and beyond what is allowed.
    p = np.array([0 * allowed, 0.7 * allowed, *(allowed + share * (1 - allowed) for share in (0.01, 0.3, 1.0))])
    p, q = np.minimum(p, 1.0), np.broadcast_to(RATES, p.shape)
    half_plane_of(claim)  # without an estimate
    for one, other in zip(p.ravel().tolist(), q.ravel().tolist(), strict=True):
        what = f"half_plane({one:.3g}, {other:.3g})"
        _require_contained(claim, _planes(claim, what, partial(claim.half_plane, one, other)), allowed)
    planes = _planes(claim, "half_plane(p, q) of arrays", lambda: claim.half_plane(p, q), p.shape)
    _require_contained(claim, planes, allowed)
    _require_family(claim, parameter, allowed, p.ravel(), q.ravel())


def half_plane_of(claim: Claim, p: Numbers | None = None, q: Numbers | None = None) -> HalfPlane:
    """`claim.half_plane(p, q)`, to bet on. Raises `InvalidClaim` where that of another package cuts the region."""
    if is_ours(claim):
        return claim.half_plane(p, q)
    shape = () if p is None or q is None else np.broadcast_shapes(np.shape(p), np.shape(q))
    plane = _planes(claim, "half_plane(p, q)", lambda: claim.half_plane(p, q), shape)
    _require_contained(claim, plane, _allowed(_Region.of(claim)))
    return plane


def half_planes_of(claim: Claim, parameters: Floats, p: float | None = None, q: float | None = None) -> HalfPlane:
    """`claim.half_planes(parameters, p, q)`, to bet on; asked as in `half_plane_of`, at three of the parameters."""
    if is_ours(claim):
        return claim.half_planes(parameters, p, q)
    planes = _planes(claim, "half_planes(x, p, q)", lambda: claim.half_planes(parameters, p, q), parameters.shape)
    for k in sorted({0, len(parameters) // 2, len(parameters) - 1} if len(parameters) else ()):
        try:
            other = claim.at(float(parameters[k]))
        except Exception:  # beyond the family's range: no claim is tested there
            continue
        _require_contained(claim, HalfPlane(planes.slope[k], planes.intercept[k]), _allowed(_Region.of(other)))
    return planes


def kept_for_ours(size: int) -> Callable[[F], F]:
    """`lru_cache` for functions of a claim; nothing is kept of claims of other packages, which may be changed."""

    def keeping(function: F) -> F:
        kept = lru_cache(maxsize=size)(function)

        @wraps(function)
        def call(*arguments: Any, **more: Any) -> Any:
            foreign = any(hasattr(one, "half_plane") and not is_ours(one) for one in arguments)
            return (function if foreign else kept)(*arguments, **more)

        return cast("F", call)

    return keeping


def _require_family(claim: Claim, parameter: float, allowed: Floats, p: Floats, q: Floats) -> None:
    """Ask what depends on the family's parameter: at 0, at the claim's own, and where estimates reach others."""
    p, q = p[p > 0], q[p > 0]
    reached = _numbers(claim, "reached(p, q) of arrays", lambda: claim.reached(p, q), p.shape)
    if not np.all(reached >= 0):
        raise _refusal(claim, f"reached(p, q) is {reached.min():g} somewhere: it must not be negative")
    beyond = np.flatnonzero((reached > parameter) & (reached < math.inf) & (q > 0))
    beyond = beyond[:: max(len(beyond) // 3, 1)]
    for k in (0, *beyond, len(p) - 1):
        _numbers(claim, f"reached({p[k]:.3g}, {q[k]:.3g})", partial(claim.reached, float(p[k]), float(q[k])))
    parameters = np.unique([0.0, parameter / 2, parameter, *reached[beyond]])
    regions = np.array([_allowed(_Region.of(_at(claim, x))) for x in parameters])
    if not np.allclose(regions[parameters == parameter], allowed, NEAR, LEAST):
        raise _refusal(claim, f"at({parameter:g}) must allow what the claim itself does, as that is its parameter")
    if not np.all(np.diff(regions, axis=0) >= -ROUNDING * regions[1:]):
        raise _refusal(claim, "at(x) must allow more for a larger x")
    for k in beyond:
        if not _at(claim, reached[k]).largest(float(q[k])) >= p[k] * (1 - NEAR):
            raise _refusal(
                claim, f"reached({p[k]:.3g}, {q[k]:.3g}) is {reached[k]:.3g}, but at({reached[k]:.3g}) allows less"
            )
    estimates = [(None, None), *zip(p[::37].tolist(), q[::37].tolist(), strict=True)]
    for one, other in estimates:
        what = "half_planes(x)" if one is None else f"half_planes(x, {one:.3g}, {other:.3g})"
        planes = _planes(claim, what, partial(claim.half_planes, parameters, one, other), parameters.shape)
        _require_contained(claim, planes, regions)
    for x in parameters:
        _require_smallest(claim, float(x))
    _numbers(claim, f"smallest(0.5, {parameter + FARTHEST:g})", lambda: claim.smallest(0.5, parameter + FARTHEST))


def _require_smallest(claim: Claim, parameter: float) -> None:
    """Compare `smallest` with `largest`: p is allowed a little above it, and no more than p a little below it."""
    other = _at(claim, parameter)
    for p in RATES[1:-1:4].tolist():
        what = f"smallest({p:.3g}, {parameter:.3g})"
        q = float(_numbers(claim, what, partial(claim.smallest, p, parameter)))
        below, above = q * (1 - NEAR) - ROUNDING, min(q * (1 + NEAR) + ROUNDING, 1.0)
        least = other.largest(below) if below > 0 else 0.0
        if not (0 <= q <= 1 and least <= p * (1 + NEAR) and other.largest(above) >= p * (1 - NEAR)):
            raise _refusal(
                claim, f"{what} is {q:.3g}: it must be the least q at which at({parameter:.3g}).largest(q) is {p:.3g}"
            )


def _at(claim: Claim, parameter: float) -> Claim:
    """`claim.at(parameter)`, which has this parameter."""
    what = f"at({parameter:.3g})"
    other: Claim = _answer(claim, what, lambda: claim.at(float(parameter)))
    found = float(_numbers(claim, f"the parameter of {what}", lambda: other.parameter))
    if not math.isclose(found, parameter, rel_tol=ROUNDING, abs_tol=LEAST):
        raise _refusal(claim, f"the parameter of {what} is {found:.3g}: it must be the one given")
    return other


@lru_cache(maxsize=512)
def _allowed(region: _Region) -> Floats:
    """G at `RATES`."""
    claim = region.claim
    return _numbers(claim, "largest(q)", lambda: [float(claim.largest(q)) for q in RATES.tolist()], RATES.shape)


def _require_contained(claim: Claim, planes: HalfPlane, allowed: Floats) -> None:
    """Compare one half-plane, or several, with what is allowed at `RATES`: by all of them, or by each."""
    slope, intercept = np.ravel(planes.slope), np.ravel(planes.intercept)
    allowed = np.broadcast_to(allowed, (len(slope), len(RATES)))
    bound = np.minimum(slope, 1e300)[:, None] * RATES + intercept[:, None]
    wrong = ~((slope >= 0) & np.isfinite(intercept))
    wrong |= ~np.all(bound >= allowed * (1 - ROUNDING) - LEAST, axis=1)
    if wrong.any():
        first = int(np.argmax(wrong))
        worst = int(np.argmin(bound[first] - allowed[first]))
        raise _refusal(
            claim,
            f"its half-plane p ≤ {slope[first]:g}·q + {intercept[first]:g} must rise and contain all that it allows, "
            f"and largest({RATES[worst]:.3g}) is {allowed[first, worst]:.3g}: only a convex region has such "
            "half-planes",
        )


def _planes(claim: Claim, what: str, question: Callable[[], HalfPlane], shape: tuple[int, ...] = ()) -> HalfPlane:
    """The half-planes that a claim answers, as arrays of a shape."""
    planes = _answer(claim, what, question)
    slope, intercept = (
        _numbers(claim, f"the {part} of {what}", partial(getattr, planes, part), shape)
        for part in ("slope", "intercept")
    )
    return HalfPlane(slope, intercept)


def _numbers(claim: Claim, what: str, question: Callable[[], Any], shape: tuple[int, ...] = ()) -> Floats:
    """The numbers that a claim answers, as an array of a shape."""
    value = _answer(claim, what, question)
    try:
        found = np.asarray(value)
        numbers = np.broadcast_to(found.astype(np.float64), shape) if found.dtype.kind in "fiu" else None
    except ValueError:  # rows of unequal lengths, or another shape
        numbers = None
    if numbers is None or np.isnan(numbers).any():
        wanted = "numbers of the shape of those given" if shape else "a number"
        raise _refusal(claim, f"{what} is {brief(value)}: it must be {wanted}, not NaN")
    return numbers


def _answer(claim: Claim, what: str, question: Callable[[], Any]) -> Any:
    """What a claim answers; `InvalidClaim` where that raises."""
    try:
        with np.errstate(all="ignore"):
            return question()
    except DPWitnessError:
        raise
    except Exception as error:  # whatever the user's class raises
        raise _refusal(claim, f"{what} raised {on_one_line(error)}") from error


def _refusal(claim: Claim, why: str) -> InvalidClaim:
    return InvalidClaim(f"the claim {type(claim).__name__}: {why}")
