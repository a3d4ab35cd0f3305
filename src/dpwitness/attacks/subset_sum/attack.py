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
from dpwitness.clock import Deadline
from dpwitness.errors import AttackStopped, InvalidParameter

__all__ = ["Fresh", "Outcome", "Plan", "plan", "reconstruct"]

Floats = NDArray[np.float64]

#: Of the questions, one in so many is kept for checking, and at least so many.
CHECKED: Final = 11
LEAST_CHECKED: Final = 10
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
    """How fresh answers were predicted: their number, and root mean squared errors in counts, ours and of half sizes.

    `halves`: of how many bits two reconstructions from two halves of the questions agree; None: not tried.
    """

    number: int
    error: float
    guessing: float
    halves: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attack: `adversary`'s reconstruction, how many bits it expects to be right, and why it stopped.

    `basis`: what that expectation rests on.
    """

    found: Reconstruction
    adversary: str
    expected_right: float
    basis: str
    fresh: Fresh | None
    stopped: str | None


def plan(size: int, queries: int | None, budget: int | None) -> tuple[int, int]:
    """How many questions are asked to reconstruct and to check: n·ln²n and a tenth of it, or as the budget allows.

    Raises `InvalidParameter` for numbers that cannot be asked, or that cannot do.
    """
    used = query_count(size) if queries is None else queries
    check_queries(size, used)
    if used <= size:
        raise InvalidParameter(f"--queries {queries} are too few: {size} people take at least {size + 1}")
    fresh = max(math.ceil(used / (CHECKED - 1)), LEAST_CHECKED)
    if budget is not None and used + fresh > budget:
        if queries is not None:
            raise InvalidParameter(f"--queries {queries} and {fresh} to check them need --budget {used + fresh}")
        fresh = max(budget // CHECKED, LEAST_CHECKED)
        used = budget - fresh
        if used <= size:
            least = size + 1 + LEAST_CHECKED
            raise InvalidParameter(f"--budget {budget} is too small: {size} people take at least {least} questions")
    return used, fresh


def reconstruct(asking: Asking[Subset], seed: int, plan: Plan, deadline: Deadline) -> Outcome:
    """Ask as planned and reconstruct; the same questions for the same seed, whatever the adversary.

    Raises `AttackStopped` where budget or time ended before there were more answers than people.
    """
    if plan.every:
        return _of_all(asking, plan)
    subsets = Subsets.drawn(np.random.default_rng([seed, STREAM]), plan.used + plan.fresh, plan.size)
    answers, stopped = _answers(asking, subsets)
    fresh = min(plan.fresh, max(len(answers) // CHECKED, LEAST_CHECKED))
    if len(answers) - fresh <= plan.size:
        assert stopped is not None  # the plan has more
        raise stopped
    used = len(answers) - fresh
    asked, given = subsets.part(slice(0, used)), answers[:used]
    check, expected = subsets.part(slice(used, len(answers))), answers[used:]
    names = ("least-squares", "polynomial") if plan.adversary is None else (plan.adversary,)
    halves = {name: _agreement(name, asked, given, plan, deadline) for name in names}
    best = _better(names, halves, plan.size)
    found = _recover(best, asked, given, plan, deadline)
    half_sizes = check.sums(np.full(plan.size, 0.5))
    trusted, basis = found.expected_right, "the probability of each bit, if errors are normal"
    if trusted is None:
        trusted, basis = _from_halves(halves[best], plan.size), "what two halves of the questions agree on"
    missed = _root_mean(check.sums(found.fractions) - expected)
    return Outcome(
        found=found,
        adversary=best,
        expected_right=trusted,
        basis=basis,
        fresh=Fresh(number=fresh, error=missed, guessing=_root_mean(half_sizes - expected), halves=halves[best]),
        stopped=None if stopped is None else str(stopped),
    )


def _answers(asking: Asking[Subset], subsets: Subsets) -> tuple[Floats, AttackStopped | None]:
    """The answers, as many as there may be, and what stopped the asking."""
    try:
        return asking.ask(iter(subsets)), None
    except AttackStopped as stopped:
        return np.array(stopped.answers, np.float64), stopped


def _of_all(asking: Asking[Subset], plan: Plan) -> Outcome:
    """The exponential adversary: all subsets, in the order of their numbers."""
    from dpwitness.attacks.subset_sum.exponential import exponential_adversary  # numba is slow to import

    numbers = np.arange(1 << plan.size)
    answers = asking.ask((number >> np.arange(plan.size)) & 1 == 1 for number in numbers)
    bits = exponential_adversary(answers, plan.error)
    sums = np.zeros(1)
    for bit in bits:
        sums = np.concatenate([sums, sums + bit])
    found = Reconstruction(
        bits=bits, fractions=bits.astype(np.float64), largest_residual=float(np.abs(sums - answers).max())
    )
    return Outcome(
        found=found,
        adversary="exponential",
        expected_right=max(plan.size - 4 * plan.error, 0.0),
        basis="Theorem 2: at least so many, if no answer is wrong by more than E",
        fresh=None,
        stopped=None,
    )


def _recover(name: str, subsets: Subsets, answers: Floats, plan: Plan, deadline: Deadline) -> Reconstruction:
    if name == "least-squares":
        return least_squares_adversary(subsets, answers, variance=plan.variance, deadline=deadline)
    return polynomial_adversary(subsets, answers, deadline=deadline)


def _agreement(name: str, subsets: Subsets, answers: Floats, plan: Plan, deadline: Deadline) -> int | None:
    """Of how many bits two reconstructions agree, each from half of the questions; None where these are too few."""
    if len(subsets) < 2 * plan.size + 4:
        return None
    one, other = (
        _recover(name, subsets.part(rows), answers[rows], plan, deadline).bits
        for rows in (slice(0, None, 2), slice(1, None, 2))
    )
    return int(np.sum(one == other))


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
