"""`dpwitness attack table_builder`: attacks on published counts of a bundled system or the user's own.

The attack sees answers alone; the data make the bundled system, and show afterwards which counts are right.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Final, TypeAlias

import click
import numpy as np

from dpwitness import checks
from dpwitness.cli.command import READ_FILE, CliOption
from dpwitness.cli.values import number, refuse, whole
from dpwitness.errors import AttackStopped, InvalidParameter
from dpwitness.files import number_in, reads_as_number, typed_column
from dpwitness.proposals import AttackFamily, Commands
from dpwitness.reconstruction.command import (
    AttackOptions,
    AttackProgress,
    add_attack_command,
    oracle_options,
    run_attack,
    settings_of,
)
from dpwitness.reconstruction.people import randhie
from dpwitness.reconstruction.questions import Asking
from dpwitness.reconstruction.report import AttackResult
from dpwitness.reconstruction.table_builder.differencing import recover_suppressed
from dpwitness.reconstruction.table_builder.histogram import recover_histogram
from dpwitness.reconstruction.table_builder.oracle import FORM, AskedSystem, ValueCondition
from dpwitness.reconstruction.table_builder.perturbation import recover_perturbation
from dpwitness.reconstruction.table_builder.report import Found, result_of
from dpwitness.reconstruction.table_builder.supply import CountingPlan
from dpwitness.reconstruction.table_builder.systems import NOISE_LAWS, SYSTEMS, QuerySystem, Simulation
from dpwitness.reconstruction.table_builder.tables import AttributeValue, Table, read_table, require_attribute

#: Name of the table that is attacked without --data.
EMBEDDED_DATA: Final = "RAND health insurance experiment (statsmodels, randhie)"
#: Names of the options that each value of --recover refuses.
REFUSED_OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "histogram": ("sums",),
    "suppressed": ("partitions", "sums"),
    "perturbation": ("partitions", "where", "value"),
}
#: Largest number of values of --values NAME=LOW:HIGH: the attack asks about each of them.
MAX_VALUES: Final = 1_000_000
#: Largest value of --sums: each sum takes three answers and a place in memory.
MAX_SUMS: Final = 100_000

#: The values of each attribute.
ValuesByAttribute: TypeAlias = Mapping[str, Sequence[AttributeValue]]


def add_command(commands: Commands, family: AttackFamily) -> None:
    """Add the command `dpwitness attack table_builder` with its options."""
    examples = (
        "attack table_builder --perturbation 5",
        "attack table_builder --recover perturbation --perturbation 3",
        "attack table_builder --oracle mine.py:system --values age=17:90 --value 42",
    )
    simulated = functools.partial(CliOption, title="the simulated system")
    counts = functools.partial(CliOption, title="--recover histogram or suppressed", multiple=True)
    parameters = [
        CliOption(
            "--recover",
            type=click.Choice(tuple(REFUSED_OPTIONS)),
            default="histogram",
            help="histogram: the count of each value by averaging (default); suppressed: the same by differencing, of "
            "counts without noise; perturbation: r, the size of the noise",
        ),
        CliOption(
            "--data",
            type=READ_FILE,
            metavar="FILE.csv",
            help=f"people, or values with a column of counts (default: {EMBEDDED_DATA})",
        ),
        CliOption(
            "--column",
            metavar="NAME",
            help="the attacked attribute (default: the first; for perturbation, the largest)",
        ),
        simulated("--perturbation", type=whole, help="r: noise lies within ±r (default 2)"),
        simulated("--suppression", type=whole, help="s: counts of at most s become 0 (default: max(r, 4))"),
        simulated(
            "--system",
            type=click.Choice(tuple(SYSTEMS)),
            help="kind of system: which questions share their noise (default bounded; exact for --recover suppressed)",
        ),
        simulated("--noise", type=click.Choice(NOISE_LAWS), help="law of the noise (default uniform)"),
        simulated("--scale", type=number, help="scale of the noise (maximum-entropy: the largest standard deviation)"),
        counts("--value", metavar="VALUE", help="only the count of this value (repeatable)"),
        counts("--where", metavar="NAME=VALUE", help="only people with this value (repeatable)"),
        CliOption(
            "--partitions",
            type=whole,
            title="--recover histogram",
            help="two-partitions for each value (default: 100 × the noise's variance)",
        ),
        CliOption(
            "--sums",
            type=whole,
            title="--recover perturbation",
            help="number of sums, of 3 answers each (default 200)",
        ),
        *oracle_options('a condition such as {"age": [30, 31]}', "a whole number, the noisy count"),
        CliOption(
            "--values",
            metavar="NAME=VALUES",
            multiple=True,
            help="an attribute of your own system: A,B,C or LOW:HIGH (repeatable; or --data)",
        ),
    ]
    add_attack_command(
        commands,
        family,
        Options,
        run,
        parameters,
        simulated=[field.name for field in fields(Simulation)],
        own=("values", "rate", "retries"),
        examples=examples,
        description="Averages away the bounded noise of counts that a system publishes, or recovers the counts that it "
        "suppresses: a simulated system, or your own (--oracle).",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(AttackOptions):
    """The options of the attack, as the command line gives them."""

    recover: str
    data: str | None = None
    column: str | None = None
    value: Sequence[str] = ()
    where: Sequence[str] = ()
    partitions: int | None = None
    sums: int | None = None
    values: Sequence[str] = ()

    def question_settings(self, values: ValuesByAttribute) -> dict[str, object]:
        """The options and values that determine the questions, for the transcript."""
        names = ("recover", "column", "where", "value", "partitions", "sums", "budget")
        given = {name: getattr(self, name) for name in names if getattr(self, name) not in (None, ())}
        return given | {"values": {name: list(known) for name, known in values.items()}}


def run(options: Options, arguments: SimpleNamespace) -> AttackResult | None:
    """The result of the attack that the options name; None if the questions wait in a file. Raises `BadInput`."""
    reason = f"says nothing of --recover {options.recover}: leave one of them out"
    refuse(arguments, REFUSED_OPTIONS[options.recover], reason)
    if options.sums is not None:
        checks.whole("--sums", options.sums, 1, MAX_SUMS)
    exact = "exact" if options.recover == "suppressed" else None
    return _attack(options, settings_of(Simulation, arguments, system=arguments.system or exact))


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The counts to recover: of the values of an attribute, among the people in `where`, by the plan of questions."""

    attribute: str
    values: Sequence[AttributeValue]
    where: Mapping[str, tuple[AttributeValue, ...]]
    plan: CountingPlan

    @classmethod
    def of(cls, options: Options, values: ValuesByAttribute) -> "Goal":
        """The goal of the options in a system with these values. Raises `InvalidParameter` for unknown names."""
        given: dict[str, tuple[str, ...]] = {}
        for item in options.where:
            name, equals, value = item.partition("=")
            if not equals or not name or not value:
                raise InvalidParameter(f"--where {item!r} must be NAME=VALUE")
            given[name] = (*given.get(name, ()), value)
        attribute = options.column or next(iter(values))
        for name in (attribute, *given):
            require_attribute(values, name)
        if attribute in given:
            raise InvalidParameter(f"--where {attribute}=…: this is the attacked attribute; give another --column")
        where = {
            name: tuple(_find_value(values[name], one, f"--where {name}={one}") for one in chosen)
            for name, chosen in given.items()
        }
        known = list(values[attribute])
        targets = tuple(known.index(_find_value(known, text, f"--value {text}")) for text in options.value) or None
        plan = settings_of(CountingPlan, options, targets=targets, questions=options.budget)
        return cls(attribute=attribute, values=known, where=where, plan=plan)

    def true_counts(self, table: Table) -> list[int]:
        """The true count of each wanted value; 0 for a value that nobody in the table has.

        Raises `InvalidParameter` where the table has no value of the attribute.
        """
        counts = table.histogram(self.attribute, self.where).tolist()
        people = dict(zip(table.values[self.attribute], counts, strict=True))
        if people.keys().isdisjoint(self.values):
            raise InvalidParameter(
                f"--data has none of the values of {self.attribute!r}, which are {_list_values(self.values)}; it has "
                f"{_list_values(table.values[self.attribute])}"
            )
        targets = range(len(self.values)) if self.plan.targets is None else self.plan.targets
        return [people.get(self.values[place], 0) for place in targets]


