"""The system that `dpwitness attack table_builder` attacks: from options to noise, table and oracle.

The options of `dpwitness attack table_builder`.

Which counts `dpwitness attack table_builder` is to recover, and how right they are.

`dpwitness attack table_builder`: averaging attacks on noisy counts, of a simulated system or of the user's own.

The attack sees a system's answers alone; the data make the simulated system, and say afterwards how much is right.
"""

import argparse
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from typing import Any, Final

import numpy as np

from dpwitness.cli import options
from dpwitness.cli.console import NOT_REFUTED, live
from dpwitness.cli.output import check_places, hand_over
from dpwitness.cli.parser import command, number, whole
from dpwitness.errors import InvalidParameter
from dpwitness.files import read_text
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import (
    MAX_TIME,
    ONE_THREAD,
    attack_system,
    deadline_of,
    described,
    is_real,
    oracle_options,
    require_time,
    seed_of,
)
from dpwitness.reconstruction.table_builder import report, systems
from dpwitness.reconstruction.table_builder import systems as noise_laws
from dpwitness.reconstruction.table_builder import systems as restricted
from dpwitness.reconstruction.table_builder.averaging import choose_base
from dpwitness.reconstruction.table_builder.perturbation import (
    Perturbation,
    find_perturbation_within,
    find_perturbation_without_totals,
    largest_sum,
    pairs_within,
    usable_conditions,
)
from dpwitness.reconstruction.table_builder.report import (
    defences_text,
    histogram_text,
    parameter_text,
    plot_histogram,
    plot_parameter,
)
from dpwitness.reconstruction.table_builder.supply import BASE_SIZE, Plan
from dpwitness.reconstruction.table_builder.systems import NoiseLaw, System, Table, Where, parse_value, read_table

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


def simulated_system(arguments: argparse.Namespace, law: NoiseLaw, table: Table, rng: np.random.Generator) -> System:
    """The system of --system and --suppression on the table; `rng` draws its noise. Raises `InvalidParameter`."""
    kind, more = SYSTEMS[arguments.system]
    made = kind(table, noise=law, suppression=suppression_of(arguments, law), rng=rng, **more)
    return restricted.WithoutTotals(made) if arguments.system == "without-totals" else made


def given_values(given: list[str]) -> dict[str, tuple[Any, ...]]:
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


#: Options of one of the two goals alone.
OF_HISTOGRAM: Final = ("partitions", "base", "base_partitions", "where", "value")
OF_PARAMETER: Final = ("sums",)
#: Options of a simulated system, and of the user's own.
OF_SIMULATION: Final = ("perturbation", "suppression", "system", "noise", "scale")
OF_REAL: Final = ("values", "rate")


def declare(commands: Commands, family: AttackFamily, run: Any) -> None:
    """Declare the command and its options."""
    examples = (
        "attack table_builder --perturbation 5",
        "attack table_builder --recover perturbation --perturbation 3",
        "attack table_builder --oracle mine.py:system --values age=17:90 --value 42",
        "attack table_builder --defences",
    )
    parser = command(commands, family.name, summary=family.summary, run=run, examples=examples)
    parser.description = (
        "Averages away the bounded noise of counts that a system publishes: a simulated one, or your own (--oracle)."
    )
    parser.add_argument(
        "--recover",
        choices=("histogram", "perturbation"),
        default="histogram",
        help="the count of each value (default), or r, how large the noise is",
    )
    parser.add_argument("--defences", action="store_true", help="measure what each defence costs the attacker instead")
    parser.add_argument(
        "--data", metavar="FILE.csv", help=f"people, or values with a column of counts (default: {EMBEDDED})"
    )
    parser.add_argument("--column", metavar="NAME", help="the attacked attribute (default: the first)")
    group = parser.add_argument_group("the simulated system")
    group.add_argument("--perturbation", type=whole, help="r: noise lies within ±r (default 2)")
    group.add_argument("--suppression", type=whole, help="s: counts of at most s become 0 (default: max(r, 4))")
    group.add_argument("--system", choices=tuple(SYSTEMS), help="who shares a noise (default bounded)")
    group.add_argument("--noise", choices=LAWS, help="its law (default uniform)")
    group.add_argument("--scale", type=number, help="its scale (of maximum-entropy: the standard deviation at most)")
    group = parser.add_argument_group("--recover histogram")
    group.add_argument("--value", metavar="VALUE", action="append", help="only this value's count (repeatable)")
    group.add_argument("--where", metavar="NAME=VALUE", action="append", help="only people with this (repeatable)")
    group.add_argument("--partitions", type=whole, help="two-partitions a value (default: 100 × the noise's variance)")
    group.add_argument("--base", type=whole, metavar="N", help="values in the base set at most (default 20)")
    group.add_argument(
        "--base-partitions", type=whole, help="two-partitions of the base set, asked once (default: 2.5 × as many)"
    )
    group = parser.add_argument_group("--recover perturbation")
    group.add_argument("--sums", type=whole, help="sub-populations to ask for, 3 answers each (default 200)")
    oracle_options(parser, 'a condition such as {"age": [30, 31]}', "a whole number, the noisy count")
    parser.add_argument(
        "--values",
        metavar="NAME=VALUES",
        action="append",
        help="an attribute of your own system: A,B,C or LOW:HIGH or @FILE, a value a line (repeatable; or --data)",
    )
    options.plot(parser)
    options.common(parser, max_time=MAX_TIME, workers=ONE_THREAD)


