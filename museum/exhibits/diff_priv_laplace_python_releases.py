"""Exhibits of diff-priv-laplace-python."""


def statistic(name):
    """The function of an exhibit: a statistic of ages, for which no bounds are given."""

    def released(ages):
        from diffpriv_laplace import DiffPrivStatistics

        return float(getattr(DiffPrivStatistics, name)(ages, epsilon=1.0))

    released.__name__ = released.__qualname__ = f"diff_priv_laplace_{name}"
    return released


diff_priv_laplace_max = statistic("max")
diff_priv_laplace_mean = statistic("mean")
diff_priv_laplace_median = statistic("median")
diff_priv_laplace_min = statistic("min")
diff_priv_laplace_sum = statistic("sum")
diff_priv_laplace_variance = statistic("variance")


def exhibits(dpw, Exhibit):
    fixed = "The sensitivity is 1 for all data."
    from_data = "The sensitivity is computed from the least and the greatest value in the data."
    for function, fault in (
        (diff_priv_laplace_max, fixed),
        (diff_priv_laplace_mean, from_data),
        (diff_priv_laplace_median, fixed),
        (diff_priv_laplace_min, fixed),
        (diff_priv_laplace_sum, from_data),
        (diff_priv_laplace_variance, from_data),
    ):
        name = function.__name__.rpartition("_")[2]
        yield Exhibit(
            release="diff-priv-laplace-python==1.0.5",
            function=function,
            promised=f"Performs the {name} operation and anonymizes the value(s) using the provided privacy budget.",
            source=f"docstring of DiffPrivStatistics.{name}, which takes no bounds",
            fault=fault,
            neighbours=dpw.records(dpw.integers(0, 100), size=(1, 20)),
        )
