"""The mechanisms that other testers are given: one run and many have one law, that of the bundled target."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpwitness.mechanisms.catalog import load

sys.path[:0] = [str(Path(__file__).parents[2] / "benchmarks" / name) for name in ("testers", ".")]

from mechanisms import ABSENT, CASES  # noqa: E402
from reporting import EPSILON, pairs  # noqa: E402

RUNS, LEVEL = 3_000, 1e-9
#: The bundled targets of the same law that have another name here, or parameters.
OTHERS = {
    "laplace": ("laplace_mechanism", {}),
    "noisy_max": ("noisy_max_laplace", {}),
    "noisy_max_value": ("noisy_max_laplace_value", {}),
    "randomised_response": ("randomized_response", {}),
    "svt_uniform_threshold": ("svt_uniform_threshold", {"offset": 1.8}),
    **{f"isvt{k}": (f"isvt{k}", {"threshold": 1.0}) for k in (1, 2, 3, 4)},
}
BUNDLED = {"histogram", "histogram_wrong_scale", "svt", "laplace_flat_ends", *OTHERS}


def rows(outcomes, width):
    """Outcomes as rows of one length."""
    padded = np.full((len(outcomes), width), ABSENT)
    for row, outcome in zip(padded, outcomes, strict=True):
        values = np.atleast_1d(outcome)
        row[: len(values)] = values
    return padded


def alike(first, second):
    """The least p-value that two samples of rows have one law: of each column, and of the most frequent patterns."""
    values = [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(first.T, second.T, strict=True)]
    patterns = [Counter(map(tuple, (np.round(sample) == 1).tolist())) for sample in (first, second)]
    for pattern, _ in (patterns[0] + patterns[1]).most_common(12):
        seen = [found[pattern] for found in patterns]
        values.append(stats.fisher_exact([seen, [len(first) - seen[0], len(second) - seen[1]]]).pvalue)
    return min(values)


@pytest.mark.parametrize("name", CASES)
def test_one_run_and_many_have_the_law_of_the_bundled_target(name):
    case = CASES[name]
    data = np.array(pairs(case)[-1][1], float)
    rng = np.random.default_rng(3)
    many = np.asarray(case.many(rng, data, EPSILON, RUNS), float).reshape(RUNS, -1)
    assert many.shape[1] == case.width
    one = rows([case.one(rng, data, EPSILON) for _ in range(RUNS)], case.width)
    assert alike(one, many) > LEVEL
    if name in BUNDLED:
        target, parameters = OTHERS.get(name, (name, {}))
        mechanism = load(target)
        kind = int if name == "randomised_response" else float
        bundled = [mechanism(rng, data.astype(kind), epsilon=EPSILON, **parameters) for _ in range(RUNS)]
        assert alike(rows(bundled, case.width), many) > LEVEL
