"""--records and what goes with it: real data from a CSV file, and which datasets the claim calls neighbours."""

import argparse
from typing import Any, Final

from dpwitness.cli.options import ADJACENCIES, FORMS
from dpwitness.errors import BadInput, InvalidData, InvalidNeighbours
from dpwitness.files import read_frame, shown
from dpwitness.neighbours import Relation, categories, integers, like, numbers, records

__all__ = ["relation_of_records", "repeated"]

#: The options that need --records.
_OPTIONS: Final = ("adjacency", "form", "size", "domain")


def relation_of_records(arguments: argparse.Namespace) -> Relation | None:
    """The relation that --records describes; None where it was not given. Raises `BadInput`."""
    given = [name for name in _OPTIONS if getattr(arguments, name) not in (None, [])]
    if arguments.records is None:
        if given:
            raise BadInput(f"--{given[0]} says more of --records: give --records FILE.csv too")
        return None
    frame = read_frame(arguments.records)
    domains = dict(zip(frame.columns, like(frame).fields.parts, strict=True))
    for item in arguments.domain:
        name, equals, values = item.partition("=")
        if not equals or name not in domains:
            known = ", ".join(map(str, domains))
            raise BadInput(f"--domain {item!r} must be COLUMN=LOW:HIGH or COLUMN=A,B,C; columns of the file: {known}")
        domains[name] = _domain(item, values)
    form = arguments.form or FORMS[0]
    base, domain = _in_form(frame, domains, form, arguments.records)
    return records(
        domain,
        adjacency=ADJACENCIES[arguments.adjacency or "add-remove"],
        size=arguments.size,
        base=base,
        form=form,
    )


def repeated(arguments: argparse.Namespace) -> list[str]:
    """These options as they were given, for the command that repeats a check."""
    line = []
    for name in ("records", "adjacency", "form", "size"):
        if getattr(arguments, name) is not None:
            line += [f"--{name}", str(getattr(arguments, name))]
    for item in arguments.domain:
        line += ["--domain", item]
    return line


def _domain(item: str, values: str) -> Any:
    """LOW:HIGH, whole numbers where both are, or categories, which are whole numbers where all are."""
    low, colon, high = values.partition(":")
    try:
        if not colon:
            kinds = values.split(",")
            return categories(*(_whole(kinds) or kinds))
        ends = _whole([low, high])
        return numbers(float(low), float(high)) if ends is None else integers(*ends)
    except InvalidNeighbours as error:
        raise BadInput(f"--domain {item!r}: {error}") from error
    except ValueError as error:
        raise BadInput(f"--domain {item!r} must hold two finite numbers, the lower one first") from error


def _whole(texts: list[str]) -> list[int] | None:
    """Whole numbers; None where one of the texts is none."""
    try:
        return [int(text) for text in texts]
    except ValueError:
        return None


def _in_form(frame: Any, domains: dict[str, Any], form: str, path: str) -> tuple[Any, Any]:
    """The base and the domain as `records` takes them for a form."""
    if form in ("dataframe", "columns"):
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
