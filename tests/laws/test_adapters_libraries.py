"""Mechanisms of other libraries, taken as they are: claims at which each stands, and a bug that is there today."""

import warnings
from functools import partial
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpwitness import NotRefuted, Violation, categories, check, integers, numbers, pairs, records
from dpwitness.api.floating_point import drawn_for_bits, leak_of_bits
from dpwitness.claims import ZCDP, ApproxDP
from dpwitness.errors import InvalidClaim, MechanismRaised
from dpwitness.mechanisms.libraries import library_of
from dpwitness.mechanisms.libraries.opendp import in_carrier
from dpwitness.problem import Effort, Statement, prepare
from dpwitness.sweeps.describers import Attempt, describer_of
from dpwitness.sweeps.describers.opendp import make_measurement
from dpwitness.sweeps.worker import try_attempt
from running import scaled

pytestmark = pytest.mark.library

LIMITS = {"runs": 400_000, "max_time": 20.0, "alpha": 1e-6, "seed": 7}


def installed(module):
    """A module of a library, where it is installed."""
    return pytest.importorskip(
        module, reason=f"{module.partition('.')[0]} is in the extra [libraries]", exc_type=ImportError
    )


def diffprivlib(name, **settings):
    """An object of diffprivlib: a mechanism of ε = 1, or what `settings` say."""
    settings = settings or {"sensitivity": 1}
    return getattr(installed("diffprivlib.mechanisms"), name)(epsilon=1.0, **settings)


def opendp():
    dp = installed("opendp.prelude")
    dp.enable_features("contrib")
    return dp


def scalar():
    """The space of single numbers."""
    dp = opendp()
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def opendp_geometric():
    dp = opendp()
    return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1.0)


