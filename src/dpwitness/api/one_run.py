"""Audits of one training run by canaries: a fair coin for each canary put it into the training data or left it out.

The canaries with the highest scores are guessed to have been in, the canaries with the lowest scores to have been left
out (Steinke, Nasr & Jagielski 2023, "Privacy auditing with one (1) training run", algorithm 1).
"""

from typing import Any, Final

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.checks import brief, number, probability, seed_or_new, whole
from dpwitness.claims import Claim, PureDP, is_claim
from dpwitness.errors import InvalidClaim, InvalidData
from dpwitness.evidence.guesses import Guesses, critical_number, detectable_of, lower_bound_of, p_value_of
from dpwitness.results.one_run import OneRun

#: AUDIT_ALPHA is the default probability of a false alarm, as in the papers: a smaller α would need more canaries.
AUDIT_ALPHA: Final = 0.05
#: LEAST_GUESSES is the smallest number of guesses that is tried by default: 8 right of 8 have p = 0.004 at ε = 0.
LEAST_GUESSES: Final = 8
#: COIN_TEST_LEVEL is the probability that fair coins are taken for unfair, by the number of canaries that they put into
#: the training data.
COIN_TEST_LEVEL: Final = 1e-6
#: HALVINGS is the number of halvings from the largest tried number of guesses to the smallest, 1/64 of the largest.
HALVINGS: Final = 6


def one_run(
    scores_in: Any,
    scores_out: Any,
    claim: Claim | float,
    *,
    guesses: int | None = None,
    alpha: float = AUDIT_ALPHA,
    seed: int | None = None,
) -> OneRun:
    """Test the claim of one training run by the scores of its canaries.

    Each canary must have been put into the training data, or left out, by its own fair coin. A score may use the canary
    and everything that the training released, but not the coin.

    Parameters
    ----------
    scores_in, scores_out
        The scores of the n canaries that were in and of the m − n canaries that were left out, shapes (n,) and
        (m − n,). A higher score means that the canary was more likely in; scores may be infinite.
    claim
        The claim of the training for inputs that differ in one canary; a number is ε in nats.
    guesses
        The number of guesses, chosen before the scores were seen: half on the highest scores, half on the lowest. By
        default up to fourteen choices are tried, on the highest scores alone and on both ends, and up to four for a
        claim with a curved boundary. Each choice has an equal share of α.
    alpha
        The largest probability that a true claim is refuted, or that the lower bound exceeds the true parameter.
    seed
        The seed of the random order of canaries with equal scores (default: a new seed).

    Raises `InvalidData` for a score that is not a number, for fewer than eight canaries without `guesses`, and for a
    number of canaries in that fair coins hardly give; `InvalidParameter` for `guesses`, `alpha` or `seed` out of range;
    `InvalidClaim` for other claims.
    """
    claim, alpha = _claim_of(claim), probability("alpha", alpha)
    # A seed that does not vary would order equal scores by the numbers of canaries in and out, not at random.
    seed = seed_or_new(seed)
    inside = by_score(_scores("scores_in", scores_in), _scores("scores_out", scores_out), seed)
    m, n = len(inside), int(inside.sum())
    _require_fair_coins(n, m)
    if guesses is None:
        tried = choices_tried(m, curved=claim.curved)
    else:
        k = whole("guesses", guesses, 1, m)
        tried = [(k - k // 2, k // 2)]
    if not tried:
        raise InvalidData(f"too few canaries, {m}: give at least {LEAST_GUESSES}")
    level = alpha / len(tried)
    critical = [critical_number(claim, level, sum(ends), m) for ends in tried]
    correct = [right_guesses(inside, ends) for ends in tried]
    each = [p_value_of(claim, v, sum(ends), m) for v, ends in zip(correct, tried, strict=True)]
    best = int(np.argmin(each))
    lower_bound = max(lower_bound_of(claim, level, v, sum(ends), m) for v, ends in zip(correct, tried, strict=True))
    return OneRun(
        claim=claim,
        alpha=alpha,
        canaries=m,
        highest=tried[best][0],
        lowest=tried[best][1],
        correct=correct[best],
        refutable=any(value <= sum(ends) for value, ends in zip(critical, tried, strict=True)),
        p_value=min(1.0, each[best] * len(tried)),
        lower_bound=lower_bound,
        detectable=detectable_of(claim, critical, tried, m),
        seed=seed,
    )


def _claim_of(claim: Claim | float) -> Claim:
    if is_claim(claim):
        return claim
    return PureDP(number("claim", claim, InvalidClaim, "a claim, such as GaussianDP(1.0), or ε in nats"))


def _scores(name: str, values: object) -> Floats:
    try:
        given = np.asarray(values)
        scores = given.astype(np.float64, casting="same_kind" if given.dtype.kind == "c" else "unsafe")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f"{name}={brief(values)} must be an array of numbers, one for each canary") from error
    if scores.ndim != 1:
        raise InvalidData(f"{name} has the shape {scores.shape}: it must have one axis, with one score for each canary")
    if np.isnan(scores).any():
        raise InvalidData(f"{name}[{int(np.argmax(np.isnan(scores)))}] is NaN: give each canary a score")
    return scores


def _require_fair_coins(number_in: int, canaries: int) -> None:
    """Raise `InvalidData` if the number of canaries that were in is improbable for fair coins, which guesses assume."""
    from scipy.special import bdtr

    if 2 * bdtr(min(number_in, canaries - number_in), canaries, 0.5) < COIN_TEST_LEVEL:
        raise InvalidData(
            f"{number_in:,} of {canaries:,} canaries were in: put each in by its own fair coin, and give the scores of "
            "the canaries left out too"
        )


def choices_tried(canaries: int, *, curved: bool) -> list[Guesses]:
    """The numbers of guesses on the highest and on the lowest scores, for each choice that is tried.

    All canaries, ½, ¼ … of them from both ends, and half as many from the highest scores alone. A curved claim has four
    choices, since its lower bounds fall fast with the level of each.
    """
    if curved:
        half, quarter, sixteenth = canaries // 2, canaries // 4, canaries // 16
        tried = [(half, half), (quarter, quarter), (sixteenth, sixteenth), (quarter, 0)]
    else:
        halves = [canaries >> j for j in range(1, HALVINGS + 2)]
        tried = [(half, lowest) for half in halves for lowest in (half, 0)]
    return [ends for ends in tried if sum(ends) >= LEAST_GUESSES]


def by_score(scores_in: Floats, scores_out: Floats, seed: int) -> Booleans:
    """Whether the training data held each canary, from the highest score to the lowest, shape (m,).

    Canaries with equal scores have a random order.
    """
    scores = np.concatenate([scores_in, scores_out])
    order = np.random.default_rng(seed).permutation(len(scores))
    order = order[np.argsort(-scores[order], kind="stable")]
    return np.asarray(order < len(scores_in))


def right_guesses(inside: Booleans, ends: Guesses) -> int:
    """The number of right guesses; `inside` as `by_score` gives it."""
    highest, lowest = ends
    return int(inside[:highest].sum() + (~inside[len(inside) - lowest :]).sum())
