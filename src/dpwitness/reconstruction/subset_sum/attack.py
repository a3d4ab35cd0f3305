"""The attack asks a simulated system or the user's own for sums of random subsets, and reconstructs the bits.

The errors and the truth of a user's own system are unknown, so a claim rests on answers that the reconstruction did not
use.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from dpwitness.arrays import Floats, Integers
from dpwitness.checks import whole
from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.reconstruction.command import AttackOptions, run_attack
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.report import LEVEL, AttackResult, Finding
from dpwitness.reconstruction.subset_sum import conditions, oracle
from dpwitness.reconstruction.subset_sum.conditions import Attributes
from dpwitness.reconstruction.subset_sum.confidence import (
    DOUBTFUL_P_VALUE,
    Scale,
    claims_of_fit,
    equal_ones_p_value,
    held_out_scale,
    pairs_add_more,
    pooled_scale,
)
from dpwitness.reconstruction.subset_sum.linear_decoding import (
    NORMAL_LAWS,
    PersonBits,
    Reconstruction,
    Subsets,
    choose_adversary,
    clip_answers,
    least_absolute_adversary,
    least_squares_adversary,
    polynomial_adversary,
)
from dpwitness.reconstruction.subset_sum.oracle import FORM, LARGEST_ERROR
from dpwitness.reconstruction.subset_sum.report import CHANCE, AttackOutcome, result_of
from dpwitness.reconstruction.transcript import Form

#: Number of people of the simulated system without --size: the linear program of 128 people takes 0.2 s.
DEFAULT_SIZE: Final = 128
#: Largest error of the simulated system's answers without --error, in counts: below √128 ≈ 11, so bits are recovered.
DEFAULT_ERROR: Final = 4.0
#: Law of the simulated system's errors without --law: Theorem 3 is about bounded errors.
DEFAULT_LAW: Final = "uniform"
#: Number of answers for each answer kept for checking: ten reconstruct, one checks.
ANSWERS_PER_CHECK: Final = 11
#: Smallest number of answers kept for checking: the check fits three numbers to them.
MIN_CHECKS: Final = 10
#: Number of answers that a fit needs beyond an answer a person: one answer gives the offset, one shows the errors.
SPARE_ANSWERS: Final = 2


class AnsweredSubsets(NamedTuple):
    """Questions and their answers."""

    subsets: Subsets
    answers: Floats

    def part(self, rows: slice | Integers) -> "AnsweredSubsets":
        """The questions and answers of the given rows."""
        return AnsweredSubsets(self.subsets.part(rows), self.answers[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(AttackOptions):
    """The options of an attack on subset sums; `law` and `error` (E, in counts) of the answers if they are known."""

    size: int | None = None
    error: float | None = None
    law: str | None = None
    adversary: str | None = None
    queries: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The questions of an attack: `used` random subsets to reconstruct and `fresh` subsets to check, or all subsets.

    `adversary`: a name in `ADVERSARIES`. `error`: E in counts, for the exponential adversary. `attributes`: known
    attributes of people, on which conditions make the subsets.
    """

    size: int
    used: int
    fresh: int
    adversary: str = "least-squares"
    error: float = 0.0
    attributes: Attributes | None = None

    @property
    def asks_all_subsets(self) -> bool:
        """Whether the attack asks for all subsets."""
        return self.adversary == "exponential"

    @classmethod
    def of(cls, options: Options, size: int, attributes: Attributes | None) -> "Plan":
        """Plan an attack on `size` people by the options. Raises `InvalidParameter` for options that do not fit."""
        adversary, error, budget = options.adversary or "least-squares", options.error, options.budget
        if attributes is not None and attributes.people != size:
            raise InvalidParameter(
                f"--conditions has {attributes.people} people, and there are to be {size}: give one line a person, in "
                "the order of the bits"
            )
        if error is not None and not 0 <= error <= LARGEST_ERROR:
            raise InvalidParameter(f"error={error!r} must be a finite number of at least 0 and at most {LARGEST_ERROR}")
        if adversary != "exponential":
            if options.own_system and error is not None:
                raise InvalidParameter("--error is of a simulated system, and of --adversary exponential: leave it out")
            used, fresh = question_counts(size, options.queries, budget)
            return cls(size=size, used=used, fresh=fresh, adversary=adversary, attributes=attributes)
        if attributes is not None or options.queries is not None:
            raise InvalidParameter("--adversary exponential asks all subsets: leave out --conditions and --queries")
        if error is None or options.law in NORMAL_LAWS:
            raise InvalidParameter("--adversary exponential needs --error, a bound of the errors of a bounded --law")
        number = 1 << whole("--adversary exponential: size", size, 1, oracle.LARGEST_EXPONENTIAL_SIZE)
        if budget is not None and budget < number:
            raise InvalidParameter(f"--budget {budget} is too small: all subsets are {number} questions")
        return cls(size=size, used=number, fresh=0, adversary=adversary, error=error)


