"""Exhibits of ldp-toolbox."""


def ldp_toolbox_grr(value):
    """The value out of four that a person reports."""
    from ldp_toolbox.protocols.frequency.grr import GeneralizedRandomizedResponse

    return int(GeneralizedRandomizedResponse(4, 1.0).obfuscate(value))


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=ldp_toolbox_grr,
        release="ldp-toolbox==0.1.3",
        promised="The privacy budget, which determines the strength of the privacy guarantee.",
        source="docstring of GeneralizedRandomizedResponse, epsilon",
        fault="Generalised randomised response over four values.",
        neighbours=dpw.records(dpw.integers(0, 3), adjacency="replace-one", size=1, form="record"),
        kind="control",
        max_time=20.0,
    )
