"""Audits of one training run by canaries, each of which a fair coin put into the training data or left out.

The canaries with the highest scores are guessed to be in, those with the lowest to be out (Steinke, Nasr & Jagielski
2023, "Privacy auditing with one (1) training run", algorithm 1).
"""

from typing import Any, Final

import numpy as np

from dpwitness.arrays import Booleans, Floats
from dpwitness.checks import brief, number, whole
from dpwitness.claims import Claim, PureDP, is_claim
from dpwitness.errors import InvalidClaim, InvalidData, InvalidParameter
from dpwitness.evidence.guesses import Guesses, critical_number, detectable_of, lower_bound_of, p_value_of
from dpwitness.results.one_run import OneRun

#: The probability of a false alarm in both papers: a training run is not repeated for a smaller one.
ALPHA: Final = 0.05
#: The least number of guesses among those tried: 8 right guesses of 8 have a p-value of 0.004 at ε = 0.
LEAST_GUESSES: Final = 8
#: The probability, under fair coins, of numbers of canaries so uneven that the coins count as unfair.
UNFAIR: Final = 1e-6
#: The number of halvings from the largest to the smallest number of guesses that are tried.
HALVINGS: Final = 6


def one_run(
    scores_in: Any,
    scores_out: Any,
    claim: Claim | float,
    *,
    guesses: int | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
) -> OneRun:
    """Test a claim by the scores of canaries of one training run.

    Each canary must have been put into the training data, or left out, by its own fair coin. A score may use
    everything that the training released, and the canary, but not the coin.

    Parameters
    ----------
    scores_in, scores_out
        The scores of the canaries that were in, and of those that were left out, shapes (n,) and (m − n,). A higher
        score means that the canary looks more like one that was in.
    claim
        The claim of the training for inputs that differ in one canary; a number is ε in nats.
    guesses
        The number of guesses, half of them of the highest scores, chosen before the scores were seen. By default
        up to fourteen numbers, of the highest scores alone and of both ends, are tried, each at an equal share of α.
    alpha
        The probability of a false alarm, and that the bound is too large.
    seed
        The seed that orders canaries with equal scores at random.

    Raises `InvalidData` for scores that are no numbers, fewer than eight, or of coins that were not fair,
    `InvalidParameter` for other arguments that cannot be used, and `InvalidClaim`.
    """
    claim, alpha = _claim_of(claim), number("alpha", alpha)
    if not 0 < alpha < 1:
        raise InvalidParameter(f"alpha={brief(alpha)} must lie between 0 and 1")
    inside = _by_score(_scores("scores_in", scores_in), _scores("scores_out", scores_out), whole("seed", seed, 0))
    m, n = len(inside), int(inside.sum())
    _require_fair_coins(n, m)
    if guesses is None:
        tried = _tried(m, curved=claim.curved)
    else:
        k = whole("guesses", guesses, 1, m)
        tried = [(k - k // 2, k // 2)]
    if not tried:
        raise InvalidData(f"{m:,} canaries are too few: give at least {LEAST_GUESSES}")
    level = alpha / len(tried)
    critical = [critical_number(claim, level, sum(ends), m) for ends in tried]
    correct = [_right(inside, ends) for ends in tried]
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
    """Raise `InvalidData` if fair coins would hardly ever put so many canaries in, or so few, as all guesses assume."""
    from scipy.special import bdtr

    if 2 * bdtr(min(number_in, canaries - number_in), canaries, 0.5) < UNFAIR:
        raise InvalidData(
            f"{number_in:,} of {canaries:,} canaries were in: put each in by its own fair coin, and give the scores of "
            "those left out too"
        )


def _tried(canaries: int, *, curved: bool) -> list[Guesses]:
    """The numbers of guesses that are tried, of both ends and of the highest scores alone.

    Shares of 1, ½, ¼ … of the canaries, and four numbers for a curved claim, whose bounds fall fast in the level.
    """
    if curved:
        half, quarter, sixteenth = canaries // 2, canaries // 4, canaries // 16
        tried = [(half, half), (quarter, quarter), (sixteenth, sixteenth), (quarter, 0)]
    else:
        halves = [canaries >> j for j in range(1, HALVINGS + 2)]
        tried = [(half, lowest) for half in halves for lowest in (half, 0)]
    return [ends for ends in tried if sum(ends) >= LEAST_GUESSES]


def _by_score(scores_in: Floats, scores_out: Floats, seed: int) -> Booleans:
    """Whether each canary was in, by falling score, shape (m,); equal scores are in random order."""
    scores = np.concatenate([scores_in, scores_out])
    order = np.random.default_rng(seed).permutation(len(scores))
    order = order[np.argsort(-scores[order], kind="stable")]
    return np.asarray(order < len(scores_in))


def _right(inside: Booleans, ends: Guesses) -> int:
    highest, lowest = ends
    return int(inside[:highest].sum() + (~inside[len(inside) - lowest :]).sum())