def question_counts(size: int, queries: int | None, budget: int | None) -> tuple[int, int]:
    """The numbers of questions to reconstruct and to check: n·ln²n and n·ln²n/10, or fewer within the budget.

    Raises `InvalidParameter` for numbers of people or questions that are too small or too large.
    """
    used = max(oracle.query_count(size), size + SPARE_ANSWERS) if queries is None else queries
    oracle.check_queries(size, used)
    fresh = max(math.ceil(used / (ANSWERS_PER_CHECK - 1)), MIN_CHECKS)
    if budget is not None and used + fresh > budget:
        fresh = max(budget // ANSWERS_PER_CHECK, MIN_CHECKS)
        used = budget - fresh
    if used < size + SPARE_ANSWERS:
        least = size + SPARE_ANSWERS
        raise InvalidParameter(
            f"{used + fresh} questions are too few: {size} people take --queries {least}, and {MIN_CHECKS} to check"
        )
    return used, fresh


def attack(
    options: Options, size: int, truth: PersonBits | None, attributes: Attributes | None = None
) -> AttackResult | None:
    """Attack the user's system, or a bundled target whose secret bits are `truth`, or are drawn if it is None.

    The result is None if the questions wait in a file. The attack on the user's system does not see `truth`. Raises
    `InvalidParameter` for options that do not fit the adversary.
    """
    law, error = options.law or DEFAULT_LAW, DEFAULT_ERROR if options.error is None else options.error
    if not options.own_system:
        options = replace(options, error=error, law=law, adversary=options.adversary or choose_adversary(law))
    plan = Plan.of(options, size, attributes)
    queries = plan.used + plan.fresh
    settings: dict[str, object] = {"size": size, "questions": queries}
    if attributes is not None:
        settings |= {"kind": "conditions", "attributes": list(attributes.columns)}
    else:
        settings["kind"] = "all subsets" if plan.asks_all_subsets else "random subsets"

    def secret_bits(rng: np.random.Generator) -> PersonBits:
        drawn = rng.integers(0, 2, size)
        return drawn if truth is None else truth

    def simulate(seed: int, _: object) -> AttackOutcome:
        rng = np.random.default_rng(seed)
        secret, family = secret_bits(rng), -1 if plan.asks_all_subsets else int(rng.integers(1 << 30))
        # One call, without `Asking`, gets all answers: 2²⁴ questions of the exponential adversary take minutes singly.
        answers = oracle.ask(secret, error, queries, law, family, rng)
        if plan.asks_all_subsets:
            return _outcome_of_all_subsets(answers, plan)
        return _outcome_of(AnsweredSubsets(oracle.subset_family(size, queries, family), answers), plan)

    form: Form[Any] = FORM if attributes is None else conditions.FORM
    ended = run_attack(options, form, settings, partial(reconstruct, plan=plan), simulate)
    if ended is None:
        return None
    if ended.asked is None:
        truth = secret_bits(np.random.default_rng(ended.seed))
        return result_of(ended, truth, {"law": law, "error": error, "queries": queries})
    return result_of(ended, truth)


def reconstruct(asking: Asking[Any], seed: int, plan: Plan) -> AttackOutcome:
    """Ask the planned questions, which the seed determines, and reconstruct bits from the answers.

    Raises `AttackStopped` where there are too few answers.
    """
    planned = plan.used + plan.fresh
    if plan.asks_all_subsets:
        people = np.arange(plan.size)
        answers = asking.ask_some((number >> people) & 1 == 1 for number in range(planned))
        return _outcome_of_all_subsets(answers, plan)
    rng = np.random.default_rng([seed, 1])  # no other generator of this seed gives the same numbers
    if plan.attributes is None:
        subsets = Subsets.drawn(rng, planned, plan.size)
        answers = asking.ask_some(subsets)
    else:
        questions, subsets = plan.attributes.drawn(rng, planned)
        answers = asking.ask_some(questions)
    if len(answers) < planned and asking.stopped is None:
        asking.stopped = f"there are no more than {len(answers):,} subsets of these people by such conditions"
    return _outcome_of(
        AnsweredSubsets(subsets, answers).part(np.flatnonzero(np.isfinite(answers))), plan, asking.stopped
    )


def _outcome_of(sample: AnsweredSubsets, plan: Plan, stopped: str | None = None) -> AttackOutcome:
    """The reconstructed bits and their claimed probabilities. Raises `AttackStopped` for too few answers."""
    number = len(sample.answers)
    kept = min(max(plan.fresh, number // ANSWERS_PER_CHECK), max(number // ANSWERS_PER_CHECK, MIN_CHECKS))
    if number - kept < plan.size + SPARE_ANSWERS:
        raise AttackStopped(
            f"{number} answers are too few: {plan.size} people take at least {plan.size + SPARE_ANSWERS + MIN_CHECKS}"
            + ("" if stopped is None else f"; {stopped}")
        )
    sample = sample._replace(answers=clip_answers(sample.answers, plan.size))
    used, fresh = sample.part(slice(0, number - kept)), sample.part(slice(number - kept, None))

    def recover(name: str, some: AnsweredSubsets, *, sharpened: bool = True) -> Reconstruction:
        # One BLAS thread: on a busy machine the threads wait for the slowest of them, and take 4 to 15 times as long.
        with threadpool_limits(limits=1, user_api="blas"):
            if name == "least-squares":
                return least_squares_adversary(*some, offset=True, sharpened=sharpened)
            adversary = least_absolute_adversary if name == "least-absolute" else polynomial_adversary
            return adversary(*some, offset=True)

    def scale_of(name: str, found: Reconstruction) -> Scale | None:
        scales = [held_out_scale(*fresh, found)]
        if len(used.answers) >= 2 * (plan.size + SPARE_ANSWERS):
            # The bits recovered from one half of the answers predict the other half.
            halves = used.part(slice(0, None, 2)), used.part(slice(1, None, 2))
            scales.append(held_out_scale(*halves[1], recover(name, halves[0])))
        return pooled_scale(scales)

    reconstruction = fit = recover("least-squares", used)
    scale = scale_of("least-squares", fit)
    plain = recover("least-squares", used, sharpened=False)
    # Conditions may hardly tell two people apart: a sharpened fit may swap their bits and be confident in both.
    values = fit if plan.attributes is None else plain
    most = 1.0
    if plan.adversary != "least-squares":
        reconstruction = recover(plan.adversary, used)
        own = scale_of(plan.adversary, reconstruction)
        most = (1 + own.low) / 2 if own is not None and own.significant else 0.5
    claims = np.minimum(claims_of_fit(replace(values, bits=reconstruction.bits), scale), max(most, 0.5))
    # The final bits use all answers. A bit that differs from the checked reconstruction gets no claim.
    final = recover(plan.adversary, sample)
    claims = np.where(final.bits == reconstruction.bits, claims, CHANCE)
    basis, contradicted = "for each bit the least probability that agrees with fresh answers", ""
    if scale is None or not np.any(claims > CHANCE):
        basis = "none: a constant predicts fresh answers as well as the reconstruction does"
    elif pairs_add_more(*used, plain):
        contradicted = "some people add another number together than each alone, so the answers are no sums of bits"
    elif (p_value := equal_ones_p_value(*used, plain, fit.bits)) < LEVEL:
        contradicted = f"people's ones add different numbers (p = {p_value:.1g}), so the answers are no sums of bits"
    elif p_value < DOUBTFUL_P_VALUE:
        claims = CHANCE + (claims - CHANCE) * p_value / DOUBTFUL_P_VALUE
        basis += f"; lowered, since people's ones seem to add different numbers (p = {p_value:.1g})"
    refuted = (contradicted,) if contradicted else ()
    return AttackOutcome(
        reconstruction=final,
        adversary=plan.adversary,
        finding=Finding(guess=final.bits, probability=claims, chance=CHANCE, contradicted=refuted),
        basis=f"none: {contradicted}" if contradicted else basis,
        scale=scale,
    )


def _outcome_of_all_subsets(answers: Floats, plan: Plan) -> AttackOutcome:
    """The bits that the exponential adversary reconstructs from answers to all subsets; NaN is a missing answer."""
    from dpwitness.reconstruction.subset_sum.exponential import exponential_adversary  # numba is slow to import

    bits = exponential_adversary(answers, plan.error)
    right, basis = 1 - 4 * plan.error / plan.size, "Theorem 2, if no answer is wrong by more than E"
    if not np.isfinite(answers).all():
        right, basis = CHANCE, "none: Theorem 2 takes the answers to all subsets"
    return AttackOutcome(
        reconstruction=Reconstruction(bits=bits, fractions=bits.astype(np.float64)),
        adversary="exponential",
        finding=Finding(guess=bits, probability=np.full(plan.size, right), chance=CHANCE),
        basis=basis,
    )
