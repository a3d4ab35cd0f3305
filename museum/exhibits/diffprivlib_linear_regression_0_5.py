"""diffprivlib 0.6.6, LinearRegression with features from 0 to 5: the sensitivity of ΣX²."""

from typing import Any


def slope(data: Any) -> float:
    """The slope of a line through the origin."""
    import warnings

    from diffprivlib.models import LinearRegression

    warnings.simplefilter("ignore")  # of the optimiser, on little data
    model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 5.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(*data).coef_[0])


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.6.6",
        function=slope,
        promised="Ordinary least squares Linear Regression with differential privacy.",
        source="docstring of LinearRegression",
        fault="The sensitivity of ΣX² is taken from the lower bound twice: with bounds from 0 no noise is added to it.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(((dpw.numbers(0.0, 5.0),), dpw.numbers(0, 1)), size=(1, 1000)),
        kind="undisputed",
    )
