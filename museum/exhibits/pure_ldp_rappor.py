"""pure-ldp 1.2.0, RAPPORClient: a bit of the filter is never turned to 0."""

from functools import cache
from typing import Any


@cache
def client() -> Any:
    """A client, whose hash functions are public."""
    import random

    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    random.seed(7)
    server = RAPPORServer(f=0.5, m=16, k=2, d=8, num_of_cohorts=1)
    random.seed()
    return RAPPORClient(f=0.5, m=16, hash_funcs=server.get_hash_funcs(), num_of_cohorts=1, index_mapper=int)


def report(value: Any) -> list[int]:
    """The filter and the cohort that a person reports; convert_f_to_eps(0.5, 2) is 4.394."""
    bits, cohort = client().privatise(value)
    return [*bits, cohort]


def exhibit() -> Any:
    """Return the facts."""
    import dpwitness as dpw
    from museum.exhibit import Exhibit

    return Exhibit(
        release="pure-ldp==1.2.0",
        function=report,
        promised="convert_f_to_eps(f, k): the ε of the parameters f = 0.5 and k = 2 is 4.394",
        source="RAPPORClient.convert_f_to_eps",
        fault="Of the bits of a value none comes out as 0.",
        claim=dpw.PureDP(4.394449154672439),
        neighbours=dpw.records(dpw.integers(0, 7), adjacency="replace-one", size=1, form="record"),
        kind="undisputed",
    )
