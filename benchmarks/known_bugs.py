"""Violations in released libraries: `python benchmarks/known_bugs.py [NAME …] [--seed N] [--max-time S] [--list]`.

Each is a function of a dataset, the domain of its records and the claim that the library makes: no pair of inputs and
no event is given. The settings are those of `check`. An entry is skipped, with its name, where the package is not
installed, or is another version; those of two versions of one package need two environments.
"""

import argparse
import io
import os
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dpwitness import (
    ApproxDP,
    Claim,
    DPWitnessError,
    PureDP,
    Violation,
    categories,
    check,
    flags,
    integers,
    numbers,
    records,
)
from dpwitness.neighbours import Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A mechanism as a released version has it, what is wrong with it, what it claims, and for which datasets."""

    function: Callable[[Any], Any]
    requirement: str  # name==version
    fault: str
    claim: Callable[[], Claim]  # called once the package is there
    neighbours: Relation

    @property
    def name(self) -> str:
        """That of the function."""
        return self.function.__name__

    def missing(self) -> str | None:
        """Why it cannot be run here; None if it can."""
        name, _, wanted = self.requirement.partition("==")
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"{name} is not installed: pip install {self.requirement}"
        return None if found == wanted else f"{name} {found} is installed: pip install {self.requirement}"


def fitted_line(data, low: float, high: float) -> float:
    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")  # of the optimiser, on little data
    model = LinearRegression(epsilon=1.0, bounds_X=(low, high), bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(*data).coef_[0])


def linear_regression_0_5(data):
    return fitted_line(data, 0.0, 5.0)


def linear_regression_01_1(data):
    return fitted_line(data, -0.1, 1.0)


def logistic_regression_100(data):
    """Fit with one public record of each class, without which scikit-learn refuses to."""
    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    features, labels = np.vstack([data[0], [[0.0], [0.0]]]), np.append(data[1], [0, 1])
    model = LogisticRegression(epsilon=1.0, data_norm=100.0, fit_intercept=False)
    return float(model.fit(features, labels).coef_[0, 0])


def unary_encoding(value):
    from pure_ldp.frequency_oracles import UEClient

    return UEClient(epsilon=1.0, d=8, index_mapper=int).privatise(value).tolist()


@cache
def rappor_client():
    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    random.seed(7)  # of the hash functions, which are public
    server = RAPPORServer(f=0.5, m=16, k=2, d=8, num_of_cohorts=4)
    random.seed()
    return RAPPORClient(f=0.5, m=16, hash_funcs=server.get_hash_funcs(), num_of_cohorts=4, index_mapper=int)


def rappor(value):
    bits, cohort = rappor_client().privatise(value)
    return [*bits, cohort]


@cache
def integer_laplace(scale: float):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)


def integer_laplace_5(value):
    return integer_laplace(5.0)(value)


def integer_laplace_10(value):
    return integer_laplace(10.0)(value)


@cache
def counts_by_text():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return texts >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)


def count_by_threshold(texts):
    return counts_by_text()(list(texts))


@cache
def bit_vector_response():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=8), dp.discrete_distance(), f=0.95)


def bit_vector(bits):
    answer = bit_vector_response()(np.packbits(bits).tobytes())
    return np.unpackbits(np.frombuffer(answer, np.uint8)).tolist()


def clamped_mean(data):
    from eeprivacy.operations import PrivateClampedMean

    return PrivateClampedMean(lower_bound=0.0, upper_bound=1.0).execute(values=data, epsilon=1.0)


def vector_clamped_mean(data):
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    mean = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=3, N=10)
    return mean.execute(vectors=data, epsilon=1.0, delta=0.0).tolist()


def presto_gaussian(data):
    from ornl_presto.privacy_mechanisms import applyDPGaussian

    return applyDPGaussian(data.tolist(), sensitivity=10.0, delta=1e-5, epsilon=1.0)


def independent_mode(data):
    """Describe the dataset with ε = 1: the ranges and the noisy distributions of its columns."""
    from DataSynthesizer.DataDescriber import DataDescriber

    warnings.simplefilter("ignore")
    describer = DataDescriber()
    file = io.StringIO(data.to_csv(index=False))
    seed = int.from_bytes(os.urandom(4))  # by default it is 0, and all noise the same
    describer.describe_dataset_in_independent_attribute_mode(file, epsilon=1.0, seed=seed)
    columns = describer.data_description["attribute_description"].values()
    return [[column["min"], column["max"], *column["distribution_probabilities"]] for column in columns]


def local(domain: Any) -> Relation:
    """The local model: the mechanism gets one person's record."""
    return records(domain, adjacency="replace-one", size=1, form="record")


def one_dp() -> Claim:
    return PureDP(1.0)


