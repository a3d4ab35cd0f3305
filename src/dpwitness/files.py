"""Files: columns of numbers from CSV, and text that is written whole or not at all."""

import csv
import io
import json
import math
import os
import re
import stat
import sys
import tempfile
import uuid
import warnings
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpwitness.arrays import Floats, Integers
from dpwitness.errors import InvalidData

#: The prefix of the names of files while they are written.
TEMPORARY_PREFIX: Final = ".dpwitness-"
#: The largest number of bytes of a file: a device such as /dev/zero has no end.
MOST_FILE_BYTES = 1 << 28
#: The path that stands for standard input.
STDIN: Final = "-"
#: The texts of integers in `typed_column`, of at most 640 digits, the least limit that a user may set in Python.
INTEGER_TEXT: Final = re.compile(r"0|-?[1-9][0-9]{0,639}")
#: The pattern of the texts of real numbers in `typed_column`.
REAL_TEXT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-][0-9]+)?")


def check_writable(path: str | Path) -> None:
    """Raise `InvalidData` now, not after hours of runs, if `write_atomically` cannot write to the path."""
    target, mode = _destination(path)
    if mode is not None and not os.access(target, os.W_OK):
        raise InvalidData(f"cannot write {path}: Permission denied; choose another place")
    if _is_replaceable(mode):
        try:
            # A real file is made, since permissions say little about network, read-only and virtual file systems.
            with tempfile.TemporaryFile(dir=target.parent, prefix=TEMPORARY_PREFIX):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error


def overwrites(path: str | Path, other: str | Path) -> bool:
    """Whether writing to `path` would replace the file `other`, which may not exist yet."""
    target, mode = _destination(path)
    return _is_replaceable(mode) and "\0" not in str(other) and str(target) == os.path.realpath(other)


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the whole old or the whole new content.

    An existing file keeps its mode; a symbolic link stays and its target is written; devices and FIFOs are written to.
    Raises `InvalidData`; an old file then stays as it was.
    """
    target, mode = _destination(path)
    # Half of a surrogate pair has no UTF-8 form; as \\udxxx it is valid in JSON.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if _is_replaceable(mode):
            _replace(target, mode, data)
        else:
            with open(target, "wb") as stream:
                stream.write(data)
    except OSError as error:
        raise _unwritable(path, error) from error


def write_json(path: str | Path, value: object) -> None:
    """Write a JSON value by `write_atomically`. Raises `ValueError` for infinities and NaN."""
    write_atomically(path, json_text(value) + "\n")


def json_text(value: object) -> str:
    """The text of a JSON value, indented. Raises `ValueError` for infinities and NaN."""
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)


def _destination(path: str | Path) -> tuple[Path, int | None]:
    """The path to write to and the mode of its old file, if any.

    Raises `InvalidData` for a folder, and for a path whose folder does not exist.
    """
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidData(f"cannot write {text!r}: give the name of a file")
    if text == STDIN:
        raise InvalidData("cannot write -, which is standard input: give the name of a file, or ./- for that name")
    try:
        mode = os.stat(text).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise _unwritable(path, error) from error
    if text.endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise InvalidData(f"cannot write {path}: it is a folder; give the name of a file")
    if not _is_replaceable(mode):
        return Path(text), mode  # not resolved: the target of /dev/stdout may not be openable
    try:
        target = Path(os.path.realpath(text))
    except OSError as error:  # the working folder was removed
        raise _unwritable(path, error) from error
    if not target.parent.is_dir():
        raise InvalidData(f"cannot write {path}: there is no folder {Path(text).parent}")
    return target, mode


def _is_replaceable(mode: int | None) -> bool:
    """Whether a new file may replace a file of this mode: a regular file, or no file."""
    return mode is None or stat.S_ISREG(mode)


def _replace(target: Path, mode: int | None, data: bytes) -> None:
    """Replace a file by a new file with the given mode; None: the default mode of new files."""
    new = target.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}.tmp")
    try:
        # Others must not read the text of a private file before its mode is set.
        with open(new, "xb", opener=partial(os.open, mode=0o666 if mode is None else 0o600)) as file:
            file.write(data)
        if mode is not None:
            new.chmod(mode & 0o777)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _unwritable(path: str | Path, error: OSError) -> InvalidData:
    return InvalidData(f"cannot write {path}: {error.strerror or error}; choose another place")


def read_text(path: str | Path) -> str:
    """The text of a file of at most `MOST_FILE_BYTES` bytes, or of standard input for "-". Raises `InvalidData`."""
    name = shown(path)
    try:
        if str(path) == STDIN:
            data = sys.stdin.buffer.read(MOST_FILE_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MOST_FILE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidData(f"cannot read {name}: it is not UTF-8 text") from error
    except AttributeError as error:  # standard input is missing, or a stream of texts
        raise InvalidData(f"cannot read {name}: it is closed") from error
    except (OSError, ValueError) as error:  # a ValueError for a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else None
        raise InvalidData(f"cannot read {name}: {reason or error}") from error
    if len(data) > MOST_FILE_BYTES:
        raise InvalidData(f"cannot read {name}: it has more than {MOST_FILE_BYTES:,} bytes")
    return text


def shown(path: str | Path) -> str:
    """The name of a file for messages, on one line."""
    name = str(path)
    if name == STDIN:
        return "standard input"
    return name if name.isprintable() else repr(name)


def from_here(path: Path) -> str:
    """The path of a file, relative to the working folder if the file lies below."""
    with suppress(OSError, ValueError):  # the folder was removed, or the file lies elsewhere
        path = path.relative_to(Path.cwd())
    return str(path)


def as_utf8(name: str) -> str:
    """The name of a file in UTF-8, with bytes of another encoding escaped."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def read_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, as texts, each with the number of its line. Raises `InvalidData`."""
    reader = csv.reader(io.StringIO(read_text(path), newline=None), strict=True)  # line ends of any system
    rows: list[tuple[int, list[str]]] = []
    try:
        for row in reader:
            if rows and len(row) > len(first := rows[0][1]):
                raise csv.Error(f"expected {len(first)} fields in line {reader.line_num}, saw {len(row)}")
            if row:
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise InvalidData(f"{shown(path)} is not CSV: {error}") from error
    return rows


