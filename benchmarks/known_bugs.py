"""Violations in released libraries: `python benchmarks/known_bugs.py [NAME …] [--seed N] [--max-time S] [--list]`.

Each is a function of a dataset, the domain of its records and the claim that the library makes: no pair of inputs and
no event is given. The settings are those of `check`. An entry is skipped, with its name, where the package is not
installed, or is another version; those of two versions of one package need two environments.
"""

import argparse
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from dpwitness import ApproxDP, Claim, DPWitnessError, PureDP, Violation, check, flags, integers, numbers, records
from dpwitness.neighbours import Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mechanism as the library has it, what it claims, and which datasets it is for."""

    function: Callable[[Any], Any]
    claim: Claim
    neighbours: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A released version, what is wrong with it, and what makes the case once the package is there."""

    requirement: str  # name==version
    fault: str
    make: Callable[[], Case]

    def missing(self) -> str | None:
        """Why it cannot be run here; None if it can."""
        name, _, wanted = self.requirement.partition("==")
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"{name} is not installed: pip install {self.requirement}"
        return None if found == wanted else f"{name} {found} is installed: pip install {self.requirement}"


def linear_regression(low: float, high: float) -> Case:
    from diffprivlib.models import LinearRegression

    def coefficient(data):
        warnings.simplefilter("ignore")  # of the optimiser, on little data
        model = LinearRegression(epsilon=1.0, bounds_X=(low, high), bounds_y=(0.0, 1.0), fit_intercept=False)
        return float(model.fit(*data).coef_[0])

    domain = ((numbers(low, high),), numbers(0, 1))
    return Case(function=coefficient, claim=PureDP(1.0), neighbours=records(domain, size=(1, 1000)))


def logistic_regression() -> Case:
    from diffprivlib.models import LogisticRegression

    def coefficient(data):
        """Fit with one public record of each class, without which scikit-learn refuses to."""
        warnings.simplefilter("ignore")
        features, labels = np.vstack([data[0], [[0.0], [0.0]]]), np.append(data[1], [0, 1])
        model = LogisticRegression(epsilon=1.0, data_norm=100.0, fit_intercept=False)
        return float(model.fit(features, labels).coef_[0, 0])

    return Case(function=coefficient, claim=PureDP(1.0), neighbours=records(((numbers(-100, 100),), flags())))


def unary_encoding() -> Case:
    from pure_ldp.frequency_oracles import UEClient

    client = UEClient(epsilon=1.0, d=8, index_mapper=int)

    def report(value):
        return client.privatise(value).tolist()

    return Case(function=report, claim=PureDP(1.0), neighbours=local(integers(0, 7)))


def rappor() -> Case:
    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    server = RAPPORServer(f=0.5, m=16, k=2, d=8, num_of_cohorts=4)
    client = RAPPORClient(f=0.5, m=16, hash_funcs=server.hash_family, num_of_cohorts=4, index_mapper=int)

    def report(value):
        bits, cohort = client.privatise(value)
        return [*bits, cohort]

    claim = PureDP(client.convert_f_to_eps(0.5, 2))
    return Case(function=report, claim=claim, neighbours=local(integers(0, 7)))


def integer_laplace(scale: float) -> Case:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measurement = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)

    def count(data):
        return measurement(int(data.sum()))

    return Case(function=count, claim=PureDP(measurement.map(1)), neighbours=records(integers(0, 1)))


def bit_vector() -> Case:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.bitvector_domain(max_weight=8), dp.discrete_distance()
    measurement = dp.m.make_randomized_response_bitvec(*space, f=0.95)

    def report(bits):
        answer = measurement(np.packbits(bits).tobytes())
        return np.unpackbits(np.frombuffer(answer, np.uint8)).tolist()

    return Case(function=report, claim=PureDP(measurement.map(1)), neighbours=local((flags(),) * 8))


def clamped_mean() -> Case:
    from eeprivacy.operations import PrivateClampedMean

    mean = PrivateClampedMean(lower_bound=0.0, upper_bound=1.0)

    def release(data):
        return mean.execute(values=data, epsilon=1.0)

    return Case(function=release, claim=PureDP(1.0), neighbours=records(numbers(0, 1, clipped=True)))


def vector_clamped_mean() -> Case:
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    mean = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=3, N=10)

    def release(data):
        return mean.execute(vectors=data, epsilon=1.0, delta=0.0).tolist()

    domain = (numbers(0, 1),) * 3
    return Case(function=release, claim=PureDP(1.0), neighbours=records(domain, adjacency="replace-one", size=10))


def presto_gaussian() -> Case:
    from ornl_presto.privacy_mechanisms import applyDPGaussian

    def release(data):
        return applyDPGaussian(data.tolist(), sensitivity=10.0, delta=1e-5, epsilon=1.0)

    neighbours = records(numbers(0, 10), adjacency="replace-one", size=(1, 10))
    return Case(function=release, claim=ApproxDP(1.0, 1e-5), neighbours=neighbours)


