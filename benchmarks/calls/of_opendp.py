"""OpenDP: measurements, and transformations before them."""

import math
from functools import partial
from typing import Any

from calls.call import Call
from dpwitness import categories, numbers, records
from dpwitness.neighbours import Relation

CASES = ("a", "b", "c")
#: For nothing but counts of records.
TEN = records(numbers(0, 10))


def opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def real(size: int | None = None, **domain: Any) -> Any:
    dp = opendp()
    return dp.vector_domain(dp.atom_domain(**domain), size=size), dp.symmetric_distance()


def laplace(kind: type) -> Any:
    dp = opendp()
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.m.make_laplace(domain, dp.absolute_distance(T=kind), scale=1.0)


def laplace_of_vectors(kind: type) -> Any:
    dp = opendp()
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.m.make_laplace(dp.vector_domain(domain), dp.l1_distance(T=kind), scale=1.0)


def gaussian(kind: type, delta: float) -> Any:
    """Standard normal noise, with its ε at one δ."""
    dp = opendp()
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=kind)
    zcdp = dp.m.make_gaussian(domain, dp.absolute_distance(T=kind), scale=1.0)
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(zcdp), delta)


def geometric() -> Any:
    dp = opendp()
    return dp.m.make_geometric(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0, bounds=(0, 10))


def response_of_flags() -> Any:
    return opendp().m.make_randomized_response_bool(prob=0.75)


def response_of_texts() -> Any:
    return opendp().m.make_randomized_response(list(CASES), prob=0.6)


def response_of_bits() -> Any:
    dp = opendp()
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5)


def selection(name: str, **more: Any) -> Any:
    """Noise of the scale 2 on scores."""
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    return getattr(dp.m, name)(domain, dp.linf_distance(T=float), dp.max_divergence(), scale=2.0, **more)


def canonical() -> Any:
    dp = opendp()
    return dp.m.make_canonical_noise(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0, (1.0, 0.01)
    )


def quantile() -> Any:
    dp = opendp()
    candidates = [0.0, 2.5, 5.0, 7.5, 10.0]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=1.0)


def total() -> Any:
    dp = opendp()
    return real(bounds=(0.0, 10.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)


def count() -> Any:
    dp = opendp()
    return real(T=float, nan=False) >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)


def counts_of_texts() -> Any:
    dp = opendp()
    counts = dp.t.then_count_by_categories(categories=list(CASES))
    return real(T=str) >> counts >> dp.m.then_laplace(scale=1.0)


def counts_by_text() -> Any:
    """Of whatever texts there are: those with large counts are released with their names."""
    dp = opendp()
    return real(T=str) >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)


def call(name: str, make: Any, neighbours: Relation | list[Any], **claimed: Any) -> Call:
    return Call(name=f"opendp {name}", make=make, neighbours=neighbours, **claimed)


UNIT = [(0.0, 1.0)]
CALLS = (
    call("make_laplace f64", partial(laplace, float), UNIT),
    call("make_laplace i32", partial(laplace, int), [(0, 1)]),
    call("make_laplace Vec<f64>", partial(laplace_of_vectors, float), [([0.0, 5.0], [1.0, 5.0])]),
    call("make_laplace Vec<i32>", partial(laplace_of_vectors, int), [([0, 5], [1, 5])]),
    # OpenDP's conversion from ρ = 1/2 holds for whatever is ρ-zCDP, so the Gaussian does not reach it.
    call("make_gaussian f64", partial(gaussian, float, 0.05), UNIT, epsilon=2.0426, delta=0.05, tight=False),
    call("make_gaussian i32", partial(gaussian, int, 0.05), [(0, 1)], epsilon=2.0426, delta=0.05, tight=False),
    call("make_canonical_noise", canonical, UNIT, delta=0.01),
    call("make_geometric", geometric, [(0, 1)]),
    call("make_randomized_response_bool", response_of_flags, [(True, False)], epsilon=math.log(3)),
    call("make_randomized_response", response_of_texts, [("a", "b")], epsilon=math.log(3)),
    call("make_randomized_response_bitvec", response_of_bits, [(b"\x01", b"\x02")], epsilon=2 * math.log(3)),
    call("make_noisy_max", partial(selection, "make_noisy_max"), [([1.0] + 9 * [0.0], [0.0] + 9 * [1.0])]),
    call(
        "make_noisy_top_k",
        partial(selection, "make_noisy_top_k", k=2),
        [(3 * [1.0] + [0.0], [0.0] + 3 * [1.0])],
        epsilon=2.0,
        tight=False,
    ),
    call("make_private_quantile", quantile, TEN, tight=False),
    call("sum", total, TEN),
    call("count", count, TEN),
    call("count_by_categories", counts_of_texts, records(categories(*CASES))),
    # δ is P[noise ≥ 3]: of a count of 1 the threshold itself is released. The library's own is refuted: `known_bugs`.
    call("count_by, threshold", counts_by_text, records(categories(*CASES)), delta=0.0364),
)
