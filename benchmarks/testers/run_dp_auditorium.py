"""DP-Auditorium on the mechanisms: `python run_dp_auditorium.py NAME …`, with DP-Auditorium on the path.

Its histogram tester tests outcomes of one number, and its hockey-stick tester (a neural network), with the training of
its example, tests longer outcomes. Its own generators make datasets of records, not of answers to queries, so both
testers get the input pairs of Ding et al. 2018, one a trial. A tester gives a lower bound of δ at ε = 0.7, and refutes
the claim if the bound is positive.
"""

import sys
from types import ModuleType

import numpy as np
from reporting import EPSILON, LEVEL, pairs, report

# Neither module is used here, and the packages that they import (Vizier, PipelineDP) are not installed.
for _name in ("generators", "mechanisms"):
    sys.modules[f"dp_auditorium.{_name}"] = ModuleType(_name)

from dp_auditorium import privacy_test_runner  # noqa: E402
from dp_auditorium.configs import privacy_property, privacy_test_runner_config, property_tester_config  # noqa: E402
from dp_auditorium.testers import HistogramTester, HockeyStickPropertyTester, hockey_stick_tester  # noqa: E402

#: The number of runs of a trial, for the histogram tester and for the neural network.
HISTOGRAM_RUNS, NETWORK_RUNS = 1_000_000, 100_000
#: The number of bins of a continuous outcome, and the largest absolute value in a bin.
BINS, REACH = 40, 20.0


def ask(case):
    """The largest lower bound of δ over the input pairs."""
    claimed = privacy_property.ApproximateDp(epsilon=EPSILON, delta=1e-12)
    given = pairs(case)
    if case.width == 1:
        runs, kind = HISTOGRAM_RUNS, privacy_test_runner_config.PropertyTester.HISTOGRAM_TESTER
        tester = HistogramTester(
            property_tester_config.HistogramPropertyTesterConfig(
                test_discrete_mechanism=case.kinds > 0,
                histogram_size=case.kinds or BINS,
                min_value=-REACH,
                max_value=REACH,
                approximate_dp=claimed,
            )
        )
    else:
        runs, kind = NETWORK_RUNS, privacy_test_runner_config.PropertyTester.HOCKEY_STICK_TESTER
        tester = HockeyStickPropertyTester(
            config=property_tester_config.HockeyStickPropertyTesterConfig(
                training_config=hockey_stick_tester.make_default_hs_training_config(), approximate_dp=claimed
            ),
            base_model=hockey_stick_tester.make_default_hs_base_model(),
        )
    rng, turn = np.random.default_rng(), iter(given)
    settings = privacy_test_runner_config.PrivacyTestRunnerConfig(
        property_tester=kind,
        max_num_trials=len(given),
        failure_probability=LEVEL / (2 * len(given)),  # a bound for each pair and direction
        num_samples=runs,
        post_processing=privacy_test_runner_config.PostProcessing.NONE,
    )
    runner = privacy_test_runner.PrivacyTestRunner(
        config=settings, dataset_generator=lambda last: next(turn), property_tester=tester
    )
    done = runner.test_privacy(
        lambda data, n: case.many(rng, np.asarray(data), EPSILON, n), mechanism_name=case.one.__name__
    )
    shown = max(done.lower_bound_divergence_estimates)
    return {"refuted": done.found_privacy_violation is not None, "found": f"δ ≥ {max(shown, 0.0):.3g}"}


if __name__ == "__main__":
    report(ask, sys.argv[1:])
