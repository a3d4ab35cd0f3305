"""Files in and out: columns of numbers from CSV, text written whole or not at all."""

import io
import json
import math
import os
import re
import stat
import sys
import tempfile
import warnings
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpwitness.errors import InvalidData

#: Of temporary files; short, so that a long file name leaves room for the rest.
PREFIX: Final = ".dpwitness-"
#: Bytes that are read of one file: a device such as /dev/zero has no end.
LARGEST = 1 << 28
#: Bytes of a file that say of which kind it is.
HEAD: Final = 4096
#: Standard input as a path.
STDIN: Final = "-"
#: Texts of integers and of real numbers, see `typed_column`.
INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
REAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-][0-9]+)?")
#: The process's own open files: what stands under these names must not be replaced, whatever it is.
STREAMS: Final = ("/dev/std", "/dev/fd/", "/proc/")


class GivenPath(str):
    """A path as it was given, with the full one that it stood for then: a mechanism may go to another folder.

    Attributes
    ----------
    full
        The path from the root; as given, where the present folder is not there any more.
    """

    __slots__ = ("full",)
    full: str

    def __new__(cls, text: str) -> "GivenPath":
        """Return the text with its full path."""
        given = super().__new__(cls, text)
        try:
            given.full = os.path.join(os.getcwd(), text)
        except OSError:
            given.full = text
        return given


def check_writable(path: str | Path) -> None:
    """Raise `InvalidData` now, not after hours of runs, where `write_atomically` could not write.

    That is a folder, a file that must not be written to, or a place whose folder does not exist or must not be written
    to. Nothing is left behind. A disk may still fill up later.
    """
    target, mode, replaceable = _destination(path)
    if mode is not None and not os.access(target, os.W_OK):
        raise InvalidData(f"cannot write {path}: Permission denied; choose another place")
    if replaceable:
        try:
            # A real file, since a permission says little of network, read-only and virtual file systems.
            with tempfile.TemporaryFile(dir=target.parent, prefix=PREFIX):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error


def overwrites(path: str | Path, other: str | Path) -> bool:
    """Whether what is written at a path would replace what is there, or will be there, under another name."""
    if not _destination(path)[2]:
        return False
    other = "/dev/stdin" if str(other) == STDIN else other
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them is not there
        return os.path.realpath(path) == os.path.realpath(other)
    except ValueError:  # no file has such a name
        return False


def check_replaceable(path: str | Path, mark: bytes) -> None:
    """Raise `InvalidData` for a file that is there and of another kind than is to be written: no `mark` in its head."""
    if not os.path.isfile(path):
        return
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise _unwritable(path, error) from error
    if head and mark not in head:
        raise InvalidData(f"{path} is there, and was not written by this option: delete it, or give another name")


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or all of the new, never a part.

    An existing file keeps its mode, a symbolic link stays and what it points to is written; devices, FIFOs and the
    process's own streams, which cannot be replaced, are appended to. Raises `InvalidData` where that fails; an old file
    then stays as it was.
    """
    target, mode, replaceable = _destination(path)
    # Half of a surrogate pair has no UTF-8 form; as \\udxxx it is what JSON has for it.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        if replaceable:
            _replace(target, mode, data)
        else:
            with open(os.open(target, os.O_WRONLY | os.O_APPEND), "wb", buffering=0) as stream:
                rest = memoryview(data)
                while rest:
                    rest = rest[stream.write(rest) :]
    except OSError as error:
        raise _unwritable(path, error) from error


def write_json(path: str | Path, value: object) -> None:
    """Write a JSON value as people read it, in the way of `write_atomically`; JSON has no infinities."""
    write_atomically(path, json_text(value) + "\n")


def json_text(value: object) -> str:
    """A JSON value as people read it."""
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)


def _destination(path: str | Path) -> tuple[Path, int | None, bool]:
    """Where to write, the mode of what is there now, and whether a new file may take its place.

    Raises `InvalidData` for a folder, and where there is no folder.
    """
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidData(f"cannot write {text!r}: give the name of a file")
    if text == STDIN:
        raise InvalidData("cannot write -, which is standard input: give the name of a file, or ./- for that name")
    full = path.full if isinstance(path, GivenPath) else text
    try:
        mode = os.stat(full).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise _unwritable(path, error) from error
    if text.endswith(os.sep) or (mode is not None and stat.S_ISDIR(mode)):
        raise InvalidData(f"cannot write {path}: it is a folder; give the name of a file")
    if mode is not None and (not stat.S_ISREG(mode) or text.startswith(STREAMS)):
        return Path(text), mode, False  # as given: /dev/stdout resolves to a name that may not be opened
    target = Path(os.path.realpath(full))
    if not target.parent.is_dir():
        raise InvalidData(f"cannot write {path}: there is no folder {Path(text).parent}")
    return target, mode, True


def _replace(target: Path, mode: int | None, data: bytes) -> None:
    """Put a new file in the place of an old one of the given mode, or where there is none."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=PREFIX, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if mode is None:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask  # as an ordinary new file; mkstemp makes private ones
        Path(name).chmod(mode & 0o777)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _unwritable(path: str | Path, error: OSError) -> InvalidData:
    return InvalidData(f"cannot write {path}: {error.strerror or error}; choose another place")


