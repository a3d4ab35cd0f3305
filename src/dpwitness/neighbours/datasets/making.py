"""`records`: the relation of real data, as users state it."""

from typing import Any

from dpwitness.checks import brief
from dpwitness.errors import InvalidNeighbours
from dpwitness.neighbours.datasets.enumerated import drawn, is_strategy
from dpwitness.neighbours.datasets.examples import Like, like
from dpwitness.neighbours.datasets.fields import fields_of
from dpwitness.neighbours.datasets.forms import FORMS, check_form, form_of_data, usual_form
from dpwitness.neighbours.datasets.relation import ADD_REMOVE, Records
from dpwitness.neighbours.datasets.sizes import Size

__all__ = ["records"]


def records(
    domain: Any = None,
    *,
    adjacency: str | None = ADD_REMOVE,
    size: Size = None,
    base: Any = None,
    form: str | None = None,
) -> Records:
    """Datasets of records, of which neighbours differ in one: `records(numbers(0, 100))`.

    The order of the records is part of the input, and neighbours have all other records in the same order. The same
    records in another order are another dataset, which is no neighbour. So rising, falling and random orders are tried,
    each with one record added or replaced in it.

    Parameters
    ----------
    domain
        What a record is: `numbers(low, high)`, `integers(low, high)`, `categories("a", "b")`, `flags()`,
        `text(max_length)`, a tuple or a dict of such, `like(examples)`, or a hypothesis strategy (the relation then
        holds the records that are drawn from it). By default `like(base)`.
    adjacency
        "add-remove" (one record more or fewer), "replace-one", or None for a claim that leaves it open.
    size
        Records in a dataset: a number, (least, most), or None for any number; candidates have up to 1,000, and up to
        100,000 where a mechanism is fast and nothing was found among fewer.
    base
        A dataset to start from: a list of records, an array, a DataFrame, a dict of columns, (X, y).
    form
        What the mechanism gets: "array" (one axis for numbers, records by fields for tuples of numbers), "list",
        "dataframe", "columns" (a dict of arrays or lists), "xy" (a tuple of features and labels, for records
        ((x1, …, xk), y)), or "record" (one record alone, for local DP). By default that of the base or of the
        examples; else an array for numbers, (X, y) for such records, and a list for all others.

    Neighbours differ in their records and in nothing else: types of columns, names, index, order in memory and class
    are those of the base or the examples of this form, else they follow from the domain, and never from the records
    that are there. A type that cannot hold all of the domain (`int8` for `integers(0, 1000)`) gives way to the domain's
    own. An index that counts the rows does so for any number of them; labels belong to the rows: a row that is removed
    takes its label with it, and further rows get others of the same kind.

    Raises
    ------
    InvalidNeighbours
        For what makes no sense, and for a base whose records are not of the domain.
    """
    if domain is None and base is None:
        raise InvalidNeighbours(
            "records(domain) needs a domain, such as numbers(0, 100), or base=, records like which to use"
        )
    found = like(base) if domain is None else domain
    if is_strategy(found):
        found = drawn(found)
    fields = found.fields if isinstance(found, Like) else fields_of(found)
    source = None if base is None else form_of_data(base)
    if form is None:
        form = source or (found.form if isinstance(found, Like) else usual_form(fields))
    check_form(form, fields)
    held, layout = None, found.layout if isinstance(found, Like) and found.form == form else None
    if source is not None:
        check_form(source, fields)
        read = FORMS[source].read(fields, base)
        if read is None:
            raise InvalidNeighbours(
                f"base={brief(base)} holds records that are not of the domain {fields!s:.200}: "
                "give a wider one (--domain)"
            )
        held = tuple(read)
        if source == form:
            layout = FORMS[form].layout.of(base)
    return Records(fields=fields, adjacency=adjacency, size=size, form=form, base=held, layout=layout)
