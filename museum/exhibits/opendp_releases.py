"""Exhibits of opendp."""

from functools import cache, partial


def prelude():
    """The names of a release from 0.7 on, with the measurements that nobody has checked."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@cache
def bit_vector_measurement():
    """Randomised response for eight bits with f = 0.95; its `map(1)` is 1.6013."""
    dp = prelude()
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=8), dp.discrete_distance(), f=0.95)


def opendp_bit_vector(bits):
    """The answer to eight bits."""
    return [
        byte >> k & 1
        for byte in bit_vector_measurement()(bytes([sum(bit << k for k, bit in enumerate(bits))]))
        for k in range(8)
    ]


@cache
def canonical_noise_measurement():
    """Canonical noise for a number that changes by at most 1; its `map(1.0)` is (1.0, 1e-6)."""
    dp = prelude()
    number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return dp.m.make_canonical_noise(*number, d_in=1.0, d_out=(1.0, 1e-6))


def opendp_canonical_noise(values):
    """One number with noise."""
    return float(canonical_noise_measurement()(float(values[0])))


@cache
def integer_laplace_5_measurement():
    """Noise of scale 5 for an integer; its `map(1)` is 0.2."""
    dp = prelude()
    return dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=5.0)


def opendp_integer_laplace_5(value):
    """A number with noise."""
    return int(integer_laplace_5_measurement()(value))


@cache
def laplace_threshold_measurement():
    """Noisy counts by text, released from a threshold on; its `map(1)` is (1.0, 0.0134)."""
    dp = prelude()
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    return texts >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)


def opendp_laplace_threshold(texts):
    """The noisy counts of the frequent texts."""
    return laplace_threshold_measurement()(list(texts))


@cache
def noisy_max_measurement():
    """The place of the largest noisy score; its `map(1)` is 0.5."""
    dp = prelude()
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=1.0)


def opendp_noisy_max(values):
    """The place of the largest of three scores, each of which moves by at most one."""
    return noisy_max_measurement()([int(value) for value in values])


@cache
def polars_cast_measurement():
    """The number of whole numbers among ten texts; its `map` for one replaced text is 0.0."""
    import polars as pl

    dp = prelude()
    texts = dp.lazyframe_domain([dp.series_domain("answer", dp.atom_domain(T=str))])
    ten = dp.with_margin(texts, dp.polars.Margin(max_length=10, invariant="lengths"))
    numbers = pl.col("answer").cast(pl.Int64, strict=False).count()
    plan = pl.LazyFrame(schema={"answer": pl.String}).select(numbers.dp.noise())
    distances = dp.frame_distance(dp.symmetric_distance()), dp.max_divergence()
    return dp.m.make_private_lazyframe(ten, *distances, plan, global_scale=1.0)


def opendp_polars_cast(frame):
    """The number of texts that are whole numbers; `polars_cast_measurement().map([dp.polars.Bound(per_group=2)])` is 0.0."""
    return int(polars_cast_measurement()(frame).collect().item())


@cache
def polars_codes_measurement():
    """The sum of the codes 0 to 2 of up to 20 ages, with the noise that `map` says is enough for ε = 1."""
    import polars as pl

    dp = prelude()
    numbers = dp.lazyframe_domain([dp.series_domain("age", dp.atom_domain(T=float, nan=False))])
    twenty = dp.with_margin(numbers, dp.polars.Margin(max_length=20))
    codes = pl.col("age").cut([18.0, 65.0]).to_physical().cast(pl.Int32, strict=False).fill_null(0)
    plan = pl.LazyFrame(schema={"age": pl.Float64}).select(codes.dp.sum((0, 2), scale=2.0))
    return dp.m.make_private_lazyframe(twenty, dp.symmetric_distance(), dp.max_divergence(), plan)


def opendp_polars_codes(frame):
    """The noisy sum of the intervals' codes; `polars_codes_measurement().map(1)` is 1.0."""
    return int(polars_codes_measurement()(frame).collect().item())


@cache
def polars_cut_measurement():
    """The number of values in an interval among ten; its `map` for one replaced value is 0.0."""
    import polars as pl

    dp = prelude()
    numbers = dp.lazyframe_domain([dp.series_domain("age", dp.atom_domain(T=float))])  # with NaN
    ten = dp.with_margin(numbers, dp.polars.Margin(max_length=10, invariant="lengths"))
    intervals = pl.col("age").cut([18.0, 65.0]).count()
    plan = pl.LazyFrame(schema={"age": pl.Float64}).select(intervals.dp.noise())
    distances = dp.frame_distance(dp.symmetric_distance()), dp.max_divergence()
    return dp.m.make_private_lazyframe(ten, *distances, plan, global_scale=1.0)


def opendp_polars_cut(frame):
    """The number of values in an interval; `polars_cut_measurement().map([dp.polars.Bound(per_group=2)])` is 0.0."""
    return int(polars_cut_measurement()(frame).collect().item())


@cache
def randomized_response_measurement():
    """Randomised response for one flag; its `check(1, 1.0987)` is true, and ln(0.75/0.25) is 1.0986."""
    from opendp.meas import make_randomized_response_bool
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_randomized_response_bool(prob=0.75)


def opendp_randomized_response(flag):
    """The answer to a flag."""
    return bool(randomized_response_measurement()(bool(flag)))