def check(arguments: argparse.Namespace) -> None:
    """Raise `InvalidParameter` for options that say nothing of what is asked for; then fill in the defaults."""
    other = OF_PARAMETER if arguments.recover == "histogram" else OF_HISTOGRAM
    _refuse(arguments, other, f"says nothing of --recover {arguments.recover}")
    if arguments.defences:
        if arguments.recover != "histogram":
            raise InvalidParameter(f"--recover {arguments.recover} says nothing of --defences: leave one of them out")
        more = ("budget", "data", "column", "oracle", "ask", "answers", "plot")
        names = (*OF_HISTOGRAM, *OF_SIMULATION, *OF_REAL, *more)
        _refuse(arguments, names, "says nothing of --defences")
    if is_real(arguments):
        _refuse(arguments, OF_SIMULATION, "describes a simulated system")
    else:
        _refuse(arguments, OF_REAL, "is of an attack on your own system, --oracle")
    defaults = {"perturbation": 2, "system": "bounded", "noise": "uniform"}
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')} {reason}: leave one of them out")


Result = dict[str, Any]


class Goal:
    """Which counts are wanted, by which plan: from the options, whose system it does not know."""

    def __init__(self, arguments: argparse.Namespace, values: Mapping[str, Sequence[Any]]) -> None:
        self.arguments, self.deadline = arguments, deadline_of(arguments)
        self.where = where_of(arguments.where or [])
        self.attribute = arguments.column or next(iter(values))
        for name in (self.attribute, *self.where):
            if name not in values:
                raise InvalidParameter(f"there is no attribute {name!r}; the attributes are {', '.join(values)}")
        if self.attribute in self.where:
            raise InvalidParameter(f"--where {self.attribute}=…: this is the attacked attribute; give another --column")
        self.where = {
            name: tuple(_same(values[name], one, f"--where {name}={one}") for one in chosen)
            for name, chosen in self.where.items()
        }
        self.known = list(values[self.attribute])
        self.targets = None if arguments.value is None else tuple(_place(self.known, text) for text in arguments.value)
        more = {} if arguments.base is None else {"base": arguments.base}
        self.plan = Plan(
            targets=self.targets,
            partitions=arguments.partitions,
            base_partitions=arguments.base_partitions,
            questions=arguments.budget,
            **more,
        )

    def needs_no_other(self, table: Table, suppression: int) -> bool:
        """Whether so many values are not suppressed that the attack partitions no other attribute in any case."""
        base = self.plan.base if isinstance(self.plan.base, int) else 0
        return min(base, int(np.sum(table.histogram(self.attribute, self.where) > suppression)) - 1) >= BASE_SIZE

    def recover(self, system: System, rng: np.random.Generator) -> Result:
        """What the attack finds."""
        from dpwitness.reconstruction.table_builder.histogram import recover

        with live(self.arguments) as progress:

            def done(values: int, of: int) -> None:
                require_time(self.arguments, self.deadline, "--partitions")
                if progress is not None and not is_real(self.arguments):  # there the questions are shown
                    progress("recover", values, of, f"{system.asked} queries")

            self.found = recover(system, rng, self.attribute, self.plan, where=self.where, progress=done)
        return {"where": {name: list(v) for name, v in self.where.items()}, **report.found_histogram(self.found)}

    def true(self, table: Table) -> list[int]:
        """The true count of each wanted value, 0 of one that nobody in the table has.

        Raises `InvalidParameter` where the table knows none of the values.
        """
        counts = table.histogram(self.attribute, self.where)
        people = dict(zip(table.values[self.attribute], counts.tolist(), strict=True))
        if not any(value in people for value in self.known):
            raise InvalidParameter(
                f"--data has none of the values of {self.attribute!r}, which are {_some(self.known)}; it has "
                f"{_some(list(people))}"
            )
        wanted = self.known if self.targets is None else [self.known[place] for place in self.targets]
        return [people.get(value, 0) for value in wanted]

    def compare(self, wanted: list[int], law: Any, suppression: int | None) -> Result:
        """How much of it is right."""
        return report.compared(wanted, self.found, suppression) | report.predicted(law, self.found, wanted)


