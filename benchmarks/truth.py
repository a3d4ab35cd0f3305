"""The truth about bundled targets, and lower bounds beside it: `python benchmarks/truth.py [--seeds 8] [ROW …]`.

Tests and other benchmarks import the true probabilities of patterns and the true curves δ(ε).

The lower bounds are of ε for the mechanisms and parameters of DP-Sniper's evaluation (Bichsel, Steffen, Bogunovic &
Vechev 2021), with two more of threshold testing. Each row has the least, the median and the largest bound of all seeds,
the mean CPU seconds of a bound with its search, the best earlier figure, and the true ε: "≤" or "≥" where only a bound
of it is known, "∞" where it is infinite or grows with the number of queries. Earlier figures are lower bounds with 90 %
confidence from DP-Sniper's logs (2·10⁸ confirm runs), or StatDP's readings of its curves, whichever is larger; StatDP's
readings of `isvt1` and `histogram_wrong_scale` are left out.
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

import dpwitness as dpw
from dpwitness.arrays import Floats
from dpwitness.exact import pattern_probability
from results import Table, finish, parser_of

#: The scales of threshold noise and query noise of a bundled target, as functions of (ε, cutoff, sensitivity).
NOISE_SCALES: Final[dict[str, Callable[[float, int, float], tuple[float, float]]]] = {
    "svt": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 4 * cutoff * delta / epsilon),
    "isvt1": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 0.0),
    "isvt2": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * delta / epsilon),
    "isvt3": lambda epsilon, cutoff, delta: (4 * delta / epsilon, 4 * delta / (3 * epsilon)),
    "isvt4": lambda epsilon, cutoff, delta: (2 * delta / epsilon, 2 * cutoff * delta / epsilon),
}


def target_probability(
    target: str,
    answers: Sequence[int | bool] | Floats,
    queries: ArrayLike,
    *,
    epsilon: float,
    threshold: float = 0.5,
    cutoff: int = 1,
    sensitivity: float = 1.0,
) -> float:
    """The probability of a pattern of a bundled target (for `isvt4`: with ⊤ for the released number).

    For targets that stop after `cutoff` ⊤'s, the pattern ends with the last answer given.
    """
    b, c = NOISE_SCALES[target](epsilon, cutoff, sensitivity)
    return pattern_probability(answers, queries, threshold=threshold, threshold_scale=b, query_scale=c)


def _upper_tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return math.erfc(z / math.sqrt(2)) / 2


def gaussian_delta(epsilon: float, *, mu: float) -> float:
    """δ(ε) of N(0, σ²) against N(Δ, σ²), μ = Δ/σ: Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). Balle & Wang 2018, Theorem 8."""
    return _upper_tail(epsilon / mu - mu / 2) - math.exp(epsilon) * _upper_tail(epsilon / mu + mu / 2)


def subsampled_gaussian_delta(epsilon: float, *, rate: float, mu: float, removed: bool = True) -> float:
    """δ(ε) of a sum with Gaussian noise over a batch that each record joins with probability `rate`.

    `removed`: D holds the record that D′ lacks, else D′ holds it; `mu`: the record's norm over σ. Outcomes with the
    record follow (1 − rate)·N(0, 1) + rate·N(μ, 1), else N(0, 1); their ratio rises, so the event is x > t, or x < t.
    """
    share = math.exp(epsilon if removed else -epsilon) - (1 - rate)
    if share <= 0:  # below the least likelihood ratio, 1 − rate
        return 0.0 if not removed else 1 - math.exp(epsilon)
    t = math.log(share / rate) / mu + mu / 2
    if removed:
        with_record = (1 - rate) * _upper_tail(t) + rate * _upper_tail(t - mu)
        return with_record - math.exp(epsilon) * _upper_tail(t)
    with_record = (1 - rate) * _upper_tail(-t) + rate * _upper_tail(mu - t)
    return _upper_tail(-t) - math.exp(epsilon) * with_record


def truncated_laplace_delta(epsilon: float, *, scale: float, bound: float, shift: float = 1.0) -> float:
    """δ(ε) for ε ≥ shift/scale of Laplace noise cut off beyond ± bound: the mass of outcomes that D′ never has.

    `scale`, `bound` and `shift` are in the unit of the answers, 0 ≤ shift ≤ bound. Geng, Ding, Guo & Kumar 2020,
    Theorem 1. Raises `ValueError` for a smaller ε, at which other outcomes count too.
    """
    if epsilon < shift / scale * (1 - 1e-12):
        raise ValueError(f"epsilon={epsilon!r} must be at least shift/scale = {shift / scale!r}")
    return math.exp(-bound / scale) * math.expm1(shift / scale) / (2 * -math.expm1(-bound / scale))


def discrete_gaussian_delta(epsilon: float, *, sigma: float, shift: int = 1) -> float:
    """δ(ε) of the discrete Gaussian P(k) ∝ e^(−k²/2σ²) against the same distribution moved by `shift`."""
    k = np.arange(-math.ceil(40 * sigma) - shift, math.ceil(40 * sigma) + shift + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    moved = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(moved - math.exp(epsilon) * weights, 0.0).sum() / weights.sum())


#: The claimed ε (nats) of the mechanisms that have a parameter for ε.
EPSILON = 0.1


@dataclass(frozen=True, kw_only=True)
class Row:
    """The parameters of a mechanism, the best earlier figure, and the true ε (nats)."""

    parameters: dict[str, Any] = field(default_factory=dict)
    earlier: float = math.nan  # the best earlier lower bound of ε
    truth: str = "∞"  # the true ε, as text
    has_epsilon: bool = True  # whether ε is a parameter of the mechanism


#: The parameters of mechanisms whose threshold is 1.
AT_ONE = {"threshold": 1.0}
#: The rows of the table, by mechanism.
ROWS = {
    "laplace_mechanism": Row(earlier=0.100, truth=".1"),
    "truncated_geometric": Row(earlier=0.117, truth=".1178"),
    "histogram": Row(earlier=0.099, truth=".1"),
    "histogram_wrong_scale": Row(earlier=4.602, truth="10"),
    "noisy_max_laplace": Row(earlier=0.0925, truth="≤ .1"),
    "noisy_max_exponential": Row(earlier=0.100, truth=".1"),
    "noisy_max_laplace_value": Row(earlier=0.2488, truth=".25"),
    "noisy_max_exponential_value": Row(earlier=0.3534),
    "svt": Row(parameters={"threshold": 0.5}, earlier=0.0858, truth=".0982"),
    "svt_resampled": Row(parameters=AT_ONE, earlier=0.0859, truth="≤ .1"),
    "isvt4": Row(parameters=AT_ONE, earlier=0.1822),
    "isvt3": Row(parameters=AT_ONE, earlier=0.172, truth=".1748"),
    "isvt1": Row(parameters=AT_ONE, earlier=1.761),
    "isvt2": Row(parameters=AT_ONE, earlier=0.322, truth="≥ .4198"),
    "rappor": Row(earlier=0.3008, truth=".4001", has_epsilon=False),
    "one_time_rappor": Row(earlier=0.5999, truth=".8007", has_epsilon=False),
    "laplace_parallel": Row(earlier=0.0350, truth=".1"),
    "svt_numeric_and_flags": Row(parameters=AT_ONE, earlier=0.2616),
    "prefix_sum": Row(earlier=0.5774, truth="1"),
    "numerical_svt": Row(parameters=AT_ONE, earlier=0.0345, truth="≤ .1"),
    "svt_single_noise": Row(truth=".1492"),
    "gptt_lee_clifton": Row(truth="≥ .6195"),
}


def bounded(name: str, seed: int, runs: int, alpha: float) -> tuple[float, float]:
    """A lower bound of ε, and the CPU seconds that it took."""
    row, began = ROWS[name], time.process_time()
    claim: dict[str, Any] = {"epsilon": EPSILON} if row.has_epsilon else {"claim": dpw.PureDP(1.0)}
    found = dpw.bound(name, **claim, parameters=row.parameters, runs=runs, alpha=alpha, seed=seed, workers=1)
    return found.epsilon_lower_bound, time.process_time() - began


def main() -> None:
    parser = parser_of(__doc__, seeds=8)
    parser.add_argument("rows", nargs="*", metavar="ROW", choices=[[], *ROWS], help="mechanisms (default: all)")
    parser.add_argument("--runs", type=int, default=20_000_000, metavar="N", help="confirm runs of each bound")
    parser.add_argument("--alpha", type=float, default=0.1, metavar="A")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table("mechanism", "least", "median", "largest", "CPU s", "earlier", "true ε")
    for name in given.rows or ROWS:
        found = [bounded(name, seed, given.runs, given.alpha) for seed in range(given.seeds)]
        bounds, seconds = zip(*found, strict=True)
        numbers = (f"{one:.4f}" for one in (min(bounds), statistics.median(bounds), max(bounds)))
        earlier = f"{ROWS[name].earlier:.4f}"
        table.add(name, *numbers, f"{statistics.mean(seconds):.1f}", earlier, ROWS[name].truth)
    text = f"Bounds of ε at confidence {1 - given.alpha:g} from {given.runs:,} paired runs, {given.seeds} seeds."
    finish(given, "Lower bounds of twenty mechanisms", text, table)


if __name__ == "__main__":
    main()
