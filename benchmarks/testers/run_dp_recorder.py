"""dp-recorder on the mechanisms: `python run_dp_recorder.py NAME …`, with dp-recorder on the path.

It does not run a mechanism as a whole: its noise functions are marked, the mechanism is run once on one input and once
on the neighbour with the first run's noisy values, and other differences are reported (its deterministic checks).
Each marked function is then sampled by itself on its two recorded inputs, 100,000 runs, and has a lower bound of its
own ε (its distributional audit). So the mechanisms are written again with marked functions, and values released
without noise are marked with `ensure_equality`. The input pairs are from Ding et al. 2018.
"""

import math
import sys

import numpy as np
from dp_recorder.auditing import Auditor, audit_spec, ensure_equality
from reporting import EPSILON, LEVEL, pairs, report

#: The number of runs of a marked function, over all input pairs together.
RUNS = 100_000
RNG = np.random.default_rng()


def distance(a, b):
    """The L1 distance, for which scales of Laplace noise are stated."""
    return float(np.sum(np.abs(np.asarray(a) - np.asarray(b))))


@audit_spec(kind="laplace", input_arg="value", sensitivity_arg="sensitivity", metric_fn=distance)
def noisy(value, sensitivity, scale):
    """A number or an array + Laplace noise."""
    return value + RNG.laplace(0.0, scale, np.shape(value))


@audit_spec(kind="level ends", input_arg="value", sensitivity_arg="sensitivity", metric_fn=distance)
def level_ended(value, sensitivity, scale, edge):
    """A number + Laplace noise whose tails have a constant density, and end."""
    noise = RNG.laplace(0.0, scale)
    if abs(noise) > edge:
        noise = math.copysign(edge + scale * RNG.random(), noise)
    return value + noise


@audit_spec(kind="uniform", input_arg="value", sensitivity_arg="sensitivity", metric_fn=distance)
def lowered(value, sensitivity, offset):
    """A number minus a uniform number between one and two times an offset."""
    return value - offset * (1 + RNG.random())


@audit_spec(kind="coin", input_arg="value", sensitivity_arg="sensitivity", metric_fn=distance)
def flipped(value, sensitivity, keep):
    """A bit with probability `keep`, else the other bit."""
    return value if RNG.random() < keep else 1 - value


def _maximum(queries, *, value):
    answers = noisy(np.asarray(queries, float), len(queries), 2 / EPSILON)
    return float(answers.max()) if value else int(answers.argmax())


def _flags(queries, threshold_at, threshold_scale, query_scale, *, stops, number=False):
    threshold = noisy(threshold_at, 1, threshold_scale)
    answers = []
    for query in queries:
        compared = noisy(float(query), 1, query_scale) if query_scale else float(query)
        flag = bool(compared >= threshold)
        answers.append(compared if flag and number else ensure_equality(answer=flag))
        if flag and stops:
            break
    return answers


def _lowered(queries):
    threshold = lowered(1.0, 0, 1.8)
    answers = []
    for query in queries:
        flag = bool(noisy(float(query), 1, 0.2 / EPSILON) >= threshold)
        answers.append(ensure_equality(answer=flag))
        if flag:
            break
    return answers


#: The mechanisms with marked functions, by name.
MARKED = {
    "laplace": lambda q: noisy(float(q[0]), 1, 1 / EPSILON),
    "laplace_half_scale": lambda q: noisy(float(q[0]), 1, 0.5 / EPSILON),
    "histogram": lambda q: noisy(np.asarray(q, float), 1, 1 / EPSILON),
    "histogram_wrong_scale": lambda q: noisy(np.asarray(q, float), 1, EPSILON),
    "noisy_max": lambda q: _maximum(q, value=False),
    "noisy_max_value": lambda q: _maximum(q, value=True),
    "svt": lambda q: _flags(q, 0.5, 2 / EPSILON, 4 / EPSILON, stops=True),
    "isvt1": lambda q: _flags(q, 1.0, 2 / EPSILON, 0.0, stops=False),
    "isvt2": lambda q: _flags(q, 1.0, 2 / EPSILON, 2 / EPSILON, stops=False),
    "isvt3": lambda q: _flags(q, 1.0, 4 / EPSILON, 4 / (3 * EPSILON), stops=True),
    "isvt4": lambda q: _flags(q, 1.0, 2 / EPSILON, 2 / EPSILON, stops=True, number=True),
    "randomised_response": lambda q: flipped(int(q[0]), 1, 1 / (1 + math.exp(-EPSILON))),
    "laplace_flat_ends": lambda q: level_ended(float(q[0]), 1, 2 / EPSILON, 7 / EPSILON),
    "svt_uniform_threshold": _lowered,
}


def ask(case):
    """The first difference that the deterministic checks report, else the largest ε of a marked function."""
    marked, given = MARKED[case.one.__name__], pairs(case)
    largest = 0.0
    for first, second in given:
        auditor = Auditor()
        with auditor:
            marked(first)
        auditor.set_replay()
        try:
            with auditor:
                marked(second)
            auditor.validate_records()
        except (AssertionError, RuntimeError) as difference:
            text = " ".join(str(difference).split()).replace("|", "/")
            return {"refuted": True, "found": f"a difference: {text[:60]}"}
        auditor.run_distributional_audit(n_samples=RUNS // len(given), alpha=LEVEL / len(given))
        largest = max([largest, *(getattr(entry, "empirical_epsilon_lb", 0.0) for entry in auditor.log)])
    return {"refuted": largest > EPSILON, "found": f"a marked function has ε ≥ {largest:.3f}"}


if __name__ == "__main__":
    report(ask, sys.argv[1:])