def read_text(path: str | Path) -> str:
    """The text of a file, of standard input where the path is "-".

    Raises `InvalidData` where it cannot be read, or has more than `LARGEST` bytes.
    """
    name = shown(path)
    try:
        if str(path) == STDIN:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(LARGEST + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidData(f"cannot read {name}: it is not UTF-8 text") from error
    except AttributeError as error:  # no standard input, or one that holds no bytes
        raise InvalidData(f"cannot read {name}: it is closed") from error
    except (OSError, ValueError) as error:  # a ValueError for a name with a null byte
        reason = error.strerror if isinstance(error, OSError) else None
        raise InvalidData(f"cannot read {name}: {reason or error}") from error
    if len(data) > LARGEST:
        raise InvalidData(f"cannot read {name}: it has more than {LARGEST:,} bytes")
    return text


def shown(path: str | Path) -> str:
    """A file's name as messages have it: on one line."""
    name = str(path)
    if name == STDIN:
        return "standard input"
    return name if name.isprintable() else repr(name)


def as_utf8(name: str) -> str:
    """The name of a file as UTF-8 has it, where the locale has read it as something else: no halves of surrogates."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def read_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, each with the number of its line; raises `InvalidData`."""
    import pandas as pd  # type: ignore[import-untyped]  # no stubs; 0.5 s

    text = io.StringIO(read_text(path), newline=None)  # lines may end as on any system
    try:
        # As texts: what a column holds is known only when all of it was read, and then 2^63 − 1 must still be exact.
        # The engine in Python tells a missing cell from an empty one.
        frame = pd.read_csv(text, header=None, dtype=object, na_filter=False, skip_blank_lines=False, engine="python")
    except pd.errors.EmptyDataError:
        return []
    except pd.errors.ParserError as error:
        raise InvalidData(f"{shown(path)} is not CSV: {error}") from error
    rows = ([cell for cell in row if isinstance(cell, str)] for row in frame.to_numpy().tolist())
    return [(number, row) for number, row in enumerate(rows, 1) if row]


def read_named_rows(path: str | Path, empty: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of a CSV file's columns, and its rows as `read_rows` has them, with cells without space around them.

    `empty`: to follow the path, of a file without rows. Raises `InvalidData` for it, for columns without a name of
    their own, and for uneven rows.
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
    """The values of a column of texts, all of one type: the only place that decides which texts are numbers.

    The values are integers if every cell is written as Python writes one: no leading zeros, plus signs, spaces or
    underscores. Else they are real numbers if every cell is such an integer or a decimal number, as -0.50; an exponent
    has a sign, as programs write it (1e-05; 1e5 may be a code). Else they are texts: 02138 makes the column texts.

    Two values are equal only if their texts are equal, or all cells are numbers and these two are the same number:
    a column with numbers that differ by less than a float can hold is texts, too.
    """
    if all(map(INTEGER.fullmatch, cells)):
        try:
            return [int(cell) for cell in cells]
        except ValueError:  # more digits than Python reads
            return list(cells)
    if all(map(REAL.fullmatch, cells)):
        numbers = [float(cell) for cell in cells]
        if all(map(math.isfinite, numbers)) and len(set(numbers)) == len(set(map(Decimal, cells))):
            return numbers
    return list(cells)


def number_in(cell: str) -> int | float | None:
    """The number that a cell holds by itself, where it is no value of a column to be typed; None for a text."""
    (value,) = typed_column([cell])
    return None if isinstance(value, str) else value


def read_frame(path: str | Path) -> Any:
    """A CSV file with a header line as a DataFrame. Raises `InvalidData`.

    Missing and infinite values and flags are as pandas reads them; `typed_column` decides which columns hold numbers.
    """
    import pandas as pd

    text = read_text(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Else pandas takes the first of more values than names for a label, and moves all names by a column.
            frame = pd.read_csv(io.StringIO(text, newline=None), index_col=False)
            texts = pd.read_csv(io.StringIO(text, newline=None), index_col=False, dtype=object)
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        raise InvalidData(f"{shown(path)} is not CSV with a header line: {error}") from error
    except pd.errors.ParserWarning as error:
        raise InvalidData(
            f"{shown(path)} has more values in a line than names in its header: give each column a name"
        ) from error
    if len(frame.columns) == 1 and any(mark in str(frame.columns[0]) for mark in ";\t"):
        name = str(frame.columns[0])
        raise InvalidData(f"{shown(path)} has one column, {name!r}: separate columns by commas")
    if not len(frame):
        raise InvalidData(f"{shown(path)} holds no records: give a header line and one record a line")
    for name, column in frame.items():
        if column.dtype.kind in "iuf" and not np.isinf(column).any():
            cells = texts[name].dropna().str.strip().tolist()
            if isinstance(next(iter(typed_column(cells)), None), str):
                frame[name] = texts[name].tolist()  # of the type that pandas has for texts
    return frame


def read_column(path: str | Path, column: str | None = None) -> NDArray[np.int64] | NDArray[np.float64]:
    """One column of a CSV file as a read-only array; whole numbers stay integers.

    A first line that is not all numbers is a header. Of several columns, where none is named, the one called "count",
    else the last. Raises `InvalidData` for a missing or empty column, for text and for empty cells, with the line.
    """
    name, rows = shown(path), read_rows(path)
    if not rows:
        raise InvalidData(f"{name} is empty: give a CSV file with one number a line")
    header: list[str] | None = None
    if not all(map(reads_as_number, rows[0][1])):
        header = [cell.strip() for cell in rows[0][1]]
        rows = rows[1:]
    index = _column_index(name, header, len(rows[0][1]) if rows else 0, column)
    values = [_cell(name, number, row[index].strip() if index < len(row) else "") for number, row in rows]
    if not values:
        name = f"column {column!r} of {name}" if column else name
        raise InvalidData(f"{name} is empty: there is no number below the header")
    whole = all(isinstance(value, int) for value in values)
    array = np.array(values, np.int64) if whole else np.array(values, np.float64)
    array.flags.writeable = False
    return array


def _column_index(name: str, header: list[str] | None, width: int, column: str | None) -> int:
    """The position of the column: of the one that is named, else of "count", else of the last."""
    if column is not None:
        if header is None or column not in header:
            known = ", ".join(header) if header else "none: the file has no header line"
            raise InvalidData(f"{name} has no column {column!r}; its columns: {known}")
        return header.index(column)
    if header and "count" in header:
        return header.index("count")
    return len(header or range(width)) - 1


def _cell(name: str, line: int, cell: str) -> int | float:
    """The number in a cell. Raises `InvalidData`, with the line, for anything else."""
    value = number_in(cell)
    if value is None:
        what = f"{cell!r} is not a finite number" if cell else "there is no value"
        raise InvalidData(f"{name}, line {line}: {what}; every line must hold a number, written as 12, -0.5 or 1e-05")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidData(f"{name}, line {line}: {value} does not fit into 64 bits; scale the numbers down")
    return value


def reads_as_number(cell: str) -> bool:
    """Whether Python reads a number in a cell, however it is written: such a cell is no name of a column."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
