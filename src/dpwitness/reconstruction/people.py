"""Tables of people: the values of their attributes, as CSV files have them."""

from pathlib import Path
from typing import Final, TypeAlias

from dpwitness.errors import InvalidData
from dpwitness.files import read_named_rows, shown, typed_column

#: A value of an attribute of a person: a number or a text.
AttributeValue: TypeAlias = int | float | str
#: The largest count, in people: sums of up to 8,192 counts of this size are exact as floats.
LARGEST_COUNT: Final = 1 << 40


def read_people(path: str | Path) -> dict[str, list[int] | list[float] | list[str]]:
    """The columns of a CSV file with a header and one line a person, or a number of people; a column has one type.

    Raises `InvalidData`, with the line, for missing values, uneven rows, and a header without names.
    """
    header, rows = read_named_rows(path, "holds no people: it needs a header line and at least one line a person")
    for line, row in rows:
        for name, cell in zip(header, row, strict=True):
            if not cell or cell.lower() in ("nan", "na", "null", "?"):
                raise InvalidData(
                    f"{shown(path)}, line {line}: the value of {name!r} is missing; fill it in or leave the row out"
                )
    columns = zip(*(row for _, row in rows), strict=True)
    return {name: typed_column(column) for name, column in zip(header, columns, strict=True)}


def randhie(*names: str) -> dict[str, list[int] | list[float] | list[str]]:
    """Columns of the RAND health insurance experiment, one row a person-year (statsmodels)."""
    from statsmodels.datasets import randhie as data  # type: ignore[import-untyped]  # no stubs; 0.6 s

    frame = data.load_pandas().data
    return {name: [int(v) if v == int(v) else v for v in frame[name].tolist()] for name in names}
