"""The mechanisms of the curator attack: `python benchmarks/curator_attack.py [--search-runs N] [--seeds N]`.

Wang et al. 2024 made each mechanism for an auditor that accepts it: it breaks its claim only where that auditor does
not look. Parameters are those of the paper's figures and tables. A row names the auditors that accept the claim, and
gives the results of checks.
"""

import math
import time
from dataclasses import dataclass, field
from typing import Any

from scipy.optimize import brentq
from scipy.stats import norm

import dpwitness as dpw
from results import Table, finish, parser_of

#: The δ of the Gaussian row.
DELTA = 0.05
#: The Δ/σ of the Gaussian row, for which a cut has the error rates .005 and .675 of the paper's Table 6.
MU = float(norm.isf(0.005) - norm.ppf(0.675))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest ε of Gaussian noise at δ; Balle & Wang 2018, Theorem 8."""

    def excess(epsilon: float) -> float:
        far = norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * far - delta)

    return float(brentq(excess, 0.0, 50.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A mechanism, its claim, its true ε, and the auditors that accept the claim."""

    target: str
    claim: dpw.Claim
    true: float
    passes: str  # the auditors that accept the claim, and the place in the paper
    options: dict[str, Any] = field(default_factory=dict)  # parameters of the mechanism


#: The claim of rows at ε = 1.
ONE = dpw.PureDP(1.0)
#: The rows of the table.
ROWS = (
    Row(target="laplace_mechanism", claim=dpw.PureDP(5.0), true=8.0, options={"epsilon": 8.0},
        passes="DP-Sniper, Delta-Siege (Theorems 1 and 7; figure 6)"),
    Row(target="laplace_flat_ends", claim=ONE, true=math.inf, options={"epsilon": 1.0},
        passes="DP-Sniper (figure 7)"),
    Row(target="svt_uniform_threshold", claim=ONE, true=50.0, options={"epsilon": 1.0, "offset": 1.5},
        passes="DP-Sniper (figure 9)"),
    Row(target="one_time_rappor", claim=dpw.PureDP(4.0), true=6 * math.log(0.7 / 0.3),
        options={"hashes": 3, "length": 12, "f": 0.6}, passes="DP-Sniper (figure 18)"),
    Row(target="one_time_rappor", claim=dpw.PureDP(9.0), true=6 * math.log(0.85 / 0.15),
        options={"hashes": 3, "length": 8, "f": 0.3}, passes="MPL (figure 19)"),
    Row(target="gaussian_mechanism", claim=dpw.ApproxDP(4.8, DELTA), true=gaussian_epsilon(MU, DELTA),
        options={"epsilon": MU * math.sqrt(2 * math.log(1.25 / DELTA)), "delta": DELTA},
        passes="Delta-Siege (table 6)"),
    Row(target="laplace_flat_ends_low_density", claim=ONE, true=math.inf, options={"epsilon": 1.0},
        passes="MPL (figure 10)"),
    Row(target="svt_uniform_threshold", claim=ONE, true=50.0, options={"epsilon": 1.0, "offset": 2.17},
        passes="MPL (figure 11)"),
)  # fmt: skip


def main() -> None:
    parser = parser_of(__doc__, seeds=3)
    parser.add_argument("--search-runs", type=int, help="of a check (default: what a check chooses)")
    given = parser.parse_args()
    more = {} if given.search_runs is None else {"search_runs": given.search_runs}
    table = Table("mechanism", "claim", "true ε", "accepted by", "refuted", "shown ε, by seed", "CPU s a check")
    for row in ROWS:
        started = time.process_time()
        verdicts = [
            dpw.check(row.target, claim=row.claim, seed=seed, workers=1, parameters=row.options, **more)
            for seed in range(1, given.seeds + 1)
        ]
        seconds = (time.process_time() - started) / given.seeds
        refuted = sum(verdict.refuted for verdict in verdicts)
        bounds = [verdict.epsilon_lower_bound for verdict in verdicts]
        options = ", ".join(f"{name} = {value:g}" for name, value in row.options.items())
        table.add(
            f"`{row.target}`, {options}", row.claim, "∞" if math.isinf(row.true) else f"{row.true:.2f}", row.passes,
            f"{refuted} of {given.seeds}", ", ".join(f"{bound:.2f}" for bound in bounds), f"{seconds:.1f}",
        )  # fmt: skip
    text = "The mechanisms of Wang et al. (2024) with the parameters of its figures, α = 10⁻⁶."
    finish(given, "Mechanisms that were made to pass", text, table)


if __name__ == "__main__":
    main()
