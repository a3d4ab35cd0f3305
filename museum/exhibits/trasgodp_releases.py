"""Exhibits of trasgodp."""

from functools import partial


def trasgodp_exponential(colours):
    """The answers of some people, by the exponential mechanism."""
    from trasgodp.categorical import dp_exponential_array

    return dp_exponential_array(list(colours), epsilon=1.0).tolist()


def trasgodp_kary(colours):
    """The answers of some people, by k-ary randomised response."""
    from trasgodp.categorical import dp_randomized_response_kary_array

    return dp_randomized_response_kary_array(list(colours), epsilon=1.0).tolist()


def exhibits(dpw, Exhibit):
    exhibit = partial(
        Exhibit,
        release="trasgodp==2.1.0",
        neighbours=dpw.records(
            dpw.categories("red", "green", "blue", "black"), adjacency="replace-one", size=4, form="list"
        ),
        promised="The mechanisms are implemented for being used under a local approach, adding noise directly to the raw data.",
        source="README",
        fault="The categories of the answers are those in the data: an answer that nobody else has cannot come from anybody else.",
    )
    yield exhibit(function=trasgodp_exponential)
    yield exhibit(
        function=trasgodp_kary,
        options={"errors": "outcome"},
    )