REGRESSION = "the sensitivity of ΣX² is taken from the lower bound twice"
BUGS = [
    Bug(
        function=linear_regression_0_5,
        requirement="diffprivlib==0.6.6",
        fault=f"{REGRESSION}: no noise",
        claim=one_dp,
        neighbours=records(((numbers(0, 5),), numbers(0, 1)), size=(1, 1000)),
    ),
    Bug(
        function=linear_regression_01_1,
        requirement="diffprivlib==0.6.6",
        fault=f"{REGRESSION}: a hundredth of the noise",
        claim=one_dp,
        neighbours=records(((numbers(-0.1, 1),), numbers(0, 1)), size=(1, 1000)),
    ),
    Bug(
        function=logistic_regression_100,
        requirement="diffprivlib==0.6.6",
        fault="the curvature of the loss grows with the square of data_norm, the noise with data_norm",
        claim=one_dp,
        neighbours=records(((numbers(-100, 100),), flags())),
    ),
    Bug(
        function=unary_encoding,
        requirement="pure-ldp==1.1.2",
        fault="a person's own bit has two chances to be 1",
        claim=one_dp,
        neighbours=local(integers(0, 7)),
    ),
    Bug(
        function=rappor,
        requirement="pure-ldp==1.2.0",
        fault="bits of the filter are never turned to 0",
        claim=lambda: PureDP(rappor_client().convert_f_to_eps(0.5, 2)),
        neighbours=local(integers(0, 7)),
    ),
    Bug(
        function=integer_laplace_5,
        requirement="opendp==0.14.1",
        fault="the noise is not geometric",
        claim=lambda: PureDP(integer_laplace(5.0).map(1)),
        neighbours=local(integers(0, 1)),
    ),
    Bug(
        function=integer_laplace_10,
        requirement="opendp==0.14.1",
        fault="the noise is not geometric",
        claim=lambda: PureDP(integer_laplace(10.0).map(1)),
        neighbours=local(integers(0, 1)),
    ),
    Bug(
        function=bit_vector,
        requirement="opendp==0.14.1",
        fault="the first bit of each answer is the true one",
        claim=lambda: PureDP(bit_vector_response().map(1)),
        neighbours=local((flags(),) * 8),
    ),
    Bug(
        function=count_by_threshold,
        requirement="opendp==0.16.0",
        fault="a count that is the threshold is released, and δ does not count it",
        claim=lambda: ApproxDP(*counts_by_text().map(1)),
        neighbours=records(categories("a", "b", "c")),
    ),
    Bug(
        function=clamped_mean,
        requirement="eeprivacy==0.0.5",
        fault="values are not clamped",
        claim=one_dp,
        neighbours=records(numbers(0, 1, clipped=True)),
    ),
    Bug(
        function=vector_clamped_mean,
        requirement="eeprivacy==0.0.5",
        fault="one noise for all coordinates",
        claim=one_dp,
        neighbours=records((numbers(0, 1),) * 3, adjacency="replace-one", size=10),
    ),
    Bug(
        function=presto_gaussian,
        requirement="ornl-presto==0.1.29",
        fault="σ = √(Δ ln(1.25/δ))/ε: the root of the sensitivity, and no factor 2",
        claim=lambda: ApproxDP(1.0, 1e-5),
        neighbours=records(numbers(0, 10), adjacency="replace-one", size=(1, 10)),
    ),
    Bug(
        function=independent_mode,
        requirement="DataSynthesizer==0.1.13",
        fault="least and greatest values are exact",
        claim=one_dp,
        neighbours=records({"age": integers(0, 120), "income": numbers(0, 1000)}, size=(2, 1000), form="dataframe"),
    ),
]


def run(bug: Bug, seed: int | None, max_time: float) -> None:
    """Check one and print a line of it."""
    missing = bug.missing()
    if missing:
        print(f"{bug.name:24} skipped: {missing}")
        return
    claim = bug.claim()
    started = time.perf_counter()
    try:
        verdict = check(bug.function, claim=claim, neighbours=bug.neighbours, max_time=max_time, seed=seed)
    except DPWitnessError as error:
        print(f"{bug.name:24} error after {time.perf_counter() - started:.1f} s: {type(error).__name__}: {error}")
        return
    seconds = time.perf_counter() - started
    if isinstance(verdict, Violation):
        witness = verdict.witness
        found = f"REFUTED, ε ≥ {verdict.epsilon_lower_bound:.3g}, {witness.event.describe():.80}: {witness.pair!s:.150}"
    else:
        found = "not refuted"
    print(f"{bug.name:24} {seconds:5.1f} s, claim {claim}: {found}", flush=True)


def main() -> None:
    names = [bug.name for bug in BUGS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--list", action="store_true", help="what is wrong with each")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--max-time", type=float, default=60.0)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(names))
    if unknown:
        parser.error(f"no bug is called {', '.join(unknown)}")
    for bug in BUGS:
        if arguments.names and bug.name not in arguments.names:
            continue
        if arguments.list:
            print(f"{bug.name:24} {bug.requirement}: {bug.fault}")
        else:
            run(bug, arguments.seed, arguments.max_time)


if __name__ == "__main__":
    main()