@cache
def stability_measurement():
    """The measurement that releases each text's noisy count among ten records if the count is at least 4."""
    from opendp.meas import make_base_stability
    from opendp.mod import enable_features
    from opendp.trans import make_count_by
    from opendp.typing import L1Distance

    enable_features("contrib", "floating-point")
    count = make_count_by(size=10, MO=L1Distance[float], TIA=str)
    return count >> make_base_stability(size=10, scale=1.0, threshold=4.0, MI=L1Distance[float], TIK=str)


def opendp_stability(texts):
    """The noisy counts of the frequent texts; `stability_measurement().check(2, (2.0, 0.001))` is true."""
    return stability_measurement()(list(texts))


def exhibits(dpw, Exhibit):
    import polars as pl

    exhibit = partial(Exhibit, release="opendp==0.16.0", source="the privacy map of the measurement")
    ages = [3.0, 17.0, 18.0, 30.0, 42.0, 50.0, 65.0, 66.0, 80.0, 100.0]
    nan_ages = [float("nan"), 0.0, 17.0, 18.0, 30.0, 42.0, 50.0, 65.0, 80.0, 100.0]  # NaN is NaN here, not null
    yield exhibit(
        function=opendp_bit_vector,
        release="opendp==0.14.1",
        promised="make_randomized_response_bitvec(…, f=0.95).map(1) is 1.6013",
        fault="One bit of each answer is the true one.",
        claim=dpw.PureDP(1.6013353369117223),
        neighbours=dpw.records((dpw.flags(),) * 8, adjacency="replace-one", size=1, form="record"),
        fixed="opendp==0.16.0",
    )
    yield exhibit(
        function=opendp_canonical_noise,
        promised="make_canonical_noise(…, d_in=1.0, d_out=(1.0, 1e-6)).map(1.0) is (1.0, 1e-6)",
        fault="A number with noise of the Tulap distribution.",
        claim=dpw.ApproxDP(1.0, 1e-6),
        neighbours=dpw.queries(1),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=opendp_integer_laplace_5,
        release="opendp==0.14.1",
        promised="make_laplace(…, scale=5.0).map(1) is 0.2",
        source="the privacy map of the measurement; make_laplace: “Make a Measurement that adds noise from the Laplace(`scale`) distribution to the input.”",
        fault="The sampler does not draw from the geometric distribution at this scale.",
        claim=dpw.PureDP(0.2),
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=1, form="record"),
        fixed="opendp==0.14.2",
    )
    yield exhibit(
        function=opendp_laplace_threshold,
        promised="map(1) is (1.0, 0.0134)",
        fault="A count that is exactly the threshold is released, which δ does not count.",
        claim=dpw.ApproxDP(1.0, 0.01338980493269848),
        neighbours=dpw.records(dpw.categories("a", "b", "c")),
    )
    yield exhibit(
        function=opendp_noisy_max,
        promised="make_noisy_max(…, zero_concentrated_divergence(), scale=1.0).map(1) is 0.5",
        fault="The largest of three noisy scores.",
        claim=dpw.ZCDP(0.5),
        neighbours=dpw.queries(3),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=opendp_polars_cast,
        promised="make_private_lazyframe(…).map([Bound(per_group=2)]) is 0.0",
        source="the privacy map of the measurement, for one of ten records replaced; opendp/opendp#2938",
        fault="A text that is no number becomes null and is not counted; the count is taken for the length and gets no noise.",
        claim=dpw.PureDP(0.0),
        neighbours=dpw.records(
            {"answer": dpw.categories("1", "none")}, adjacency="replace-one", size=10, form="polars-lazy"
        ),
    )
    yield exhibit(
        function=opendp_polars_codes,
        promised="make_private_lazyframe(…).map(1) is 1.0",
        source="the privacy map of the measurement, for one record added or removed",
        fault="Polars numbers intervals in the order in which they first appear: one record may move the codes of all others.",
        neighbours=dpw.records(base=pl.LazyFrame({"age": ages}), adjacency="add-remove", size=20),
    )
    yield exhibit(
        function=opendp_polars_cut,
        promised="make_private_lazyframe(…).map([Bound(per_group=2)]) is 0.0",
        source="the privacy map of the measurement, for one of ten records replaced; opendp/opendp#2939",
        fault="NaN becomes null and is not counted; the count is taken for the length and gets no noise.",
        claim=dpw.PureDP(0.0),
        neighbours=dpw.records(base=pl.LazyFrame({"age": nan_ages}), adjacency="replace-one", size=10),
    )
    yield exhibit(
        function=opendp_randomized_response,
        release="opendp==0.4.0",
        promised="make_randomized_response_bool(prob=0.75).check(1, 1.0987) is true",
        source="the privacy relation of the measurement; opendp/opendp#480",
        fault="In one of four runs the answer is drawn anew, True with probability 0.75, and may be the true one.",
        claim=dpw.PureDP(1.0987),
        neighbours=dpw.records(dpw.flags(), adjacency="replace-one", size=1, form="record"),
        fixed="opendp==0.5.0",
        max_time=30.0,
    )
    yield exhibit(
        function=opendp_stability,
        release="opendp==0.3.0",
        promised="check(2, (2.0, 0.001)) is true",
        source="the privacy relation of the measurement, for one of ten records replaced",
        fault="A text that occurs once comes out with probability 0.025, and δ may be as small as one likes.",
        claim=dpw.ApproxDP(2.0, 0.001),
        neighbours=dpw.records(dpw.categories("a", "b", "c"), adjacency="replace-one", size=10),
    )
