"""How sure an attack may be of a count that nobody tells it: from the noise that its own answers show."""

import math

import numpy as np
from numpy.typing import NDArray

from dpwitness.attacks.table_builder.averaging import outliers
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw, truncated_laplace, truncated_normal, uniform

__all__ = ["difference_right", "parameter_right", "probability_right"]

#: Standard errors beyond which another count is no rival.
REACH = 9.0
MOST_RIVALS = 1 << 10
#: Share of systems whose noise is uniform; and scales of other noise laws, in units of the r in question.
UNIFORM, SCALES = 0.8, (0.2, 0.3, 0.45, 0.65, 1.0)
#: What a mean or a correlation of sums, in standard errors, and the Kolmogorov-Smirnov distance times √sums exceed
#: about once in a thousand times where noises are independent and the law is right.
LIMIT, DISTANCE_LIMIT = 3.3, 1.95
FEW = 20


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


def parameter_right(sums: tuple[int, ...], guess: int, plus: int, minus: int) -> float | None:
    """The probability that noise lies within ±`guess` and no further, given sums of so many noises.

    Noise is taken for uniform in four of five systems; in the others for normal or Laplace noise that is truncated at r
    and rounded, of several scales: its largest values are so rare that sums may never show them. All r are equally
    probable beforehand. None where the sums are not that: where their mean is not 0, or some of them are `outliers`, or
    they hang on those asked just before, or the law that fits them best does not fit.
    """
    seen = np.array(sums)
    if guess < 1 or np.any(outliers(seen)):
        return None
    # Of few sums the standard deviation may be anything: that of uniform noise is used where it is larger.
    expected = math.sqrt((plus + minus) * guess * (guess + 1) / 3)
    spread = max(float(seen.std()), 0.5 if len(seen) >= FEW else expected)
    apart = [float(seen.mean()) * math.sqrt(len(seen)) / spread]
    apart += [
        float(seen[lag:] @ seen[:-lag]) / (spread**2 * math.sqrt(len(seen))) for lag in (1, 2, 3) if lag < len(seen)
    ]
    if max(map(abs, apart)) > LIMIT:
        return None
    steps = [0, 1, 2, 3, 4]
    while steps[-1] < 3 * guess + 8:
        steps.append(math.ceil(1.5 * steps[-1]))
    widths = np.diff([*steps, 2 * steps[-1] - steps[-2]])
    weights, places, laws = [], [], []
    for step, width in zip(steps, widths.tolist(), strict=True):
        r = guess + step
        kinds = [(uniform(r), UNIFORM)]
        for scale in SCALES:
            share = (1 - UNIFORM) / 2 / len(SCALES)
            kinds += [(truncated_normal(r, scale * guess), share), (truncated_laplace(r, scale * guess), share)]
        for law, share in kinds:
            low, p = _law_of_sums(law, plus + minus)
            with np.errstate(divide="ignore"):
                weights.append(float(np.log(p[seen - low]).sum()) + math.log(share * width))
            places.append(r)
            laws.append((low, p))
    logs = np.array(weights)
    low, p = laws[int(logs.argmax())]
    below = np.searchsorted(np.sort(seen), low + np.arange(len(p)), side="right") / len(seen)
    if float(np.max(np.abs(below - np.cumsum(p)))) > DISTANCE_LIMIT / math.sqrt(len(seen)):
        return None
    posterior = np.exp(logs - logs.max())
    return float(posterior[np.array(places) == guess].sum() / posterior.sum())


def _law_of_sums(law: NoiseLaw, number: int) -> tuple[int, NDArray[np.float64]]:
    """The smallest sum of so many noises of a symmetric law, and the probability of each from there on."""
    length = number * 2 * law.bound + 1
    size = 1 << (length - 1).bit_length()
    p = np.zeros(2 * law.bound + 1)
    p[np.array(law.support) + law.bound] = law.probabilities
    return -number * law.bound, np.clip(np.fft.irfft(np.fft.rfft(p, size) ** number, size)[:length], 0.0, None)
