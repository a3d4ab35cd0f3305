"""Exhibits of DataSynthesizer."""


def datasynthesizer_independent(people):
    """The ranges and the noisy distributions of all columns."""
    import io
    import os
    import warnings

    from DataSynthesizer.DataDescriber import DataDescriber

    warnings.simplefilter("ignore")
    describer = DataDescriber()
    seed = int.from_bytes(os.urandom(4), "big")  # the default seed 0 gives the same noise in all runs
    file = io.StringIO(people.to_csv(index=False))
    describer.describe_dataset_in_independent_attribute_mode(file, epsilon=1.0, seed=seed)
    columns = describer.data_description["attribute_description"].values()
    return [[column["min"], column["max"], *column["distribution_probabilities"]] for column in columns]


def exhibits(dpw, Exhibit):
    yield Exhibit(
        function=datasynthesizer_independent,
        release="DataSynthesizer==0.1.13",
        promised="It applies Differential Privacy techniques to achieve strong privacy guarantee.",
        source="README, which also says that noise is added within the active domain, the values in the table",
        fault="The description holds the exact least and greatest value of each column.",
        neighbours=dpw.records(
            {"age": dpw.integers(0, 120), "income": dpw.numbers(0, 1000)}, size=(2, 1000), form="dataframe"
        ),
        kind="arguable",
    )