LIBRARIES = {
    "diffprivlib Laplace": (lambda: diffprivlib("Laplace"), pairs((0.0, 1.0))),
    "diffprivlib Geometric": (lambda: diffprivlib("Geometric"), pairs((0, 1))),
    "opendp Laplace": (lambda: opendp().m.make_laplace(*scalar(), scale=1.0), pairs((0.0, 1.0))),
    "opendp geometric": (opendp_geometric, pairs(([0, 5], [1, 5]))),
    "python-dp Laplace": (
        lambda: installed("pydp.algorithms.numerical_mechanisms").LaplaceMechanism(1.0, 1.0), pairs((0.0, 1.0))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_claim_is_read_from_the_object_and_it_is_not_refuted_at_it(name):
    make, neighbours = LIBRARIES[name]
    thing = make()
    assert library_of(thing).claim(thing, 1) == ApproxDP(epsilon=1.0)
    verdict = check(thing, epsilon=1.0, neighbours=neighbours, **{**LIMITS, "runs": 5_000, "search_runs": 2_000})
    assert isinstance(verdict, NotRefuted)
    assert not verdict.reproducible


#: Samplers that were written against attacks on the last bits.
EXACT = ("opendp Laplace", "opendp geometric", "python-dp Laplace")


def accused_by_bits(name, times):
    """How often bits accuse it at its claim, by fresh runs each time: the libraries draw their own random numbers."""
    make, neighbours = LIBRARIES[name]
    effort = Effort(runs=2_000, workers=1)
    problem, runner = prepare(Statement(mechanism=make(), epsilon=1.0, neighbours=neighbours), effort)
    drawn = (drawn_for_bits(problem, runner) for _ in range(times))
    return sum(leak_of_bits(problem, runner, effort, outcomes, effort.runs) is not None for outcomes in drawn)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("times", [1, pytest.param(scaled(200), marks=pytest.mark.campaign)])
def test_the_last_bits_of_exact_samplers_show_nothing(name, times):
    assert accused_by_bits(name, times) == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_at_a_claim_of_seven_tenths_it_is_refuted(name):
    make, neighbours = LIBRARIES[name]
    limits = {**LIMITS, "max_time": 300.0}  # the runs are the limit, however busy the machine is
    verdict = check(make(), epsilon=0.7, neighbours=neighbours, **limits, search_runs=3_000)
    assert isinstance(verdict, Violation)
    assert 0.7 <= verdict.epsilon_lower_bound <= 1.0  # refuted: at least the claim, exactly that at times


@pytest.mark.parametrize("name", ["Gaussian", "GaussianAnalytic", "GaussianDiscrete"])
def test_the_claims_of_diffprivlibs_gaussians_have_their_delta(name):
    thing = diffprivlib(name, delta=0.01, sensitivity=1)
    assert library_of(thing).claim(thing) == ApproxDP(1.0, 0.01)


#: Gaussian noise with no more of it than the claim asks for: the claim, seven tenths of it, inputs.
GAUSSIANS = {
    "diffprivlib GaussianAnalytic": (
        lambda: diffprivlib("GaussianAnalytic", delta=0.01, sensitivity=1), ApproxDP(1.0, 0.01), ApproxDP(0.7, 0.01)
    ),
    "opendp Gaussian": (lambda: opendp().m.make_gaussian(*scalar(), scale=1.0), ZCDP(0.5), ZCDP(0.35)),
}  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_noise_is_refuted_at_seven_tenths_of_its_claim_and_not_at_it(name):
    make, claim, less = GAUSSIANS[name]
    # Of 60,000 runs, one check in twelve needed all or more: the libraries draw their own random numbers.
    limits = {**LIMITS, "runs": 240_000, "max_time": 300.0, "neighbours": pairs((0.0, 1.0))}
    kept = check(make(), claim=claim, **{**limits, "runs": 8_000})
    assert isinstance(kept, NotRefuted)
    broken = check(make(), claim=less, **limits)
    assert isinstance(broken, Violation)
    assert less.parameter <= broken.lower_bound < claim.parameter


def test_diffprivlib_gives_its_neighbours():
    thing = diffprivlib("Geometric")
    (pair,) = library_of(thing).neighbours(thing).candidates()
    assert (pair.data.item(), pair.neighbour.item()) == (0, 1)
    assert pair.data.dtype == np.int64


def test_opendp_losses_of_another_kind_are_claims_too():
    dp = opendp()
    gaussian = dp.m.make_gaussian(*scalar(), scale=1.0)
    assert library_of(gaussian).claim(gaussian, 1.0) == ZCDP(0.5)
    dp.enable_features("honest-but-curious")
    profile = library_of(gaussian).claim(dp.c.make_zCDP_to_approxDP(gaussian), 1.0)
    # What OpenDP proves of every 0.5-zCDP mechanism lies above the curve of this one (Balle & Wang 2018).
    for epsilon, delta in profile.points:
        least = stats.norm.cdf(0.5 - epsilon) - np.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon)
        assert least - 1e-12 <= delta <= 1
    with pytest.raises(ValueError, match="give d_in=…, or epsilon=…"):
        library_of(gaussian).claim(gaussian)


def test_a_distance_that_no_two_datasets_have_is_refused():
    """The map is a rounding error there, as a claim it would refute a correct measurement."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=10)
    mean = (domain, dp.symmetric_distance()) >> dp.t.then_mean() >> dp.m.then_laplace(scale=1.0)
    with pytest.raises(InvalidClaim, match="where one record is replaced, give d_in=2"):
        check(mean, d_in=1, neighbours=records(numbers(0, 10), adjacency="replace-one", size=10))
    for size in (None, 5):  # the map of 1 is 2, and 0
        domain = dp.vector_domain(dp.atom_domain(bounds=(-1, 1)), size=size)
        total = (domain, dp.symmetric_distance()) >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
        for adjacency in ("replace-one", None):
            relation = records(integers(-1, 1), adjacency=adjacency, form="list", size=5 if adjacency else (4, 5))
            with pytest.raises(InvalidClaim, match="give d_in=2"):
                check(total, d_in=1, neighbours=relation)
    fixed_delta = SimpleNamespace(map=lambda d_in: (1e-14, 1e-6), output_measure="Approximate(MaxDivergence)")
    with pytest.raises(InvalidClaim, match="give d_in=2"):
        library_of(mean).claim(fixed_delta, 1)


def test_approximate_zcdp_of_opendp_is_a_claim_too():
    """Its δ is that of the threshold, where keys are unknown; at δ = 0 it is ZCDP."""
    dp = opendp()
    key, count = dp.atom_domain(T=str), dp.atom_domain(T=int)
    space = dp.map_domain(key, count), dp.l02inf_distance(dp.absolute_distance(T=int))
    made = dp.m.make_gaussian_threshold(*space, scale=1.0, threshold=3)
    rho, delta = made.map((1, 1, 1))
    profile = library_of(made).claim(made, (1, 1, 1))
    # The pairs of Bun & Steinke 2016 (Proposition 1.3), the other way round, but for those of the threshold's δ alone.
    points = [(epsilon, (claimed - delta) / (1 - delta)) for epsilon, claimed in profile.points]
    assert min(rest for _, rest in points) >= 0
    for epsilon, rest in points:
        if rest > 1e-9:
            assert epsilon == pytest.approx(rho + 2 * np.sqrt(rho * np.log(1 / rest)))


def opendp_plan(scale):
    """A plan on frames of Polars: how many people there are."""
    polars = pytest.importorskip("polars", reason="polars is in the extra [polars]")
    dp = opendp()
    domain = dp.lazyframe_domain(
        [dp.series_domain("age", dp.atom_domain(T=dp.i64)), dp.series_domain("city", dp.atom_domain(T=dp.String))]
    )
    domain = dp.with_margin(domain, dp.polars.Margin(max_length=1_000))
    people = polars.LazyFrame(schema={"age": polars.Int64, "city": polars.String})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of counts that will not be clamped at zero any more
        plan = people.select(dp.len(scale=scale))
    return dp.m.make_private_lazyframe(domain, dp.symmetric_distance(), dp.max_divergence(), plan)


PEOPLE = {"age": integers(0, 120), "city": categories("Basel", "Bern")}
FEW = {"runs": 100, "search_runs": 100, "alpha": 1e-6, "seed": 7, "workers": 1}


@pytest.mark.parametrize("form", ["polars", "polars-lazy"])
def test_a_plan_of_opendp_stands_at_its_claim_on_frames_of_polars(form):
    plan = opendp_plan(1.0)
    assert library_of(plan).claim(plan, 1) == ApproxDP(1.0)
    verdict = check(plan, d_in=1, neighbours=records(PEOPLE, form=form, size=(1, 2)), **FEW)
    assert isinstance(verdict, NotRefuted)
    assert verdict.claim == ApproxDP(1.0)


def test_a_plan_of_opendp_is_refuted_at_less():
    plan = opendp_plan(0.3)
    pair = next(iter(records(PEOPLE, form="polars-lazy", size=(4, 5)).candidates()))
    verdict = check(plan, claim=1.0, neighbours=[pair.sides], **FEW)
    assert isinstance(verdict, Violation)


def test_a_plan_of_opendp_takes_frames_of_polars_alone():
    with pytest.raises(MechanismRaised, match="form='polars-lazy'"):
        check(opendp_plan(1.0), d_in=1, neighbours=records(PEOPLE, form="pandas"), **FEW)


def linear_regression():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = installed("diffprivlib.models").LinearRegression
    return partial(kind, epsilon=1.0, bounds_y=(0, 1), fit_intercept=False)


def python_dp_sum():
    kind = installed("pydp.algorithms.laplacian").BoundedSum
    return kind(epsilon=1.0, delta=0.0, lower_bound=0, upper_bound=1, dtype="float")


def opendp_counts():
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return space >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)


def opendp_threshold():
    dp = opendp()
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    return dp.m.make_laplace_threshold(domain, dp.l01inf_distance(dp.absolute_distance(T=int)), scale=1.0, threshold=4)


def opendp_bits():
    dp = opendp()
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5)


X = np.linspace(0, 1, 8).reshape(-1, 1)

#: An object, neighbours, the distance between them where its claim is for one, and what it releases.
OBJECTS = {
    "python-dp sum": (python_dp_sum, pairs(([0.5, 0.0], [0.5, 1.0]), ([0.5], [0.5, 1.0])), None, None),
    "opendp randomised response of texts": (
        lambda: opendp().m.make_randomized_response(["a", "b", "c"], prob=0.6),
        pairs(("a", "b")),
        1,
        None,
    ),
    "opendp randomised response of bits": (opendp_bits, pairs((b"\x01", b"\x02")), 1.0, None),
    "opendp counts of texts": (opendp_counts, pairs((["a"] * 6, ["a"] * 7)), 1, None),
    "opendp threshold of a map": (opendp_threshold, pairs(({"a": 6}, {"a": 7})), (1, 1, 1), None),
    "diffprivlib selection": (
        lambda: diffprivlib("PermuteAndFlip", sensitivity=1, utility=[0.0, 0.0]),
        pairs(([1.0, 0.0], [0.0, 1.0])),
        None,
        None,
    ),
    "diffprivlib regression": (
        lambda: linear_regression()(bounds_X=(0, 1)),
        pairs(((X, X[:, 0]), (X, 1 - X[:, 0]))),
        None,
        "coef_",
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_over_datasets_run_as_they_are(name):
    """Refuted below the claim, and not at it."""
    make, neighbours, distance, outcome = OBJECTS[name]
    settings = {**LIMITS, "neighbours": neighbours, "outcome": outcome, "search_runs": 1_000, "workers": 1}
    settings["max_time"] = 600.0  # the runs are the limit, however busy the machine is
    thing = make()
    delta = library_of(thing).claim(thing, distance).delta
    low = check(thing, claim=ApproxDP(0.4, delta), **{**settings, "runs": 20_000})
    assert isinstance(low, Violation)
    if outcome is None:  # the regression's claim is for one record, not for all eight
        assert isinstance(check(thing, d_in=distance, **{**settings, "runs": 1_000}), NotRefuted)


def recipes_of(module, name):
    """What a sweep makes of a name of a library: its describer, the thing, and its recipes."""
    thing = getattr(installed(module), name)
    describer = describer_of(thing, f"{module}:{name}")[1]
    return describer, thing, describer.recipes(thing, f"{module}:{name}")


@pytest.mark.parametrize(
    "name",
    [
        "measurements.make_laplace",
        "measurements.make_laplace_threshold",
        "measurements.make_noisy_max",
        "transformations.make_mean",
    ],
)
def test_a_sweep_of_opendp_takes_inputs_of_the_domain(name):
    module, _, constructor = name.partition(".")
    describer, thing, recipes = recipes_of(f"opendp.{module}", constructor)
    assert recipes
    for recipe in recipes:
        assert not recipe.refused
        (attempt,) = describer.attempts(thing, recipe)
        domain = make_measurement(thing, recipe)[0].input_domain
        for pair in islice(attempt.relations[0].candidates(), 4):
            assert all(domain.member(in_carrier(side, str(domain.carrier_type))) for side in pair.sides)
        assert try_attempt(attempt) == ""


@pytest.mark.parametrize(
    ("name", "claim"),
    [("make_count_by", ApproxDP(1.0, 0.0134)), ("make_sum", ApproxDP(1.0)), ("make_b_ary_tree", ApproxDP(1.0))],
)
def test_a_sweep_of_opendp_adds_noise_of_the_scale_of_the_map(name, claim):
    describer, thing, recipes = recipes_of("opendp.transformations", name)
    (attempt,) = describer.attempts(thing, recipes[0])
    assert try_attempt(attempt) == ""
    assert attempt.claim.epsilon == pytest.approx(claim.epsilon)
    assert attempt.claim.delta == pytest.approx(claim.delta, rel=0.1)


def test_a_sweep_of_opendp_says_what_it_cannot_make():
    assert "function" in recipes_of("opendp.measurements", "make_user_measurement")[2][0].refused
    assert "post-processing" in recipes_of("opendp.transformations", "make_cdf")[2][0].refused
    assert "transformation to SymmetricDistance" in recipes_of("opendp.transformations", "make_cast")[2][0].refused


@pytest.mark.parametrize("name", ["Laplace", "Geometric", "LaplaceTruncated"])
def test_a_sweep_of_diffprivlib_runs_its_mechanisms(name):
    describer, thing, recipes = recipes_of("diffprivlib.mechanisms", name)
    for recipe in recipes:
        assert any(not try_attempt(attempt) for attempt in describer.attempts(thing, recipe))


def test_a_sweep_of_diffprivlib_gives_bounds_and_missing_values_where_they_are_ignored():
    describer, thing, recipes = recipes_of("diffprivlib.tools", "nanmean")
    attempt = next(describer.attempts(thing, recipes[0]))
    assert {one.adjacency for one in attempt.relations} == {"add-remove", "replace-one"}
    assert "missing=True" in str(attempt.relations[0])
    describer, thing, recipes = recipes_of("diffprivlib.tools", "mean")
    assert "missing" not in str(next(describer.attempts(thing, recipes[0])).relations[0])
    assert [recipe.settings["parameters"]["bounds"] for recipe in recipes] == [(0.0, 5.0), (-1.0, 4.0)]


def test_what_warns_that_it_leaks_is_not_run():
    tools = installed("diffprivlib.tools")
    unbounded = Attempt(
        mechanism=lambda data: tools.mean(data, epsilon=1.0),
        claim=ApproxDP(1.0),
        relations=(records(numbers(0, 1)),),
        adjacency="add-remove",
    )
    assert try_attempt(unbounded).startswith("it warns that it leaks: Bounds have not been specified")