def read_named_rows(path: str | Path, empty: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of a CSV file's columns, and the line and stripped cells of each other row. Raises `InvalidData`.

    `empty`: the end of the message for a file without rows.
    """
    rows, place = read_rows(path), shown(path)
    if len(rows) < 2:
        raise InvalidData(f"{place} {empty}")
    header, *others = [(line, [cell.strip() for cell in row]) for line, row in rows]
    names = header[1]
    if len(set(names)) != len(names) or "" in names:
        raise InvalidData(f"{place}: every column needs a name of its own, not {', '.join(map(repr, names))}")
    for line, row in others:
        if len(row) != len(names):
            raise InvalidData(f"{place}, line {line}: {len(row)} values for {len(names)} columns")
    return names, others


def typed_column(cells: Sequence[str]) -> list[int] | list[float] | list[str]:
    """The values of a column of texts, all of one type. Only this function decides which texts are numbers.

    The values are integers if Python would write every cell so: no leading zeros, plus signs, spaces or underscores.
    Else they are real numbers if every cell is an integer or a decimal number, as -0.50; an exponent has a sign, as
    programs write it (1e-05; 1e5 may be a code). Else they are texts: 02138 makes the column texts.

    Different numbers have different values: if two cells differ by less than floats can hold, the column is of texts.
    """
    if all(map(INTEGER_TEXT.fullmatch, cells)):
        return [int(cell) for cell in cells]
    if all(map(REAL_TEXT.fullmatch, cells)):
        numbers = [float(cell) for cell in cells]
        if all(map(math.isfinite, numbers)) and len(set(numbers)) == len(set(map(Decimal, cells))):
            return numbers
    return list(cells)


def number_in(cell: str) -> int | float | None:
    """The number in a single cell; None for any other text."""
    (value,) = typed_column([cell])
    return None if isinstance(value, str) else value


def read_frame(path: str | Path) -> Any:
    """A CSV file as a DataFrame; `typed_column` decides which columns hold numbers. Raises `InvalidData`."""
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

    name, text = shown(path), read_text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Else pandas takes the first column for labels if a row has more values than the header has names.
            frame, texts = (
                pd.read_csv(io.StringIO(text, newline=None), index_col=False, dtype=dtype) for dtype in (None, object)
            )
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InvalidData(f"{name} is not CSV with a header line: {error}") from error
    except pd.errors.ParserWarning as error:
        raise InvalidData(f"{name} has more values in a line than names in its header: name each column") from error
    if len(frame.columns) == 1 and any(mark in (only := str(frame.columns[0])) for mark in ";\t"):
        raise InvalidData(f"{name} has one column, {only!r}: separate columns by commas")
    if not len(frame):
        raise InvalidData(f"{name} holds no records: give a header line and one record a line")
    for title, column in frame.items():
        if column.dtype.kind in "iuf" and not np.isinf(column).any():
            cells = texts[title].dropna().str.strip().tolist()
            if isinstance(next(iter(typed_column(cells)), None), str):
                frame[title] = texts[title].tolist()  # pandas chooses its type for texts
    return frame


def read_column(path: str | Path, column: str | None = None) -> Integers | Floats:
    """A column of a CSV file as a read-only array; integers stay integers.

    A first line that is not all numbers is a header. By default the column is "count", else the last column. Raises
    `InvalidData` for a missing or empty column, and, with the line, for text and for empty cells.
    """
    name, rows = shown(path), read_rows(path)
    if not rows:
        raise InvalidData(f"{name} is empty: give a CSV file with one number a line")
    header: list[str] = []
    if not all(map(reads_as_number, rows[0][1])):
        header, rows = [cell.strip() for cell in rows[0][1]], rows[1:]
    if column is not None and column not in header:
        known = ", ".join(header) or "no names, as the file has no header line"
        raise InvalidData(f"{name} has no column {column!r}; its columns: {known}")
    if not rows:
        of = f"column {column!r} of {name}" if column else name
        raise InvalidData(f"{of} is empty: there is no number below the header")
    wanted = "count" if column is None else column
    index = header.index(wanted) if wanted in header else len(header or rows[0][1]) - 1
    array = np.array([_cell(name, line, row[index].strip() if index < len(row) else "") for line, row in rows])
    array.flags.writeable = False
    return array


def _cell(name: str, line: int, cell: str) -> int | float:
    """The number in a cell. Raises `InvalidData`, with the line, for any other cell."""
    value = number_in(cell)
    if value is None:
        what = f"{cell!r} is not a finite number" if cell else "there is no value"
        raise InvalidData(f"{name}, line {line}: {what}; every line must hold a number, written as 12, -0.5 or 1e-05")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidData(f"{name}, line {line}: {value} does not fit into 64 bits; scale the numbers down")
    return value


def reads_as_number(cell: str) -> bool:
    """Whether a cell is a number in any notation of Python, and so not the name of a column."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
