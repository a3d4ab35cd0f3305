"""The system that `dpwitness attack table_builder` attacks: from options to noise, table and oracle."""

import argparse
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from dpwitness.attacks.table_builder import noise_laws, restricted, systems
from dpwitness.attacks.table_builder.noise_laws import NoiseLaw
from dpwitness.attacks.table_builder.protocol import System
from dpwitness.attacks.table_builder.table import Table, Where, parse_value, read_table
from dpwitness.errors import InvalidParameter
from dpwitness.files import read_text

__all__ = [
    "EMBEDDED",
    "INDEPENDENT",
    "LAWS",
    "SYSTEMS",
    "conditions",
    "law_of",
    "suppression_of",
    "system",
    "table_of",
    "values_of",
    "where_of",
]

#: A span of whole numbers, and how many it may hold.
SPAN: Final = re.compile(r"(-?\d+):(-?\d+)")
MOST_VALUES: Final = 1_000_000

#: Systems by name: a class, and what it takes beside the common parameters.
SYSTEMS: Final[dict[str, tuple[type[systems.Counts], dict[str, Any]]]] = {
    "bounded": (systems.BoundedNoisyCounts, {}),
    "keyed": (systems.KeyedNoisyCounts, {}),
    "exact": (restricted.ExactCounts, {}),
    "fresh": (restricted.FreshNoisyCounts, {}),
    "without-totals": (systems.BoundedNoisyCounts, {}),
    "growing": (systems.GrowingNoisyCounts, {}),
    "layered": (systems.LayeredNoisyCounts, {}),
    "layered-values": (systems.LayeredNoisyCounts, {"per_value": True}),
}
#: Of these the theory of independent noises of one law holds.
INDEPENDENT: Final = ("bounded", "keyed", "fresh")
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


def suppression_of(arguments: argparse.Namespace, law: NoiseLaw) -> int:
    """The s of --suppression."""
    return max(law.bound, 4) if arguments.suppression is None else arguments.suppression


def system(arguments: argparse.Namespace, law: NoiseLaw, table: Table, rng: np.random.Generator) -> System:
    """The system of --system and --suppression on the table; `rng` draws its noise. Raises `InvalidParameter`."""
    kind, more = SYSTEMS[arguments.system]
    made = kind(table, noise=law, suppression=suppression_of(arguments, law), rng=rng, **more)
    return restricted.WithoutTotals(made) if arguments.system == "without-totals" else made


def values_of(given: list[str]) -> dict[str, tuple[Any, ...]]:
    """The attributes of texts NAME=A,B,C or NAME=LOW:HIGH or NAME=@FILE. Raises `InvalidParameter`, `InvalidData`."""
    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name or not text or name in found:
            raise InvalidParameter(f"--values {item!r} must be NAME=A,B,C or NAME=LOW:HIGH or NAME=@FILE, once a name")
        if text.startswith("@"):
            values = read_text(text[1:]).splitlines()
        elif (span := SPAN.fullmatch(text)) and int(span[1]) <= int(span[2]) < int(span[1]) + MOST_VALUES:
            values = [str(value) for value in range(int(span[1]), int(span[2]) + 1)]
        else:
            values = text.split(",")
        found[name] = tuple(parse_value(value.strip()) for value in values if value.strip())
        for value in found[name]:
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidParameter(f"--values {name}: {value} is no finite number: leave it out")
        if len(set(found[name])) != len(found[name]) or not found[name]:
            raise InvalidParameter(f"--values {name}: there must be different values, at least one")
    return found


def where_of(given: list[str]) -> dict[str, tuple[Any, ...]]:
    """The sub-population of texts NAME=VALUE; values of one name are alternatives. Raises `InvalidParameter`."""
    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidParameter(f"--where {item!r} must be NAME=VALUE")
        found[name] = (*found.get(name, ()), parse_value(value))
    return found


def conditions(values: Mapping[str, Sequence[Any]], attribute: str, rng: np.random.Generator) -> Iterator[Where]:
    """Sub-populations by single values of the other attributes, in random order, then by pairs of them."""
    others = sorted((name for name in values if name != attribute), key=lambda name: -len(values[name]))
    for name in others:
        for i in rng.permutation(len(values[name])):
            yield {name: (values[name][i],)}
    # Few values first: more people have each pair.
    for first, second in sorted(
        combinations(others, 2), key=lambda names: len(values[names[0]]) * len(values[names[1]])
    ):
        for one, two in product(values[first], values[second]):
            yield {first: (one,), second: (two,)}