def independent_mode() -> Case:
    from DataSynthesizer.DataDescriber import DataDescriber

    entropy = np.random.default_rng()

    def release(data):
        """Describe the dataset with ε = 1: the ranges and the noisy distributions of its columns."""
        warnings.simplefilter("ignore")
        describer = DataDescriber()
        file = io.StringIO(data.to_csv(index=False))
        seed = int(entropy.integers(2**32))  # by default it is 0, and all noise the same
        describer.describe_dataset_in_independent_attribute_mode(file, epsilon=1.0, seed=seed)
        columns = describer.data_description["attribute_description"].values()
        return [[column["min"], column["max"], *column["distribution_probabilities"]] for column in columns]

    domain = {"age": integers(0, 120), "income": numbers(0, 1000)}
    return Case(function=release, claim=PureDP(1.0), neighbours=records(domain, size=(2, 1000), form="dataframe"))


def local(domain: Any) -> Relation:
    """The local model: the mechanism gets one person's record."""
    return records(domain, adjacency="replace-one", size=1, form="record")


BUGS = {
    "linear_regression_0_5": Bug(
        requirement="diffprivlib==0.6.6",
        fault="the sensitivity of ΣX² is that of the lower bound: no noise at all",
        make=lambda: linear_regression(0.0, 5.0),
    ),
    "linear_regression_-0.1_1": Bug(
        requirement="diffprivlib==0.6.6",
        fault="the sensitivity of ΣX² is that of the lower bound: 0.01 for 1",
        make=lambda: linear_regression(-0.1, 1.0),
    ),
    "logistic_regression_100": Bug(
        requirement="diffprivlib==0.6.6",
        fault="the curvature of the loss grows with the square of data_norm, the noise with data_norm",
        make=logistic_regression,
    ),
    "unary_encoding": Bug(
        requirement="pure-ldp==1.1.2", fault="a person's own bit gets two chances to be 1", make=unary_encoding
    ),
    "rappor": Bug(requirement="pure-ldp==1.2.0", fault="bits of the filter are never turned to 0", make=rappor),
    "integer_laplace_5": Bug(
        requirement="opendp==0.14.1", fault="the noise is not geometric", make=lambda: integer_laplace(5.0)
    ),
    "integer_laplace_10": Bug(
        requirement="opendp==0.14.1", fault="the noise is not geometric", make=lambda: integer_laplace(10.0)
    ),
    "bit_vector": Bug(
        requirement="opendp==0.14.1", fault="the first bit of each answer is the true one", make=bit_vector
    ),
    "clamped_mean": Bug(requirement="eeprivacy==0.0.5", fault="values are not clamped", make=clamped_mean),
    "vector_clamped_mean": Bug(
        requirement="eeprivacy==0.0.5", fault="one noise for all coordinates", make=vector_clamped_mean
    ),
    "presto_gaussian": Bug(
        requirement="ornl-presto==0.1.29",
        fault="σ = √(Δ ln(1.25/δ))/ε: the root of the sensitivity, and no factor 2",
        make=presto_gaussian,
    ),
    "independent_mode": Bug(
        requirement="DataSynthesizer==0.1.13", fault="least and greatest values are exact", make=independent_mode
    ),
}


def run(name: str, seed: int | None, max_time: float) -> None:
    """Check one and print a line of it."""
    bug = BUGS[name]
    missing = bug.missing()
    if missing:
        print(f"{name:26} skipped: {missing}")
        return
    case = bug.make()
    started = time.perf_counter()
    try:
        verdict = check(case.function, claim=case.claim, neighbours=case.neighbours, max_time=max_time, seed=seed)
    except DPWitnessError as error:
        print(f"{name:26} error after {time.perf_counter() - started:.1f} s: {type(error).__name__}: {error}")
        return
    seconds = time.perf_counter() - started
    if isinstance(verdict, Violation):
        found = f"REFUTED, ε ≥ {verdict.epsilon_lower_bound:.3g}, on {verdict.witness.pair!s:.150}"
    else:
        found = "not refuted"
    print(f"{name:26} {seconds:5.1f} s, claim {case.claim}: {found}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BUGS)} (default: all)")
    parser.add_argument("--list", action="store_true", help="what is wrong with each")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--max-time", type=float, default=60.0)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BUGS))
    if unknown:
        parser.error(f"no bug is called {', '.join(unknown)}")
    for name in arguments.names or BUGS:
        if arguments.list:
            print(f"{name:26} {BUGS[name].requirement}: {BUGS[name].fault}")
        else:
            run(name, arguments.seed, arguments.max_time)


if __name__ == "__main__":
    main()
