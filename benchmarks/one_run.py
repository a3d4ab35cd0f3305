"""Bounds and level of `one_run` beside jax_privacy's: `python benchmarks/one_run.py --theirs jax_privacy/auditing.py`.

A fair coin puts each of m canaries in. The score of a canary is standard normal noise, plus μ if it was in, or Laplace
noise of scale 1/ε, plus 1 if it was in, so that the claim holds with equality. The bounds are of ε with confidence
95 %, for Gaussian scores at δ = 10⁻⁵; each is the mean over seeds. GaussianDP is compared with `epsilon_one_run_fdp`,
whose claims are Gaussian too, PureDP and ApproxDP with `epsilon_one_run`. The columns of jax_privacy are the default,
which divides α by the number of vertices of the hull of the ROC curve; `Split`, which chooses the threshold on one half
of the scores; and the best of ten fixed numbers of guesses, chosen for each setting after all bounds were known.

`--level N` counts the refutations of claims that hold, in N repetitions with randomised response: the score is a random
number in (0, 1] if the canary's answer is "in", else 0.

`auditing.py` needs dp_accounting. The seeds of a row are those of `numpy.random.default_rng([m, 10·parameter, seed])`.
"""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri

import dpwitness as dpw
from dpwitness.api.one_run import by_score, choices_tried, right_guesses
from dpwitness.evidence.guesses import critical_number
from results import Table, finish, parser_of
from truth import gaussian_delta

#: The level of each audit, and the δ of (ε, δ)-DP.
ALPHA, DELTA = 0.05, 1e-5
#: The numbers of canaries.
CANARIES = (100, 300, 1_000, 3_000, 10_000)
#: The true parameters, μ of Gaussian scores and ε of Laplace scores.
PARAMETERS = {"Gaussian": (0.5, 1, 2, 3, 4), "Laplace": (0.5, 1, 2, 4)}
#: SHARES has the numbers of guesses of the last column, as shares of the canaries.
SHARES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
#: CLAIMS has the noise and the δ for jax_privacy, which must be positive, by claim.
CLAIMS = {"μ-GDP": ("Gaussian", DELTA), "(ε, δ)-DP": ("Gaussian", DELTA), "ε-DP": ("Laplace", 1e-300)}


def load(path: Path) -> Any:
    """The module of a file."""
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    # scipy.special has the same functions of numbers; the functions of scipy.stats take a hundred times as long.
    module._norm = SimpleNamespace(cdf=ndtr, ppf=ndtri)  # type: ignore[attr-defined]
    return module


def scores_of(noise: str, m: int, parameter: float, seed: int) -> tuple[Any, Any]:
    """The scores of the canaries that were in, and the scores of the canaries that were out."""
    rng = np.random.default_rng([m, int(10 * parameter), seed])
    inside = rng.random(m) < 0.5
    gaussian = noise == "Gaussian"
    scores = rng.standard_normal(m) + parameter * inside if gaussian else rng.laplace(size=m) / parameter + inside
    return scores[inside], scores[~inside]


def epsilon_of(mu: float) -> float:
    """The ε (nats) of μ-GDP at `DELTA`; 0 if δ(0) is at most `DELTA`."""
    if mu == 0 or gaussian_delta(0.0, mu=mu) <= DELTA:
        return 0.0
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu=mu) - DELTA, 0, mu**2 / 2 + 10 * mu))


def bound_of(claim: str, scores: tuple[Any, Any]) -> float:
    """The lower bound of ε by dpwitness."""
    claims: Any = {"μ-GDP": dpw.GaussianDP(0.1), "(ε, δ)-DP": dpw.ApproxDP(0.1, DELTA), "ε-DP": dpw.PureDP(0.1)}
    found = dpw.one_run(*scores, claims[claim], alpha=ALPHA).lower_bound
    return epsilon_of(found) if claim == "μ-GDP" else found


