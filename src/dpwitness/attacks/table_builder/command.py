"""`dpwitness attack tbe-histogram` and `tbe-parameter`: averaging attacks on bounded noisy counts, on real data.

The system is simulated on the data; the attack sees its answers alone. What is imported here is imported when used.
"""

import argparse
import secrets
import time
from collections.abc import Iterator
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from dpwitness.cli.arguments import number, whole
from dpwitness.cli.console import NOT_REFUTED
from dpwitness.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np

    from dpwitness.attacks.table_builder.noise_laws import NoiseLaw
    from dpwitness.attacks.table_builder.table import Table, Where

SYSTEMS = {
    "bounded": "BoundedNoisyCounts",
    "keyed": "KeyedNoisyCounts",
    "growing": "GrowingNoisyCounts",
    "layered": "LayeredNoisyCounts",
    "layered-values": "LayeredNoisyCounts",
}
MOST_SUMS = 100_000
LAWS = ("uniform", "maximum-entropy", "normal", "laplace")
EMBEDDED = "RAND health insurance experiment (statsmodels, randhie)"


def add(subparsers: Any) -> None:
    """Add both commands to the parser of `dpwitness attack`."""
    parser = subparsers.add_parser(
        "tbe-histogram", help="recover a histogram behind bounded noisy counts (TableBuilder)"
    )
    _common(parser)
    parser.add_argument("--partitions", type=whole, default=200, help="two-partitions for each value (default 200)")
    parser.add_argument("--base", type=whole, metavar="N", help="values in the base set (default: as few as suffice)")
    parser.add_argument(
        "--base-partitions", type=whole, help="two-partitions of the base set, asked once (default 1000, or all)"
    )
    parser.add_argument(
        "--where", metavar="NAME=VALUE", action="append", default=[], help="only people with this value (repeatable)"
    )
    parser.set_defaults(run=histogram)

    parser = subparsers.add_parser("tbe-parameter", help="find the hidden size of bounded noise (TableBuilder)")
    _common(parser)
    parser.add_argument(
        "--sums", type=whole, default=200, help="sub-populations to ask for, 3 answers each (default 200)"
    )
    parser.set_defaults(run=parameter)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="FILE.csv", help=f"people, or values with a column of counts (default: {EMBEDDED})"
    )
    parser.add_argument("--attribute", metavar="NAME", help="the attacked attribute (default: the first)")
    parser.add_argument("--perturbation", type=whole, default=2, help="r: noise lies within ±r (default 2)")
    parser.add_argument("--suppression", type=whole, help="s: counts of at most s become 0 (default: max(r, 4))")
    parser.add_argument("--system", choices=tuple(SYSTEMS), default="bounded", help="the noise's book-keeping")
    parser.add_argument("--noise", choices=LAWS, default="uniform", help="the law of the noise (default uniform)")
    parser.add_argument("--scale", type=number, help="its scale (of maximum-entropy: the standard deviation at most)")
    parser.add_argument("--seed", type=whole, help="repeat an earlier run (default: a fresh seed)")
    parser.add_argument("--json", action="store_true", help="print the result alone, as JSON, on stdout")
    parser.add_argument("--plot", metavar="FILE", help="draw it as .svg, .png or .pdf")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def histogram(arguments: argparse.Namespace) -> int:
    """`dpwitness attack tbe-histogram`."""
    from dpwitness.attacks.table_builder.averaging import choose_base, recover_histogram
    from dpwitness.attacks.table_builder.report import histogram_text, plot_histogram
    from dpwitness.attacks.table_builder.theory import histogram_bound
    from dpwitness.cli.progress import live
    from dpwitness.cli.results import check_places, hand_over

    started = time.monotonic()
    check_places(arguments)  # before the attack, not after it
    law, table = _law(arguments), _table(arguments)
    where = _where(arguments.where)
    attribute = arguments.attribute or next(iter(table.values))
    table = table.only([attribute, *where])
    seed, rng, oracle = _system(arguments, law, table)
    if arguments.partitions < 1 or (arguments.base_partitions or 1) < 1:
        raise InvalidParameter("--partitions and --base-partitions must be at least 1")
    # Without one of its values the base set must still have enough two-partitions; 11 values have 1,023 of them.
    size = max(arguments.partitions.bit_length() + 2, 11) if arguments.base is None else arguments.base
    base = choose_base(oracle, attribute, size, where)
    with live(arguments) as progress:
        found = recover_histogram(
            oracle,
            rng,
            attribute,
            base,
            arguments.partitions,
            base_partitions=arguments.base_partitions or max(arguments.partitions, 1000),
            where=where,
            progress=None
            if progress is None
            else lambda done, of: progress("recover", done, of, f"{oracle.asked} queries"),
        )
    true = table.histogram(attribute, where).tolist()
    suppressed = [0 < t <= oracle.suppression for t in true]
    uniform = arguments.noise == "uniform" and arguments.system in ("bounded", "keyed")
    k = min(arguments.partitions, (1 << (len(base) - 2)) - 1)
    result = {
        "attack": "tbe-histogram",
        "data": arguments.data or EMBEDDED,
        "attribute": attribute,
        "where": {name: list(chosen) for name, chosen in where.items()},
        "system": arguments.system,
        "noise": arguments.noise,
        "perturbation": law.bound,
        "suppression": oracle.suppression,
        "values": list(found.values),
        "true": true,
        "published": list(found.noisy),
        "recovered": list(found.counts),
        "right": sum(t == c for t, c in zip(true, found.counts, strict=True)),
        "right_as_published": sum(t == c for t, c in zip(true, found.noisy, strict=True)),
        "suppressed": sum(suppressed),
        "suppressed_right": sum(t == c for t, c, hidden in zip(true, found.counts, suppressed, strict=True) if hidden),
        "base": [found.values[i] for i in found.base],
        "base_partitions": found.base_partitions,
        "partitions": k,
        "all_right_at_least": histogram_bound(law, k, len(true)) if uniform and k * law.bound < 1 << 22 else None,
        "queries": oracle.asked,
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: histogram_text(result),
        plot=lambda path: plot_histogram(result, path),
    )


