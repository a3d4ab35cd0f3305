"""The attack on a system of the user's own: ask, reconstruct, say without the truth how far to trust it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.oracles.asking import Asking
from dpwitness.attacks.subset_sum.adversaries import Reconstruction, least_squares_adversary, polynomial_adversary
from dpwitness.attacks.subset_sum.oracle import check_queries, query_count
from dpwitness.attacks.subset_sum.questions import Subset
from dpwitness.attacks.subset_sum.subsets import Subsets
from dpwitness.attacks.subset_sum.trust import Scale, claimed, claimed_alike, expected_scale, held_out, pooled
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter

__all__ = ["Fresh", "Outcome", "Plan", "plan", "reconstruct"]

Floats = NDArray[np.float64]

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
    from dpwitness.attacks.subset_sum.exponential import exponential_adversary  # numba is slow to import

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
