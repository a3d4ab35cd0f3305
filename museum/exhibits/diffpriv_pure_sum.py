"""diffpriv-pure 0.1.0, private_sum: the width of the bounds as sensitivity, where a record may be added."""

from typing import Any


def total(values: Any) -> float:
    """The sum of numbers between 10 and 20."""
    from diffpriv_pure import private_sum

    return private_sum(values, (10.0, 20.0), epsilon=1.0)


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="diffpriv-pure==0.1.0",
        function=total,
        promised="Pure ε-DP: Laplace noise for a sum query",
        source="README, quick start; no adjacency is named",
        fault="The sensitivity is high − low; a record that is added moves the sum by as much as high.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(dpw.numbers(10, 20), adjacency="add-remove", size=(1, 100), form="list"),
        kind="depends on the adjacency",
    )