def _place(known: list[Any], text: str) -> int:
    """The position of a value that --value names."""
    for value in (parse_value(text), text):
        if value in known:
            return known.index(value)
    raise InvalidParameter(f"--value {text!r} is no value of the attribute; it has {_some(known)}")


def _same(known: Sequence[Any], value: Any, option: str) -> Any:
    """The known value that an option names, as a number or as its text."""
    found = [one for one in known if one == value] or [one for one in known if str(one) == str(value)]
    if not found:
        raise InvalidParameter(f"{option}: there is no such value; the attribute has {_some(known)}")
    return found[0]


def _some(values: Sequence[Any]) -> str:
    """The first values on a line."""
    return ", ".join(map(str, values[:8])) + (", …" if len(values) > 8 else "")


MOST_SUMS = 100_000


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Declare the command and its options."""
    declare(commands, family, run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit code is 0, or 2 for bad input, which raises."""
    check(arguments)
    check_places(arguments)  # before the attack, not after it
    if arguments.defences:
        return _defences(arguments)
    started = time.monotonic()
    result = _attack_own(arguments) if is_real(arguments) else _attack_simulated(arguments)
    if result is None:
        return NOT_REFUTED  # its questions wait in a file
    result["seconds"] = time.monotonic() - started
    texts = (histogram_text, plot_histogram) if arguments.recover == "histogram" else (parameter_text, plot_parameter)
    text, plot = texts
    return hand_over(arguments, NOT_REFUTED, lambda: result, lambda: text(result), plot=lambda path: plot(result, path))


def _attack_simulated(arguments: argparse.Namespace) -> Result:
    """Make a system of the data, attack it, and compare."""
    law, table = law_of(arguments), table_of(arguments)
    seed = seed_of(arguments)
    noise, choices = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(2))
    suppression = suppression_of(arguments, law)
    about = {
        "attack": arguments.attack,
        "recover": arguments.recover,
        "data": arguments.data or EMBEDDED,
        "system": arguments.system,
        "noise": arguments.noise,
        "perturbation": law.bound,
        "suppression": suppression,
        "seed": seed,
    }
    known = law if arguments.system in INDEPENDENT else None
    if arguments.recover == "perturbation":
        known = law if arguments.system == "without-totals" else known
        system = simulated_system(arguments, law, table, noise)
        found = _find_parameter(arguments, system, choices)
        result = report.found_parameter(found, known) | {"right": found.guess == law.bound}
        return about | {"attribute": _attribute(arguments, system)} | result | {"queries": system.asked}
    goal = Goal(arguments, table.values)
    if known is not None and goal.needs_no_other(table, suppression):
        table = table.only([goal.attribute, *goal.where])  # few profiles make a quick system
    system = simulated_system(arguments, law, table, noise)
    return about | goal.recover(system, choices) | goal.compare(goal.true(table), known, suppression)