def parameter(arguments: argparse.Namespace) -> int:
    """`dpwitness attack tbe-parameter`."""
    from dpwitness.attacks.table_builder.averaging import choose_base
    from dpwitness.attacks.table_builder.perturbation import (
        find_perturbation,
        find_perturbation_within,
        usable_conditions,
    )
    from dpwitness.attacks.table_builder.report import parameter_text, plot_parameter
    from dpwitness.attacks.table_builder.theory import perturbation_found
    from dpwitness.cli.results import check_places, hand_over

    started = time.monotonic()
    check_places(arguments)  # before the attack, not after it
    if not 1 <= arguments.sums <= MOST_SUMS:
        raise InvalidParameter(f"--sums {arguments.sums} must lie between 1 and {MOST_SUMS}")
    law, table = _law(arguments), _table(arguments)
    seed, rng, oracle = _system(arguments, law, table)
    attribute = arguments.attribute or min(table.values, key=lambda name: len(table.values[name]))
    base = choose_base(oracle, attribute, 16)
    if len(table.values) == 1:
        found = find_perturbation_within(oracle, rng, attribute, base, arguments.sums)
    else:
        if len(base) < 2:
            raise InvalidParameter(f"attribute {attribute!r} has {len(base)} answers above 0: at least 2 are needed")
        pair = (int(base[0]), int(base[1]))
        conditions = usable_conditions(oracle, attribute, pair, _conditions(table, attribute, rng), arguments.sums)
        found = find_perturbation(oracle, attribute, pair, conditions)
    uniform = arguments.noise == "uniform" and arguments.system in ("bounded", "keyed")
    result = {
        "attack": "tbe-parameter",
        "data": arguments.data or EMBEDDED,
        "attribute": attribute,
        "system": arguments.system,
        "noise": arguments.noise,
        "perturbation": law.bound,
        "suppression": oracle.suppression,
        "guess": found.guess,
        "right": found.guess == law.bound,
        "smallest_sum": found.smallest,
        "largest_sum": found.largest,
        "sums": found.sums,
        "probability": perturbation_found(law.bound, found.sums) if uniform else None,
        "queries": oracle.asked,
        "seed": seed,
        "seconds": time.monotonic() - started,
    }
    return hand_over(
        arguments,
        NOT_REFUTED,
        lambda: result,
        lambda: parameter_text(result),
        plot=lambda path: plot_parameter(result, path),
    )


def _law(arguments: argparse.Namespace) -> "NoiseLaw":
    from dpwitness.attacks.table_builder import noise_laws

    if arguments.noise == "uniform":
        if arguments.scale is not None:
            raise InvalidParameter("--scale says nothing of uniform noise: choose another --noise, or leave it out")
        return noise_laws.uniform(arguments.perturbation)
    scale = 1.0 if arguments.scale is None else arguments.scale
    if arguments.noise == "maximum-entropy":
        return noise_laws.maximum_entropy(arguments.perturbation, scale**2)
    if arguments.noise == "normal":
        return noise_laws.truncated_normal(arguments.perturbation, scale)
    return noise_laws.truncated_laplace(arguments.perturbation, scale)


def _table(arguments: argparse.Namespace) -> "Table":
    from dpwitness.attacks.table_builder.table import Table, read_table

    if arguments.data:
        table = read_table(arguments.data)
    else:
        from statsmodels.datasets import randhie  # type: ignore[import-untyped]  # it ships no types

        frame = randhie.load_pandas().data
        names = ("mdvis", "disea", "fmde", "hlthg", "hlthf", "hlthp", "idp")
        table = Table.from_columns({name: [_plain(v) for v in frame[name].tolist()] for name in names})
    if arguments.attribute is not None:
        table.column(arguments.attribute)
    return table


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _system(arguments: argparse.Namespace, law: "NoiseLaw", table: "Table") -> "tuple[int, np.random.Generator, Any]":
    import numpy as np

    from dpwitness.attacks.table_builder import oracle

    if arguments.seed is not None and arguments.seed < 0:
        raise InvalidParameter(f"--seed {arguments.seed} must be at least 0")
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    system_seed, attack_seed = np.random.SeedSequence(seed).spawn(2)
    suppression = max(law.bound, 4) if arguments.suppression is None else arguments.suppression
    more = {"per_value": True} if arguments.system == "layered-values" else {}
    made = getattr(oracle, SYSTEMS[arguments.system])(
        table, noise=law, suppression=suppression, rng=np.random.default_rng(system_seed), **more
    )
    return seed, np.random.default_rng(attack_seed), made


def _where(given: list[str]) -> dict[str, tuple[Any, ...]]:
    from dpwitness.attacks.table_builder.table import parse_value

    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidParameter(f"--where {item!r} must be NAME=VALUE")
        found[name] = (*found.get(name, ()), parse_value(value))
    return found


def _conditions(table: "Table", attribute: str, rng: "np.random.Generator") -> "Iterator[Where]":
    """Single values of the other attributes, then pairs of them."""
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
