"""The system that `dpwitness attack table_builder` attacks: from options to noise, table and oracle."""

import argparse
from collections.abc import Iterator
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from dpwitness.attacks.table_builder import noise_laws, oracle
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw
from dpwitness.attacks.table_builder.table import Table, Where, parse_value, read_table
from dpwitness.errors import InvalidParameter

__all__ = ["EMBEDDED", "LAWS", "SYSTEMS", "conditions", "law_of", "system", "table_of", "where_of"]

SYSTEMS: Final[dict[str, type[oracle.BoundedNoisyCounts | oracle.KeyedNoisyCounts]]] = {
    "bounded": oracle.BoundedNoisyCounts,
    "keyed": oracle.KeyedNoisyCounts,
    "growing": oracle.GrowingNoisyCounts,
    "layered": oracle.LayeredNoisyCounts,
    "layered-values": oracle.LayeredNoisyCounts,
}
LAWS: Final = ("uniform", "maximum-entropy", "normal", "laplace")
EMBEDDED: Final = "RAND health insurance experiment (statsmodels, randhie)"


def law_of(arguments: argparse.Namespace) -> NoiseLaw:
    """The noise that --noise, --perturbation and --scale describe. Raises `InvalidParameter`."""
    if arguments.noise == "uniform":
        if arguments.scale is not None:
            raise InvalidParameter("--scale says nothing of uniform noise: choose another --noise, or leave it out")
        return noise_laws.uniform(arguments.perturbation)
    scale = 1.0 if arguments.scale is None else arguments.scale
    if arguments.noise == "maximum-entropy":
        return noise_laws.maximum_entropy(arguments.perturbation, scale * scale)  # infinite where it overflows: refused
    if arguments.noise == "normal":
        return noise_laws.truncated_normal(arguments.perturbation, scale)
    return noise_laws.truncated_laplace(arguments.perturbation, scale)


def table_of(arguments: argparse.Namespace) -> Table:
    """The table of --data, or the embedded one, with the column that --column names."""
    if arguments.data:
        table = read_table(arguments.data)
    else:
        from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # it ships no types

        frame = randhie.load_pandas().data
        names = ("mdvis", "disea", "fmde", "hlthg", "hlthf", "hlthp", "idp")
        table = Table.from_columns({name: [_plain(v) for v in frame[name].tolist()] for name in names})
    if arguments.column is not None:
        table.column(arguments.column)
    return table


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def system(
    arguments: argparse.Namespace, law: NoiseLaw, table: Table, rng: np.random.Generator
) -> oracle.BoundedNoisyCounts | oracle.KeyedNoisyCounts:
    """The system of --system and --suppression on the table; `rng` draws its noise. Raises `InvalidParameter`."""
    suppression = max(law.bound, 4) if arguments.suppression is None else arguments.suppression
    if arguments.system == "layered-values":
        return oracle.LayeredNoisyCounts(table, noise=law, suppression=suppression, rng=rng, per_value=True)
    kind = SYSTEMS[arguments.system]
    return kind(table, noise=law, suppression=suppression, rng=rng)


def where_of(given: list[str]) -> dict[str, tuple[Any, ...]]:
    """The sub-population of texts NAME=VALUE; values of one name are alternatives. Raises `InvalidParameter`."""
    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidParameter(f"--where {item!r} must be NAME=VALUE")
        found[name] = (*found.get(name, ()), parse_value(value))
    return found


def conditions(table: Table, attribute: str, rng: np.random.Generator) -> Iterator[Where]:
    """Sub-populations by single values of the other attributes, in random order, then by pairs of them."""
    others = sorted((name for name in table.values if name != attribute), key=lambda name: -len(table.values[name]))
    for name in others:
        for i in rng.permutation(len(table.values[name])):
            yield {name: (table.values[name][i],)}
    # Few values first: more people have each pair.
    for first, second in sorted(
        combinations(others, 2), key=lambda names: len(table.values[names[0]]) * len(table.values[names[1]])
    ):
        for one, two in product(table.values[first], table.values[second]):
            yield {first: (one,), second: (two,)}
