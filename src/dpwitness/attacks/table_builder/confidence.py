"""How sure an attack may be of a count that nobody tells it: from the noise that its own answers show."""

import math

import numpy as np

__all__ = ["difference_right", "probability_right"]

#: Standard errors beyond which another count is no rival.
REACH = 9.0
MOST_RIVALS = 1 << 10


def probability_right(mean: float, count: int, standard_error: float, least: int | None = None) -> float:
    """The probability that `count` is the true one, given an unbiased, normal `mean` of it.

    Parameters
    ----------
    mean, standard_error
        In people; a standard error of 0 means that the mean is the true count, an infinite one that nothing is known.
    least
        The smallest count that is possible.

    All whole numbers from `least` on are taken to be equally probable beforehand, so that over many counts the average
    of these probabilities is the share of right ones. It rests on noise of mean 0 that is independent between different
    sets of people: a noise that all questions share, as layered noise has, does not show in it.
    """
    if not standard_error > 0:
        return float(count == mean)
    if standard_error == math.inf:
        return 0.0
    reach = min(math.ceil(REACH * standard_error) + 2, MOST_RIVALS)
    centre = math.floor(mean) if least is None else max(math.floor(mean), least)
    rivals = np.arange(centre - reach, centre + reach + 1)
    if least is not None:
        rivals = rivals[rivals >= least]
    exponents = -np.square((rivals - mean) / standard_error) / 2
    weights = np.exp(exponents - exponents.max())
    return float(weights[rivals == count].sum() / weights.sum())


def difference_right(base: tuple[float, float], other: tuple[float, float], sign: int, count: int) -> float:
    """The probability that `count` is right, at least 0, where another count is the base's + `sign`·it.

    Parameters
    ----------
    base, other
        Of both counts the unbiased, normal mean and its standard error, in people; independent of each other.

    As `probability_right`, over all counts that the base set may have: where both means are wrong by the same number of
    people their difference is right.
    """
    (mean, error), (more, spread) = base, other
    if not (error > 0 and spread > 0):
        return float(count == sign * (more - mean))
    if math.inf in (error, spread):
        return 0.0
    reach = min(math.ceil(REACH * error) + 2, MOST_RIVALS)
    bases = math.floor(mean) + np.arange(-reach, reach + 1)
    reach = min(math.ceil(REACH * (error + spread)) + 2, MOST_RIVALS)
    rivals = max(count, 0) + np.arange(-reach, reach + 1)
    rivals = rivals[rivals >= 0]
    exponents = -np.square((bases[:, None] - mean) / error) / 2
    exponents = exponents - np.square((bases[:, None] + sign * rivals - more) / spread) / 2
    weights = np.exp(exponents - exponents.max()).sum(axis=0)
    return float(weights[rivals == count].sum() / weights.sum())
