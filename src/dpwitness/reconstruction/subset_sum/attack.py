"""What is asked of a system that answers subset sums: a set of people → the sum of their secret bits, with errors.

How far a reconstruction is to be trusted: what it predicts of answers that it was not made of.

The subsets are drawn by the attack, so whatever a system answers, the mean of its answers with a person less the mean
without them is what that person's bit adds. A system that answers sums of bits adds 1 for each 1 and 0 for each 0; one
that answers a share of them, or something else, adds less. What is claimed of a bit is the least that it is under all
such shares, and all further differences between people, that the answers leave open.

The attack on a system of the user's own: ask, reconstruct, say without the truth how far to trust it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.machine import Deadline
from dpwitness.reconstruction.asking import Asking
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    Reconstruction,
    Subsets,
    least_squares_adversary,
    polynomial_adversary,
)
from dpwitness.reconstruction.subset_sum.oracle import check_queries, query_count
from dpwitness.reconstruction.transcript import Form, as_number

Subset = NDArray[np.bool_]


class Oracle(Protocol):
    """A system under attack: the user's own, behind `--oracle`.

    It may also be an object with `ask_all(questions)`, a list of subsets → as many answers.
    """

    def __call__(self, subset: NDArray[np.bool_], /) -> float:
        """The noisy sum of the secret bits of the people who are True in `subset`, shape (people,)."""


def _written(subset: Subset) -> Any:
    """The people of the subset, from 0, as files have them."""
    return np.flatnonzero(subset).tolist()


FORM: Final[Form[Subset]] = Form(
    family="subset_sum",
    answer="a finite number",
    written=_written,
    handed=np.copy,
    read=as_number,
    of_system=("size",),
)


Floats = NDArray[np.float64]
Bits = NDArray[np.int64]

#: Standard errors by which a scale may be off.
ERRORS: Final = 2.0
#: Standard errors by which it must differ from 0, for anything to be claimed: one system of noise in 700 shows as much.
SHOWN: Final = 3.0
#: Nats by which a likelihood may be below the largest one: a standard error.
LIKELY: Final = 0.5
#: Scales that are tried between the limits.
SCALES: Final = 5
#: The least part of the bits' scale that a prediction is expected to bear out, if it is to tell anything of it.
LEAST: Final = 0.02
#: Standard deviations by which people's values may differ beyond their bits, in counts.
FURTHER: Final = np.append(0.0, np.geomspace(0.01, 10.0, 61))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """By how much more a bit recovered as 1 adds to answers than one recovered as 0, in counts, and the standard error.

    1 where all bits are right and the answers are their sums; 0 where the answers say nothing. `zero`: how much a bit
    recovered as 0 adds, and the standard error of that.
    """

    value: float
    error: float
    zero: float
    zero_error: float

    @property
    def low(self) -> float:
        """The least that it may be."""
        return self.value - ERRORS * self.error

    @property
    def shown(self) -> bool:
        """Whether the answers bear the bits out at all. A bit of 0 that takes away from sums is none."""
        return self.value > SHOWN * self.error and self.zero >= -SHOWN * self.zero_error

    @property
    def high(self) -> float:
        """The most that it may be."""
        return self.value + ERRORS * self.error


def held_out(subsets: Subsets, answers: Floats, found: Reconstruction, expected: float = 1.0) -> Scale | None:
    """The scale that answers show which a reconstruction was not made of, beside a constant and the subsets' sizes.

    `expected`: the scale that the reconstruction itself expects if the answers are sums of bits, since some of its bits
    are wrong. None: nothing can be said, as where all bits are alike, which predicts no more than a constant does.
    """
    columns = np.column_stack(
        [subsets.sums(found.bits.astype(np.float64)), subsets.sums(np.ones(subsets.people)), np.ones(len(answers))]
    )
    spare = len(answers) - columns.shape[1]
    gram = columns.T @ columns
    if spare < 2 or expected < LEAST or np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    values = np.linalg.solve(gram, columns.T @ answers)
    errors = np.sqrt(np.sum((columns @ values - answers) ** 2) / spare * np.maximum(np.diag(np.linalg.inv(gram)), 0.0))
    # No error is below what sums of this size are rounded to.
    errors = np.maximum(errors, 1e-9)
    return Scale(
        value=float(values[0]) / expected,
        error=float(errors[0]) / expected,
        zero=float(values[1]),
        zero_error=float(errors[1]),
    )


def pooled(scales: Sequence[Scale | None], *, correlation: float = 0.0) -> Scale | None:
    """Several measurements as one, each weighted by the inverse of its variance; None where there is none.

    `correlation`: of each two of them.
    """
    some = [one for one in scales if one is not None]
    if not some:
        return None

    def mean(values: list[float], errors: list[float]) -> tuple[float, float]:
        weights = 1 / np.array(errors) ** 2
        inflated = 1 + correlation * (len(errors) - 1)
        return float(weights @ values / weights.sum()), math.sqrt(inflated / weights.sum())

    value, error = mean([one.value for one in some], [one.error for one in some])
    zero, zero_error = mean([one.zero for one in some], [one.zero_error for one in some])
    return Scale(value=value, error=error, zero=zero, zero_error=zero_error)


def expected_scale(found: Reconstruction) -> float:
    """The scale that a least-squares fit expects fresh answers to show, 1 where all its bits are certain."""
    ones = found.bits == 1
    if found.expected_right is None or ones.all() or not ones.any():
        return 1.0
    return float(found.fractions[ones].mean() - found.fractions[~ones].mean())


def claimed(found: Reconstruction, scale: Scale | None) -> Floats:
    """The probability with which each bit of a least-squares fit is claimed to be right, at least 1/2, shape (n,)."""
    assert found.means is not None
    assert found.variances is not None
    claims = np.ones(len(found.bits))
    if scale is None or not scale.shown:
        return claims / 2
    # Above 1 only where the answers exclude 1: there are no sums of bits in which a bit adds more.
    high = 1.0 if scale.low < 1 else scale.high
    for tried in (*np.linspace(scale.low, high, SCALES), 1.0):
        variances = found.variances + _further(found.means, found.variances, tried)
        odds = tried * (found.means - tried / 2) / variances
        claims = np.minimum(claims, _expit(np.where(found.bits == 1, odds, -odds)))
    return np.maximum(claims, 0.5)


def claimed_alike(fit: Reconstruction, scale: Scale | None, agreed: float) -> float:
    """The probability with which every bit of a linear program is claimed to be right, at least 1/2.

    `fit`: of least squares to the same answers, which shows how far people differ beyond their bits; `agreed`: the
    share that two halves of the questions allow.
    """
    if scale is None or not scale.shown:
        return 0.5
    assert fit.means is not None
    assert fit.variances is not None
    further = math.sqrt(_further(fit.means, fit.variances, 1.0))
    right = (1 + math.erf(0.5 / further / math.sqrt(2))) / 2 if further else 1.0
    return max(min(agreed, (1 + scale.low) / 2, right), 0.5)


def _further(means: Floats, variances: Floats, scale: float) -> float:
    """The most variance that values have beyond bits of a scale and their errors, as far as the likelihood allows."""
    logs = []
    for deviation in FURTHER:
        variance = np.maximum(variances + deviation**2, 1e-12)
        away = np.stack([means**2, (means - scale) ** 2]) / (2 * variance)
        logs.append(float(np.sum(np.logaddexp(-away[0], -away[1]) - np.log(variance) / 2)))
    return float(FURTHER[np.flatnonzero(np.array(logs) >= max(logs) - LIKELY)[-1]] ** 2)


def _expit(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(odds, -700, 700)))


#: Of the questions, one in so many is kept for checking, and at least so many.
CHECKED: Final = 11
LEAST_CHECKED: Final = 10
#: By how many answers a fit must have more than people: one for what all have in common, one to show their errors.
SPARE: Final = 2
#: The halves of the questions: every second one.
HALVES: Final = (slice(0, None, 2), slice(1, None, 2))
#: The correlation of what one half shows of the other one with what that shows of it, where answers are mere noise: of
#: Σ sign(a)·b and Σ sign(b)·a, for independent normal a and b.
CROSSWISE: Final = 2 / math.pi
#: Tells the generator of the subsets from all others made of the same seed.
STREAM: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked: `used` random subsets for the reconstruction and `fresh` ones to check it; all, if `every`.

    `adversary`: its name, None for the one whose reconstructions from two halves of the questions agree better.
    `error`: E of answers to all subsets. `variance`: of the errors, None where it is not known.
    """

    size: int
    used: int
    fresh: int
    every: bool = False
    adversary: str | None = None
    error: float = 0.0
    variance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """How answers that the reconstruction was not made of are predicted: their number, and root mean squared errors.

    `error`: of the reconstruction, `constant`: of the best constant answer, in counts. `halves`: of how many bits two
    reconstructions from two halves of the questions agree; None: not tried. `scale`: what `trust.held_out` measures on
    these answers, and on either half of the others by the other half.
    """

    number: int
    error: float
    constant: float
    halves: int | None
    scale: Scale | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attack: `adversary`'s reconstruction, what it claims, and why it stopped early, if it did.

    `claims`: the probability with which each bit is claimed to be right, 1/2 where nothing is claimed, shape (n,).
    `basis`: what that rests on.
    """

    found: Reconstruction
    adversary: str
    claims: Floats
    basis: str
    fresh: Fresh | None
    stopped: str | None

    @property
    def expected_right(self) -> float:
        """How many bits are claimed to be right."""
        return float(self.claims.sum())


def plan(size: int, queries: int | None, budget: int | None) -> tuple[int, int]:
    """How many questions are asked to reconstruct and to check: n·ln²n and a tenth of it, or as the budget allows.

    Raises `InvalidParameter` for numbers that cannot be asked, or that cannot do.
    """
    used = max(query_count(size), size + SPARE) if queries is None else queries
    check_queries(size, used)
    if used < size + SPARE:
        raise InvalidParameter(f"--queries {queries} are too few: {size} people take at least {size + SPARE}")
    fresh = max(math.ceil(used / (CHECKED - 1)), LEAST_CHECKED)
    if budget is not None and used + fresh > budget:
        if queries is not None:
            raise InvalidParameter(f"--queries {queries} and {fresh} to check them need --budget {used + fresh}")
        fresh = max(budget // CHECKED, LEAST_CHECKED)
        used = budget - fresh
        if used < size + SPARE:
            least = size + SPARE + LEAST_CHECKED
            raise InvalidParameter(f"--budget {budget} is too small: {size} people take at least {least} questions")
    return used, fresh


def reconstruct(asking: Asking[Subset], seed: int, plan: Plan, deadline: Deadline) -> Outcome:
    """Ask as planned and reconstruct from the answers there are; the same questions for the same seed.

    Raises `AttackStopped` where these are too few.
    """
    if plan.every:
        return _of_all(asking, plan)
    planned = plan.used + plan.fresh
    subsets = Subsets.drawn(np.random.default_rng([seed, STREAM]), max(planned, asking.paid), plan.size)
    answers = asking.ask_some(iter(subsets.part(slice(0, planned))))
    stopped = _stopped(asking, int(np.isfinite(answers).sum()), planned)
    # What was answered before is used, also where more was to be asked then.
    answers = np.append(answers, asking.recorded(iter(subsets.part(slice(planned, None)))))
    known = np.flatnonzero(np.isfinite(answers))
    subsets, answers = subsets.part(known), answers[known]
    fresh = min(max(plan.fresh, len(answers) // CHECKED), max(len(answers) // CHECKED, LEAST_CHECKED))
    used = len(answers) - fresh
    if used < plan.size + SPARE:
        least = plan.size + SPARE + LEAST_CHECKED
        raise AttackStopped(
            f"{len(answers)} answers are too few: {plan.size} people take at least {least}"
            + ("" if stopped is None else f"; {stopped}")
        )
    asked, given = subsets.part(slice(0, used)), answers[:used]
    names = ("least-squares", "polynomial") if plan.adversary is None else (plan.adversary,)
    halves = {name: _halves(name, asked, given, plan, deadline) for name in names}
    best = _better(names, {name: _agreement(made) for name, made in halves.items()}, plan.size)
    found = _recover(best, asked, given, plan, deadline)
    check, expected = subsets.part(slice(used, None)), answers[used:]
    scale = _scale(found, halves[best], (asked, given), (check, expected))
    agree = _agreement(halves[best])
    claims, basis = _claims(best, found, scale, agree, (asked, given), plan, deadline)
    return Outcome(
        found=found,
        adversary=best,
        claims=claims,
        basis=basis,
        fresh=Fresh(
            number=fresh,
            error=_root_mean(check.sums(found.fractions) + found.offset - expected),
            constant=_root_mean(given.mean() - expected),
            halves=agree,
            scale=scale,
        ),
        stopped=stopped,
    )


def _stopped(asking: Asking[Subset], answers: int, planned: int) -> str | None:
    """Why there are fewer answers than planned; None: there are not."""
    if answers == planned:
        return None
    return asking.stopped or f"{planned - answers:,} of {planned:,} questions got no answer"


def _scale(
    found: Reconstruction,
    halves: tuple[Reconstruction, Reconstruction] | None,
    used: tuple[Subsets, Floats],
    fresh: tuple[Subsets, Floats],
) -> Scale | None:
    """The fresh answers as the reconstruction predicts them, and each half of the others as the other half does."""
    measured = held_out(*fresh, found, expected_scale(found))
    if halves is None:
        return measured
    asked, given = used
    crosswise = [
        held_out(asked.part(rows), given[rows], made, expected_scale(made))
        for made, rows in zip(halves, reversed(HALVES), strict=True)
    ]
    return pooled([measured, pooled(crosswise, correlation=CROSSWISE)])


def _claims(
    name: str,
    found: Reconstruction,
    scale: Scale | None,
    agree: int | None,
    used: tuple[Subsets, Floats],
    plan: Plan,
    deadline: Deadline,
) -> tuple[Floats, str]:
    """With which probability each bit is claimed to be right, and on what that rests."""
    if name == "least-squares":
        claims = claimed(found, scale)
        basis = "the least probability of each bit that answers it was not made of leave open"
    else:
        fit = least_squares_adversary(*used, variance=plan.variance, offset=True, deadline=deadline)
        claims = np.full(plan.size, claimed_alike(fit, scale, _from_halves(agree, plan.size) / plan.size))
        basis = "what two halves of the questions agree on and predict of each other's answers"
    if not np.any(claims > 0.5):
        basis = "none: answers that it was not made of are predicted no better than by a constant, as far as they tell"
    return claims, basis


def _of_all(asking: Asking[Subset], plan: Plan) -> Outcome:
    """The exponential adversary: all subsets, in the order of their numbers."""
    from dpwitness.reconstruction.subset_sum.oracle import exponential_adversary  # numba is slow to import

    numbers = np.arange(1 << plan.size)
    answers = asking.ask_some((number >> np.arange(plan.size)) & 1 == 1 for number in numbers)
    bits = exponential_adversary(answers, plan.error)  # an answer that there is not contradicts no list of bits
    sums = np.zeros(1)
    for bit in bits:
        sums = np.concatenate([sums, sums + bit])
    known = np.isfinite(answers)
    right, basis = max(1 - 4 * plan.error / plan.size, 0.5), "Theorem 2, if no answer is wrong by more than E"
    if not known.all():
        right, basis = 0.5, "none: Theorem 2 takes the answers to all subsets"
    found = Reconstruction(
        bits=bits,
        fractions=bits.astype(np.float64),
        largest_residual=float(np.abs(sums - answers)[known].max(initial=0.0)),
    )
    return Outcome(
        found=found,
        adversary="exponential",
        claims=np.full(plan.size, right),
        basis=basis,
        fresh=None,
        stopped=_stopped(asking, int(known.sum()), len(answers)),
    )


def _recover(name: str, subsets: Subsets, answers: Floats, plan: Plan, deadline: Deadline) -> Reconstruction:
    if name == "least-squares":
        return least_squares_adversary(subsets, answers, variance=plan.variance, offset=True, deadline=deadline)
    return polynomial_adversary(subsets, answers, offset=True, deadline=deadline)


def _halves(
    name: str, subsets: Subsets, answers: Floats, plan: Plan, deadline: Deadline
) -> tuple[Reconstruction, Reconstruction] | None:
    """Two reconstructions, each from half of the questions; None where these are too few."""
    if len(subsets) < 2 * (plan.size + SPARE):
        return None
    one, other = (_recover(name, subsets.part(rows), answers[rows], plan, deadline) for rows in HALVES)
    return one, other


def _agreement(halves: tuple[Reconstruction, Reconstruction] | None) -> int | None:
    """Of how many bits they agree."""
    return None if halves is None else int(np.sum(halves[0].bits == halves[1].bits))


def _better(names: tuple[str, ...], halves: Mapping[str, int | None], size: int) -> str:
    """The adversary that agrees more with itself, as right bits do behind errors of any law; the first unless clear."""
    first, *others = names
    clear = [name for name in others if (halves[name] or 0) > (halves[first] or 0) + math.sqrt(size) / 2]
    return max(clear, key=lambda name: halves[name] or 0, default=first)


def _from_halves(agree: int | None, size: int) -> float:
    """How many bits are right if each is with probability p in either half, independently: p² + (1 − p)² agree.

    Of the share that agrees a standard deviation is taken off: where bits agree by chance, nothing is claimed.
    """
    share = 0.5 if agree is None else agree / size
    share = max(share - math.sqrt(share * (1 - share) / size), 0.5)
    return size * (1 + math.sqrt(2 * share - 1)) / 2


def _root_mean(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