def _find(
    system: QuerySystem,
    options: Options,
    goal: Goal | None,
    rng: np.random.Generator,
    progress: AttackProgress | None = None,
) -> Found:
    """The finding of the attack on any system; `goal`: None for an attack on the perturbation parameter."""
    deadline = options.deadline()
    if goal is None:
        return recover_perturbation(system, rng, options.column, options.sums or 200, budget=options.budget)
    if options.recover == "suppressed":
        plan = goal.plan
        return recover_suppressed(system, rng, goal.attribute, plan.targets, where=goal.where, questions=plan.questions)

    def done(values: int, of: int) -> None:
        if not deadline.left:
            raise InvalidParameter(f"--max-time {options.max_time:g} is over: allow more time or fewer --partitions")
        if progress is not None:
            progress("recover", values, of, f"{system.asked} queries")

    return recover_histogram(system, rng, goal.attribute, goal.plan, where=goal.where, progress=done)


def _attack(options: Options, simulation: Simulation) -> AttackResult | None:
    """Attack the user's system, or a system simulated from the data. None: the questions wait in a file."""
    law = simulation.law()
    table = None
    if options.data:
        table = read_table(options.data)
    elif not options.own_system:
        table = Table.from_columns(randhie("mdvis", "disea", "fmde", "hlthg", "hlthf", "hlthp", "idp"))
    elif not options.values:
        raise InvalidParameter("the attack must know which values to ask for: give --values NAME=A,B,C, or --data")
    values = given_values(options.values) if table is None or options.values else table.values
    goal = None if options.recover == "perturbation" else Goal.of(options, values)

    def simulate(seed: int, progress: AttackProgress | None) -> Found:
        noise, choices = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
        assert table is not None
        people = table if goal is None else table.only([goal.attribute, *goal.where])
        system = SYSTEMS[simulation.system](people, noise=law, suppression=simulation.suppressed, rng=noise)
        return _find(system, options, goal, choices, progress)

    def attack(asking: Asking[ValueCondition], seed: int) -> Found:
        try:
            return _find(AskedSystem(asking, values), options, goal, np.random.default_rng(seed))
        except InvalidParameter as error:
            if asking.stopped is None:
                raise
            raise AttackStopped(f"{asking.stopped}; the answers until then are too few for a result") from error

    true = None if goal is None or table is None else goal.true_counts(table)
    ended = run_attack(options, FORM, options.question_settings(values), attack, simulate)
    if ended is None:
        return None
    data = options.data if options.own_system else options.data or EMBEDDED_DATA
    return result_of(ended, None if options.own_system else simulation, data, true)


