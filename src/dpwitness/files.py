"""Files in and out: columns of numbers from CSV, text written whole or not at all."""

import csv
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dpwitness.errors import InvalidData
from dpwitness.neighbours import Data, as_input


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or all of the new, never a part.

    Raises `InvalidData` where the folder does not exist or must not be written to.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    except OSError as error:
        raise InvalidData(f"cannot write {path}: {error.strerror or error}; choose another place") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)  # as an ordinary new file; mkstemp makes private ones
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_text(path: str | Path) -> str:
    """The text of a file; raises `InvalidData` where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidData(f"cannot read {path}: {reason or error}") from error


def read_column(path: str | Path, column: str | None = None) -> Data:
    """One column of a CSV file as a read-only array; whole numbers stay integers.

    A first line that is not all numbers is a header. Of several columns, where none is named, the one called "count",
    else the last. Raises `InvalidData` for a missing or empty column, for text and for empty cells, with the line.
    """
    rows = [(number, row) for number, row in enumerate(csv.reader(read_text(path).splitlines()), 1) if row]
    if not rows:
        raise InvalidData(f"{path} is empty: give a CSV file with one number a line")
    header: list[str] | None = None
    if any(_number(cell) is None for cell in rows[0][1]):
        header = [cell.strip() for cell in rows[0][1]]
        rows = rows[1:]
    index = 0
    if column is not None:
        if header is None or column not in header:
            known = ", ".join(header) if header else "none: the file has no header line"
            raise InvalidData(f"{path} has no column {column!r}; its columns: {known}")
        index = header.index(column)
    elif header and "count" in header:
        index = header.index("count")
    else:
        index = len(header or rows[0][1]) - 1
    values: list[Any] = []
    for number, row in rows:
        cell = row[index].strip() if index < len(row) else ""
        value = _number(cell)
        if value is None:
            what = f"{cell!r} is not a finite number" if cell else "there is no value"
            raise InvalidData(f"{path}, line {number}: {what}; every line must hold a number")
        values.append(value)
    if not values:
        name = f"column {column!r} of {path}" if column else str(path)
        raise InvalidData(f"{name} is empty: there is no number below the header")
    return as_input(np.array(values, np.int64) if all(isinstance(v, int) for v in values) else values)


def _number(cell: str) -> int | float | None:
    try:
        return int(cell)
    except ValueError:
        pass  # perhaps it has a decimal point
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
