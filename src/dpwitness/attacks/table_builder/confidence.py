"""How sure an attack may be of a count that nobody tells it: from the noise that its own answers show."""

import math

import numpy as np

__all__ = ["probability_right"]

#: Standard errors beyond which another count is no rival.
REACH = 9.0
MOST_RIVALS = 1 << 20


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
