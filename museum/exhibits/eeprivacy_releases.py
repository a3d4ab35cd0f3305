"""Exhibits of eeprivacy."""

from functools import partial


def eeprivacy_clamped_mean(values):
    """The mean of numbers, clamped to 0 and 1."""
    from eeprivacy.operations import PrivateClampedMean

    return float(PrivateClampedMean(lower_bound=0.0, upper_bound=1.0).execute(values=values, epsilon=1.0))


def eeprivacy_histogram(values):
    """The noisy counts of the numbers below 5 and of the numbers from 5 on."""
    from eeprivacy.operations import PrivateHistogram

    return PrivateHistogram(bins=[0.0, 5.0, 10.0]).execute(values=values, epsilon=1.0).tolist()


def eeprivacy_quantile(values):
    """The median of numbers between 0 and 10, out of two options."""
    from eeprivacy.operations import PrivateQuantile

    return PrivateQuantile(options=[3, 7]).execute(values=values, epsilon=1.0, quantile=0.5)


def eeprivacy_vector_mean(vectors):
    """The mean of ten vectors of three numbers between 0 and 1."""
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    operation = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=3, N=10)
    return operation.execute(vectors=vectors, epsilon=1.0, delta=0.0).tolist()


def exhibits(dpw, Exhibit):
    exhibit = partial(Exhibit, release="eeprivacy==0.0.5")
    yield exhibit(
        function=eeprivacy_clamped_mean,
        promised="Compute a mean, bounding sensitivity with clamping. Employs the Laplace Mechanism.",
        source="docstring of PrivateClampedMean",
        fault="The sum is that of the values as they are; only the result is clamped.",
        neighbours=dpw.records(dpw.numbers(0, 1, clipped=True)),
    )
    yield exhibit(
        function=eeprivacy_histogram,
        promised="max_individual_contribution: Maximum count any individual in the dataset could contribute",
        source="docstring of PrivateHistogram; no adjacency is named",
        fault="A record that is replaced changes two counts by one, and the scale is 1/ε.",
        neighbours=dpw.records(dpw.numbers(0, 10), adjacency="replace-one", size=(1, 100)),
        kind="depends on the adjacency",
    )
    yield exhibit(
        function=eeprivacy_quantile,
        promised="Implemented using Report Noisy Max (Claim 3.9) of [Dwork and Roth].",
        source="docstring of PrivateQuantile.execute",
        fault="The scale is Δ/ε, which Claim 3.9 gives for counts; of these scores some rise and others fall, which needs 2Δ/ε.",
        neighbours=dpw.records(dpw.numbers(0, 10), adjacency="replace-one", size=(1, 20)),
        kind="depends on the adjacency",
    )
    yield exhibit(
        function=eeprivacy_vector_mean,
        promised="With the Laplace Mechanism, noise is scaled to the L1 norm of the dataset.",
        source="docstring of PrivateVectorClampedMeanLaplace",
        fault="One draw of noise is added to all coordinates, so their differences have none.",
        neighbours=dpw.records((dpw.numbers(0, 1),) * 3, adjacency="replace-one", size=10),
    )