def given_values(given: Sequence[str]) -> dict[str, tuple[AttributeValue, ...]]:
    """Parse attributes from texts NAME=A,B,C or NAME=LOW:HIGH. Raises `InvalidParameter`."""
    found: dict[str, tuple[AttributeValue, ...]] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or not name or not text or name in found:
            raise InvalidParameter(f"--values {item!r} must be NAME=A,B,C or NAME=LOW:HIGH, once a name")
        values = text.split(",")
        if len(ends := text.split(":")) == 2 and all(map(reads_as_number, ends)):
            low, high = map(number_in, ends)
            if not (isinstance(low, int) and isinstance(high, int) and low <= high < low + MAX_VALUES):
                raise InvalidParameter(
                    f"--values {name}={text}: give FROM:TO, of at most {MAX_VALUES:,} values, integers such as -3; "
                    "or list the values, A,B,C"
                )
            values = [str(value) for value in range(low, high + 1)]
        found[name] = tuple(typed_column([value.strip() for value in values if value.strip()]))
        if len(set(found[name])) != len(found[name]) or not found[name]:
            raise InvalidParameter(f"--values {name}: there must be different values, at least one")
    return found


def _find_value(known: Sequence[AttributeValue], text: str, option: str) -> AttributeValue:
    """The attribute's value that an option names. Raises `InvalidParameter` if the attribute lacks the value."""
    for value in known:
        if text == str(value) or number_in(text) == value:
            return value
    raise InvalidParameter(f"{option}: there is no such value; the attribute has {_list_values(known)}")


def _list_values(values: Sequence[AttributeValue]) -> str:
    """The first eight values as a text."""
    return ", ".join(map(str, values[:8])) + (", …" if len(values) > 8 else "")
