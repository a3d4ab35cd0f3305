"""Exhibits of pure-ldp."""

from functools import cache


@cache
def client():
    """A client, whose hash functions are public."""
    import random

    from pure_ldp.frequency_oracles import RAPPORClient, RAPPORServer

    random.seed(7)
    server = RAPPORServer(f=0.5, m=16, k=2, d=8, num_of_cohorts=1)
    random.seed()
    return RAPPORClient(f=0.5, m=16, hash_funcs=server.get_hash_funcs(), num_of_cohorts=1, index_mapper=int)


def pure_ldp_rappor(value):
    """The Bloom filter and the cohort that a person reports, at ε = convert_f_to_eps(0.5, 2) = 4.394 nats."""
    bits, cohort = client().privatise(value)
    return [*bits, cohort]


def pure_ldp_unary_encoding(value):
    """The two bits that a person reports."""
    from pure_ldp.frequency_oracles import UEClient

    return UEClient(epsilon=1.0, d=2, index_mapper=int).privatise(value).tolist()


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=pure_ldp_rappor,
        release="pure-ldp==1.2.0",
        promised="convert_f_to_eps(f, k): the ε of the parameters f = 0.5 and k = 2 is 4.394",
        source="RAPPORClient.convert_f_to_eps",
        fault="Of the bits of a value none comes out as 0.",
        claim=dpw.PureDP(4.394449154672439),
        neighbours=dpw.records(dpw.integers(0, 7), adjacency="replace-one", size=1, form="record"),
    )
    yield Exhibit(
        function=pure_ldp_unary_encoding,
        release="pure-ldp==1.1.2",
        promised="epsilon: float - privacy budget",
        source="docstring of UEClient",
        fault="The bit of the true value is 1 with probability p + (1 − p)q in place of p.",
        neighbours=dpw.records(dpw.integers(0, 1), adjacency="replace-one", size=1, form="record"),
        fixed="pure-ldp==1.2.0",
    )
