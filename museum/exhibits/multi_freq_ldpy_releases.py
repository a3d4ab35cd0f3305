"""Exhibits of multi-freq-ldpy."""

from functools import partial


def multi_freq_grr(value):
    """The value out of four that a person reports."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return int(GRR_Client(value, 4, 1.0))


def multi_freq_rs_fd_grr(person):
    """The report of a person with two attributes, by generalised randomised response."""
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

    return RSpFD_GRR_Client(person, [2, 2], 2, 1.0)


def multi_freq_rs_fd_ue_zero(person):
    """The report of a person with two attributes, by unary encoding with zero vectors as fake data."""
    from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_UE_zero_Client

    return [vector.tolist() for vector in RSpFD_UE_zero_Client(person, [2, 2], 2, 1.0)]


def multi_freq_subset(value):
    """The set of values that a person reports, in the order in which it is sent."""
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

    return SS_Client(value, 10, 1.0).tolist()


def exhibits(dpw, Exhibit):
    two_bits = dpw.records((dpw.integers(0, 1), dpw.integers(0, 1)), adjacency="replace-one", size=1, form="record")
    sampled = "One attribute, drawn at random, gets ε′ = ln(d(e^ε − 1) + 1); this holds for people who differ in that attribute alone, not in all."
    exhibit = partial(Exhibit, release="multi-freq-ldpy==0.2.5")
    yield exhibit(
        function=multi_freq_grr,
        promised="Generalized Randomized Response (GRR) protocol […] epsilon: privacy guarantee",
        source="docstring of GRR_Client",
        fault="Generalised randomised response over four values.",
        neighbours=dpw.records(dpw.integers(0, 3), adjacency="replace-one", size=1, form="record"),
        kind="control",
        max_time=20.0,
    )
    yield exhibit(
        function=multi_freq_rs_fd_grr,
        promised="Random Sampling Plus Fake Data (RS+FD) […] epsilon: privacy guarantee",
        source="docstring of RSpFD_GRR_Client",
        fault=sampled,
        neighbours=two_bits,
    )
    yield exhibit(
        function=multi_freq_rs_fd_ue_zero,
        promised="Random Sampling Plus Fake Data (RS+FD) […] epsilon: privacy guarantee",
        source="docstring of RSpFD_UE_zero_Client",
        fault=sampled,
        neighbours=two_bits,
    )
    yield exhibit(
        function=multi_freq_subset,
        promised="Subset Selection (SS) protocol […] epsilon: privacy guarantee; return: set of sub_k sanitized values.",
        source="docstring of SS_Client",
        fault="If the true value is in the set, it is its first entry.",
        neighbours=dpw.records(dpw.integers(0, 9), adjacency="replace-one", size=1, form="record"),
    )