def their_bounds(theirs: Any, claim: str, scores: tuple[Any, Any], seed: int) -> list[float]:
    """The lower bounds of ε by jax_privacy: the default, `Split`, and for each of `SHARES`."""
    auditor, ranked = theirs.CanaryScoreAuditor(*scores), np.sort(np.concatenate(scores))[::-1]
    bound = auditor.epsilon_one_run_fdp if claim == "μ-GDP" else auditor.epsilon_one_run
    cuts = [ranked[max(1, round(share * len(ranked))) - 1] for share in SHARES]
    ways = [theirs.Bonferroni(), theirs.Split(seed=seed), *map(theirs.Explicit, cuts)]
    return [float(bound(ALPHA, CLAIMS[claim][1], threshold_strategy=way)) for way in ways]


def bounds(theirs: Any, seeds: int) -> tuple[Table, str]:
    """The bounds in all settings, and a text with the numbers of settings in which no other bound is higher."""
    table = Table("claim", "m", "parameter", "dpwitness", "default", "Split", "best in hindsight")
    for claim, (noise, _) in CLAIMS.items():
        for m in CANARIES:
            for parameter in PARAMETERS[noise]:
                drawn = [scores_of(noise, m, parameter, seed) for seed in range(seeds)]
                ours = np.mean([bound_of(claim, scores) for scores in drawn])
                default, split, *fixed = np.mean(
                    [their_bounds(theirs, claim, scores, seed) for seed, scores in enumerate(drawn)], axis=0
                )
                table.add(claim, m, parameter, *(f"{x:.3f}" for x in (ours, default, split, max(fixed))))
    rows = [[float(row[name]) for name in ("dpwitness", "default", "Split", "best in hindsight")] for row in table.rows]
    counts = [sum(row[0] >= max(row[i] for i in which) for row in rows) for which in ((1,), (1, 2), (1, 2, 3))]
    return table, (
        f"Mean bounds of {seeds} seeds. Of {len(rows)} settings dpwitness is at or above the default of jax_privacy in "
        f"{counts[0]}, the default and Split in {counts[1]}, and also the best number in hindsight in {counts[2]}."
    )


def levels(theirs: Any, repetitions: int) -> tuple[Table, str]:
    """The shares of repetitions in which ε-DP is refuted though it holds with equality."""
    table = Table("m", "ε", "dpwitness", "default")
    for m in (100, 1_000, 10_000):
        for epsilon in (0.1, 1.0):
            claim, ends = dpw.PureDP(epsilon), choices_tried(m, curved=False)
            critical = [critical_number(claim, ALPHA / len(ends), sum(both), m) for both in ends]
            ours = default = 0
            for seed in range(repetitions):
                rng = np.random.default_rng([m, int(10 * epsilon), seed])
                inside = rng.random(m) < 0.5
                said_in = inside == (rng.random(m) < expit(epsilon))
                scores = np.where(said_in, 1 - rng.random(m), 0)
                ranked = by_score(scores[inside], scores[~inside], seed)
                refuted = any(right_guesses(ranked, both) >= least for both, least in zip(ends, critical, strict=True))
                if seed < 10:  # the numbers that refute, computed once, say what one_run says
                    result = dpw.one_run(scores[inside], scores[~inside], claim, alpha=ALPHA, seed=seed)
                    assert result.refuted == refuted
                ours += refuted
                auditor = theirs.CanaryScoreAuditor(scores[inside], scores[~inside])
                default += auditor.epsilon_one_run(ALPHA, 1e-300) > epsilon + 1e-5  # its roots are exact to 1e-6
            table.add(m, epsilon, *(f"{count / repetitions:.4f}" for count in (ours, default)))
    return table, f"Shares of {repetitions:,} repetitions at α = {ALPHA} in which a claim that holds was refuted."


def main() -> None:
    parser = parser_of(__doc__, seeds=10)
    parser.add_argument("--theirs", type=Path, required=True, metavar="FILE", help="auditing.py of jax_privacy")
    parser.add_argument("--level", type=int, default=0, metavar="N", help="measure the level instead")
    given = parser.parse_args()
    theirs = load(given.theirs)
    table, text = levels(theirs, given.level) if given.level else bounds(theirs, given.seeds)
    title = "Level of audits of one training run" if given.level else "Bounds from one training run"
    finish(given, title, text, table)


if __name__ == "__main__":
    main()
