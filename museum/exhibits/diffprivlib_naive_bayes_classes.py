"""diffprivlib 0.6.6, GaussianNB: the classes are those of the data."""

from typing import Any


def classes(data: Any) -> list[float]:
    """The classes of a fitted model."""
    import warnings

    from diffprivlib.models import GaussianNB

    warnings.simplefilter("ignore")
    model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(*data)
    return [float(label) for label in model.classes_]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffprivlib==0.6.6",
        function=classes,
        promised="Gaussian Naive Bayes (GaussianNB) with differential privacy",
        source="docstring of GaussianNB",
        fault="The classes of the model are the labels in the data; a label of one person tells that person.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(((dpw.numbers(0, 1),), dpw.integers(0, 2)), size=(1, 20)),
        kind="undisputed",
    )
