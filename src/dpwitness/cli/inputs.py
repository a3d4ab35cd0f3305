"""The parameters of a public function from the options of the command of the same name."""

import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from _dpwitness_session import BITS
from dpwitness.cli.console import say
from dpwitness.cli.options import ADJACENCY_CHOICES, FORM_CHOICES
from dpwitness.cli.values import given_input, refuse, require_each_once, settings
from dpwitness.errors import BadInput, InvalidData, InvalidNeighbours
from dpwitness.files import as_utf8, read_column, read_frame, shown, typed_column
from dpwitness.mechanisms.catalog import load, load_code
from dpwitness.mechanisms.claims import claim_of_text
from dpwitness.neighbours import Data, Relation, categories, histogram, integers, like, numbers, pairs, queries, records
from dpwitness.options import options_of
from dpwitness.project import nearest, project_of
from dpwitness.results.witness import Witness
from dpwitness.targets import target_of


def take_settings(arguments: SimpleNamespace) -> None:
    """Set missing options by the project's settings. Raises `BadInput`."""
    defaults = project_of(nearest(Path.cwd())).defaults(arguments.command)
    if arguments.cluster is not None:
        defaults.pop("workers", None)  # a cluster has workers of its own
    for name, value in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def call_of(arguments: SimpleNamespace) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and the named arguments of the public function; options that were not given are left out."""
    named = {
        name: BITS.get(value, value) if name == "bits" else value
        for name in options_of(arguments.command)
        if (value := getattr(arguments, name, None)) is not None
    }
    if arguments.cluster is not None and arguments.workers is not None:
        raise BadInput(f"--cluster {arguments.cluster} has workers of its own: leave out --workers")
    if arguments.claim is not None:  # read before the user's code is loaded, which may take long
        named["claim"] = claim_of_text(arguments.claim)
    if arguments.command == "replay":
        named_here = arguments.mechanism is not None or arguments.program is not None
        # The mechanism is loaded before the witness is read: its module may register kinds that the witness has.
        function = _mechanism(arguments, arguments.mechanism) if named_here else None
        given: tuple[Any, ...] = (Witness.load(arguments.witness), function)
    else:
        function = _mechanism(arguments, arguments.target)
        given = (function,)
        named |= {
            "parameters": settings(arguments.set),
            "reference": None if arguments.target is None else as_utf8(arguments.target),  # witness files are UTF-8
        }
    if arguments.outcome is not None and ":" in arguments.outcome:
        named["outcome"] = load_code(arguments.outcome)
    data = _data(arguments)
    neighbours = relation(arguments, None if data is None else len(data))
    if data is not None and neighbours is None and arguments.command != "replay" and target_of(function) is None:
        # For a user's own function, counts in the file are a histogram, and other numbers are answers to queries.
        counts = data.dtype.kind == "i" and (data >= 0).all()
        neighbours = histogram(len(data)) if counts else queries(len(data))
        kind = "a histogram, one person more or less in a cell" if counts else "queries, each moving by at most 1"
        say(f"taking {shown(arguments.data)} as {kind}")
    return given, {**named, "neighbours": neighbours, "data": data}


def check_mechanism(arguments: SimpleNamespace) -> None:
    """Raise `BadInput` unless the options name one mechanism, and no option belongs to another kind of mechanism."""
    replayed = arguments.command == "replay"
    word, target = ("--mechanism", arguments.mechanism) if replayed else ("TARGET", arguments.target)
    if arguments.program is None:
        if target is None and not replayed:
            raise click.UsageError("give TARGET, or --command PROGRAM", arguments.context)
        refuse(arguments, ("seeded", "batch"), "needs --command PROGRAM")
        if target is None and arguments.python is not None:  # a witness's own bundled target runs in this process
            raise BadInput("--python needs --mechanism TARGET")
        return
    for name, value in ((word, target), ("--python", arguments.python), ("--set", getattr(arguments, "set", None))):
        if value not in (None, ()):
            raise BadInput(f"--command is the whole mechanism, arguments included: leave out {name}")


def _mechanism(arguments: SimpleNamespace, target: str | None) -> Callable[..., object]:
    """The mechanism: the named function, here or in the interpreter of --python, or the program of --command."""
    if arguments.program is not None:
        from dpwitness.mechanisms.command import OUTCOME_SECONDS, command

        try:
            words = shlex.split(arguments.program)
        except ValueError as error:
            raise BadInput(f"--command {arguments.program!r}: {error}") from error
        return command(
            words, seeded=arguments.seeded, batch=arguments.batch, max_time=arguments.max_time or OUTCOME_SECONDS
        )
    assert target is not None
    if arguments.python is None:
        return load(target)
    from dpwitness.mechanisms.remote import remote

    return remote(arguments.python, target)


def relation(arguments: SimpleNamespace, numbers_of_data: int | None = None) -> Relation | None:
    """The relation of the options, for `numbers_of_data` numbers in --data; None without options. Raises `BadInput`."""
    extras = [name for name in ("may_move", "direction") if getattr(arguments, name)]
    if (of_records := relation_of_records(arguments)) is not None or arguments.pair:
        word = "--pair" if of_records is None else "--records"
        others = ("queries", "may_move", "direction", "data", *(("pair",) if of_records is not None else ()))
        refuse(arguments, others, f"is not given with {word}, which says which inputs are neighbours")
        return of_records or pairs(*([given_input(side) for side in pair] for pair in arguments.pair))
    if arguments.queries is not None or extras:
        length = numbers_of_data if arguments.queries is None else arguments.queries
        if length is None:
            raise BadInput(f"--{extras[0].replace('_', '-')} needs --queries N")
        if numbers_of_data not in (None, length):
            raise BadInput(
                f"--queries {length} differs from --data, which has {numbers_of_data} numbers: give --queries "
                f"{numbers_of_data}"
            )
        return queries(length, may_move=arguments.may_move or "all", direction=arguments.direction or "any")
    return None


def _data(arguments: SimpleNamespace) -> Data | None:
    """The input D from --data and --column; None without a file. Raises `InvalidData`."""
    if arguments.data is not None:
        return read_column(arguments.data, arguments.column)
    if arguments.column is not None:
        raise InvalidData("--column says which column of --data: give --data FILE.csv too")
    return None


def relation_of_records(arguments: SimpleNamespace) -> Relation | None:
    """The relation that --records describes; None without the option. Raises `BadInput`."""
    if arguments.records is None:
        refuse(arguments, ("adjacency", "form", "size", "unit", "at_most", "domain"), "needs --records FILE.csv")
        return None
    frame = read_frame(arguments.records)
    domains = dict(zip(frame.columns, like(frame).fields.parts, strict=True))
    require_each_once("--domain", arguments.domain)
    for item in arguments.domain:
        name, equals, values = item.partition("=")
        if not equals or name not in domains:
            known = ", ".join(map(str, domains))
            raise BadInput(f"--domain {item!r} must be COLUMN=LOW:HIGH or COLUMN=A,B,C; columns of the file: {known}")
        domains[name] = _domain(item, values)
    form = arguments.form or FORM_CHOICES[0]
    columns, unit = [*map(str, frame.columns)], arguments.unit
    if form == "array" and len(columns) > 1 and unit in columns:  # columns of an array have no names
        unit = columns.index(unit)
    base, domain = _convert_to_form(frame, domains, form, arguments.records)
    return records(
        domain,
        adjacency=ADJACENCY_CHOICES[arguments.adjacency or "add-remove"],
        size=arguments.size,
        base=base,
        form=form,
        unit=unit,
        at_most=arguments.at_most,
    )


def _domain(item: str, values: str) -> object:
    """The domain in a text: LOW:HIGH, of integers if both are integers, or categories typed like a file's column."""
    low, colon, high = values.partition(":")
    try:
        if not colon:
            return categories(*typed_column(values.split(",")))
        least, most = typed_column([low, high])
        if isinstance(least, int) and isinstance(most, int):
            return integers(least, most)
        return numbers(float(low), float(high))
    except InvalidNeighbours as error:
        raise BadInput(f"--domain {item!r}: {error}") from error
    except ValueError as error:
        raise BadInput(f"--domain {item!r} must hold two finite numbers, the lower one first") from error


def _convert_to_form(frame: Any, domains: dict[str, object], form: str, path: str) -> tuple[object, object]:
    """The base and the domain, as `records` takes them for a form."""
    if form not in ("list", "array", "xy"):
        return frame, domains
    if form == "list":
        return frame.to_dict("records"), domains
    parts = tuple(domains.values())
    texts = [name for name in frame.columns if frame[name].dtype.kind not in "biuf"]
    if form == "xy":
        if len(parts) < 2:
            raise InvalidData(f"{shown(path)} has one column: --form xy needs features and, in the last column, labels")
        texts = [name for name in texts if name != frame.columns[-1]]
    if texts:
        raise InvalidData(f"column {texts[0]!r} of {shown(path)} holds text: --form {form} needs numbers")
    if form == "xy":
        labels = frame.iloc[:, -1]
        features = frame.iloc[:, :-1].to_numpy()
        return (features, labels.tolist()), (parts[:-1], parts[-1])
    return (frame.iloc[:, 0].to_numpy(), parts[0]) if len(parts) == 1 else (frame.to_numpy(), parts)
