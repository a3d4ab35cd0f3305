"""trasgodp 2.1.0, dp_randomized_response_kary_array: the categories are those of the data."""

from typing import Any


def answers(colours: Any) -> list[str]:
    """The answers of some people, by k-ary randomised response."""
    from trasgodp.categorical import dp_randomized_response_kary_array

    return dp_randomized_response_kary_array(list(colours), epsilon=1.0).tolist()


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="trasgodp==2.1.0",
        function=answers,
        promised="The mechanisms are implemented for being used under a local approach, adding noise directly to the raw data.",
        source="README",
        fault="The categories of the answers are those in the data: an answer that nobody else has cannot come from anybody else.",
        claim=dpw.PureDP(1.0),
        neighbours=dpw.records(
            dpw.categories("red", "green", "blue", "black"), adjacency="replace-one", size=4, form="list"
        ),
        kind="undisputed",
        options={"errors": "outcome"},
    )
