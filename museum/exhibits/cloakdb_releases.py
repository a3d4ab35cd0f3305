"""Exhibits of cloakdb."""


def cloakdb_missing(value):
    """One person's number from 0 to 1, or None, as the masked table gets it."""
    from cloakdb.core.context import TransformationContext
    from cloakdb.strategies.differential_privacy import DifferentialPrivacyStrategy

    cell = TransformationContext(table_name="people", column_name="rate", row_index=0, salt="")
    return DifferentialPrivacyStrategy().transform(
        value, cell, epsilon=1.0, clip_min=0.0, clip_max=1.0, deterministic=False
    )


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=cloakdb_missing,
        release="cloakdb==1.0.0",
        promised="Adds mathematically provable (epsilon, delta) Differential Privacy noise to numeric data",
        source="DifferentialPrivacyStrategy.description",
        fault="None is returned as None, so whether a person has a value is told exactly.",
        neighbours=dpw.records(dpw.numbers(0, 1, missing=True), adjacency="replace-one", size=1, form="record"),
        kind="arguable",
    )
