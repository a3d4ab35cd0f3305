"""DP-Sniper on the mechanisms: `python run_dp_sniper.py NAME …`, with DP-Sniper on the path.

DP-Sniper uses logistic regression with the features of its experiments. It gets 100,000 runs a stage and 10⁶ runs a
side to confirm, since its own settings, 1.07·10⁷ and 2·10⁸ runs, take hours. It gives a lower bound of ε.
"""

import sys
import tempfile

import numpy as np
from dpsniper.attack.dpsniper import DPSniper
from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory
from dpsniper.classifiers.feature_transformer import FlagsFeatureTransformer
from dpsniper.classifiers.torch_optimizer_factory import SGDOptimizerFactory
from dpsniper.input.input_domain import InputBaseType, InputDomain
from dpsniper.input.pattern_generator import PatternGenerator
from dpsniper.mechanisms.abstract import Mechanism
from dpsniper.search.ddconfig import DDConfig
from dpsniper.search.ddsearch import DDSearch
from dpsniper.utils.initialization import initialize_dpsniper
from mechanisms import ABSENT, CASES
from reporting import EPSILON, LEVEL, report

#: The number of runs of a stage, and the number of confirm runs of each side.
STAGE, FINAL = 100_000, 1_000_000
#: The number of runs in a batch: training takes about as many steps as by DP-Sniper's own settings, 1.07·10⁷ runs in
#: batches of 10⁵.
BATCH = 1_000


class Batched(Mechanism):
    """A mechanism with the signature that DP-Sniper asks for; it can be sent to a process."""

    def __init__(self, name):
        self.name = name

    def m(self, a, n_samples=1):
        """The outcomes of `n_samples` runs on the input `a`."""
        return CASES[self.name].many(np.random.default_rng(), a, EPSILON, n_samples)


def ask(case):
    """The lower bound of ε."""
    mechanism = Batched(case.one.__name__)
    base, span = (InputBaseType.BOOL, [0, 1]) if case.differ == "bit" else (InputBaseType.FLOAT, [-10, 10])
    inputs = PatternGenerator(InputDomain(case.inputs, base, span), case.differ == "all")
    factory = LogisticRegressionFactory(
        in_dimensions=case.width * (2 if case.absent else 1),
        feature_transform=FlagsFeatureTransformer([ABSENT]) if case.absent else None,
        optimizer_factory=SGDOptimizerFactory(learning_rate=0.3, momentum=0.3, step_size=500),
        regularization_weight=0.001,
        epochs=10,
    )
    config = DDConfig(
        n_train=STAGE,
        n=STAGE,
        n_check=STAGE,
        n_final=FINAL,
        training_batch_size=BATCH,
        n_processes=1,
        confidence=1 - LEVEL,
    )
    with tempfile.TemporaryDirectory() as folder, initialize_dpsniper(config, out_dir=folder, torch_threads=1):
        witness = DDSearch(mechanism, DPSniper(mechanism, factory, config), inputs, config).run()
        witness.compute_eps_high_precision(mechanism, config)
    return {"refuted": bool(witness.lower_bound > EPSILON), "found": f"ε ≥ {witness.lower_bound:.3f}"}


if __name__ == "__main__":
    report(ask, sys.argv[1:])