def _attack_own(arguments: argparse.Namespace) -> Result | None:
    """Attack the user's system; None where its questions wait in a file."""
    from dpwitness.reconstruction.table_builder.systems import FORM, AskedSystem

    table = table_of(arguments) if arguments.data else None
    values = _own_values(arguments, table)
    goal = Goal(arguments, values) if arguments.recover == "histogram" else None
    true = None if goal is None or table is None else goal.true(table)
    names = ("recover", "column", "where", "value", "partitions", "base", "base_partitions", "sums", "budget")
    settings = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    settings["values"] = {name: list(given) for name, given in values.items()}

    def attack(asking: Any, seed: int) -> Result:
        system, rng = AskedSystem(asking, values), np.random.default_rng(seed)
        about = {"attack": arguments.attack, "recover": arguments.recover, "data": arguments.data, "seed": seed}
        about |= described(arguments, asking) | {"stopped": None}
        if goal is None:
            attribute = _attribute(arguments, system)
            found = report.found_parameter(_find_parameter(arguments, system, rng), None)
            about |= described(arguments, asking) | {"stopped": asking.stopped}
            return about | found | {"attribute": attribute, "queries": asking.asked}
        result = about | goal.recover(system, rng)
        result |= described(arguments, asking) | {"stopped": asking.stopped}
        return result | ({"right": None, "true": None} if true is None else goal.compare(true, None, None))

    return attack_system(arguments, FORM, settings, attack, partial=True)


def _own_values(arguments: argparse.Namespace, table: Table | None) -> Mapping[str, Sequence[Any]]:
    """The attributes of the user's system and their values: of --values, else of --data, else of the system itself."""
    from dpwitness.mechanisms.catalog import load_object
    from dpwitness.reconstruction.table_builder.systems import values_of

    if arguments.values is not None:
        return given_values(arguments.values)
    if table is not None:
        return table.values
    values = None if arguments.oracle is None else values_of(load_object(arguments.oracle))
    if values is None:
        raise InvalidParameter("the attack must know which values to ask for: give --values NAME=A,B,C, or --data")
    return values


def _attribute(arguments: argparse.Namespace, system: System) -> str:
    """The attribute whose pairs of values are added up to find r: the one with the fewest values."""
    return str(arguments.column or min(system.attributes, key=lambda name: len(system.values(name))))


def _find_parameter(arguments: argparse.Namespace, system: System, rng: np.random.Generator) -> Perturbation:
    """Algorithm 3 in sub-populations by the other attributes, or within the attribute where it is the only one."""
    deadline = deadline_of(arguments)
    sums = 200 if arguments.sums is None else arguments.sums
    if not 1 <= sums <= MOST_SUMS:
        raise InvalidParameter(f"--sums {sums} must lie between 1 and {MOST_SUMS}")
    attribute = _attribute(arguments, system)
    base = choose_base(system, attribute, 16)
    if arguments.budget is not None:
        sums = min(sums, max(1, (arguments.budget - system.asked) // 3))
    if len(system.attributes) == 1:
        return find_perturbation_within(system, rng, attribute, base, sums)
    if len(base) < 2:
        raise InvalidParameter(f"attribute {attribute!r} has {len(base)} answers above 0: at least 2 are needed")
    values = {name: system.values(name) for name in system.attributes}
    within = conditions(values, attribute, rng)
    if arguments.budget is not None:
        within = islice(within, sums)
    _, answers = usable_conditions(system, attribute, (int(base[0]), int(base[1])), within, sums)
    for name in sorted(values, key=lambda name: -len(values[name])):
        require_time(arguments, deadline, "--sums")
        # Sub-populations may be few: sets of values are as good, so that more attributes never tell less.
        missing = sums - len(answers)
        if arguments.budget is not None:
            missing = min(missing, (arguments.budget - system.asked - len(values[name])) // 3)
        if missing > 0 and len(base := choose_base(system, name, 16)) >= 2:
            answers = np.vstack([answers, pairs_within(system, rng, name, base, missing)])
    found = largest_sum(answers)
    if found.guess or len(values) < 3:
        return found
    # Totals without noise of their own (section 7.1): two attributes with few values, within the others'.
    first, second = sorted(values, key=lambda name: len(values[name]))[:2]
    del values[second]
    within = conditions(values, first, rng)
    return find_perturbation_without_totals(system, first, second, within, sums)


def _defences(arguments: argparse.Namespace) -> int:
    """Measure the table of defences."""
    from dpwitness.reconstruction.table_builder.defences import measure

    seed = seed_of(arguments)
    with live(arguments) as progress:
        show = None if progress is None else lambda done, of, row: progress("measure", done, of, row)
        rows = measure(seed, deadline=deadline_of(arguments), progress=show)
    result = {"attack": arguments.attack, "defences": rows, "seed": seed}
    return hand_over(arguments, NOT_REFUTED, lambda: result, lambda: defences_text(rows))
