# ruff: noqa: B905, UP031
"""Values as bytes, between two interpreters that may have different Pythons and different libraries.

Read by both: the file needs nothing but Python 3.8, and has no newer syntax. A message is eight bytes of length and one
value. Values are data alone, in an encoding of its own: nothing that is read is ever executed.
"""

from __future__ import annotations

import array
import io
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

#: How numbers of bytes and of entries are written.
LENGTH = struct.Struct("<Q")
FLOAT = struct.Struct("<d")
WHOLE = struct.Struct("<q")


#: Bytes of a message at most, and bytes that are read at once.
LONGEST = 1 << 32
BLOCK = 1 << 20


class Tagged:
    """A value of a type that the other side need not have: a text for the type, and a value that says which it is."""

    def __init__(self, kind: str, content: Any) -> None:
        self.kind = kind
        self.content = content


#: The tag of a run that raised: its content is the name of the exception's class.
RAISES = "raises"
#: The tag of a table: its content is the column names, the columns, the index or None where it counts the rows from 0;
#: then what the values do not say: the type of each column, the type and the name of the index, that of the columns;
#: and a text of all that it is besides, which outcomes are told apart by.
TABLE = "table"
#: The end of the text of a time that is the second of two equal ones.
FOLD = " fold"


_TAGS: dict[Any, bytes] = {list: b"l", tuple: b"t", set: b"S", frozenset: b"S"}


def pack(value: Any, out: bytearray) -> None:
    """Append the encoding of a value. Raises `TypeError` for an object of a type that is not known."""
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool:
        out += b"T" if value else b"F"
    elif kind is float:
        out += b"d" + FLOAT.pack(value)
    elif kind is int:
        _pack_whole(value, out)
    elif kind is str:
        _pack_bytes(b"s", value.encode("utf-8", "surrogatepass"), out)
    elif kind in (bytes, bytearray, memoryview):
        _pack_bytes(b"b", bytes(value), out)
    elif kind is complex:
        out += b"c" + FLOAT.pack(value.real) + FLOAT.pack(value.imag)
    elif kind in (list, tuple, set, frozenset):
        out += _TAGS[kind] + LENGTH.pack(len(value))
        for item in value:
            pack(item, out)
    elif kind is dict:
        out += b"D" + LENGTH.pack(len(value))
        for key, item in value.items():
            pack(key, out)
            pack(item, out)
    elif kind is Tagged:
        _pack_bytes(b"O", value.kind.encode("utf-8", "surrogatepass"), out)
        pack(value.content, out)
    else:
        _pack_object(value, out)


def _pack_whole(value: int, out: bytearray) -> None:
    if -(2**63) <= value < 2**63:
        out += b"i" + WHOLE.pack(value)
    else:
        _pack_bytes(b"I", hex(value).encode(), out)


def _pack_bytes(tag: bytes, held: bytes, out: bytearray) -> None:
    out += tag + LENGTH.pack(len(held)) + held


def _pack_object(value: Any, out: bytearray) -> None:
    """Objects of libraries, by what they offer: neither NumPy nor pandas need be there."""
    family, name = type(value).__module__.partition(".")[0], type(value).__name__
    if family == "numpy" and hasattr(value, "dtype"):
        _pack_numpy(value, out)
    elif family == "pandas" and hasattr(value, "columns"):
        index = value.index
        counted = type(index).__name__ == "RangeIndex" and (index.start, index.step, index.name) == (0, 1, None)
        columns = [value.iloc[:, k].tolist() for k in range(len(value.columns))]
        types = [_type_of(value.iloc[:, k].dtype) for k in range(len(value.columns))]
        ends = [index.start, index.stop, index.step] if type(index).__name__ == "RangeIndex" else None
        kind = [ends, _type_of(index.dtype), index.name, value.columns.name]
        labels = None if counted else index.tolist()
        pack(Tagged(TABLE, [list(value.columns), columns, labels, types, kind, _besides(value)]), out)
    elif family == "pandas" and hasattr(value, "tolist"):
        index = value.index.tolist() if hasattr(value, "iloc") else None
        besides = repr([_type_of(value.dtype), str(getattr(value, "name", None))])
        besides += _besides(value) if hasattr(value, "iloc") else ""
        pack(Tagged("pandas " + name, [index, value.tolist(), besides]), out)
    elif family == "pandas" and str(value) in ("NaT", "<NA>"):
        pack(Tagged("missing", str(value)), out)
    elif family == "polars" and name in _POLARS:
        pack(Tagged("polars " + name, list(map(_polars_file, _POLARS[name](value)))), out)
    elif family == "pyarrow" and name in ("Table", "ChunkedArray"):
        pack(Tagged("pyarrow " + name, _arrow_stream(value, name)), out)
    elif family == "pyarrow" and hasattr(value, "as_py"):
        pack(value.as_py(), out)
    elif hasattr(value, "isoformat"):
        pack(Tagged("time " + name, _time(value)), out)
    elif name in ("Decimal", "Fraction"):
        pack(Tagged(name, [_nearest(value), str(value)]), out)
    elif name == "timedelta":
        pack(Tagged(name, [value.total_seconds(), repr(value)]), out)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        pack(Tagged("named tuple " + name, dict(zip(value._fields, value))), out)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        pack(Tagged("dataclass " + name, {key: getattr(value, key) for key in value.__dataclass_fields__}), out)
    elif hasattr(type(value), "__members__"):
        pack(Tagged("enum " + name, str(value.name or value.value)), out)
    elif hasattr(value, "__array__") and not isinstance(value, type):
        _pack_numpy(value.__array__(), out)
    else:
        for known in _DERIVED:
            if isinstance(value, known):
                pack(known(value) if known is not range else list(value), out)
                return
        raise TypeError(name)


#: The columns of objects of Polars.
_POLARS: dict[str, Any] = {
    "DataFrame": lambda frame: frame.get_columns(),
    "LazyFrame": lambda frame: frame.collect().get_columns(),
    "Series": lambda series: [series],
}


def _polars_file(column: Any) -> bytes:
    """Return a column as a stream of Arrow: one of several columns with categories has them in a random order."""
    file = io.BytesIO()
    column.to_frame().write_ipc_stream(file)
    return file.getvalue()


def _arrow_stream(value: Any, name: str) -> bytes:
    """Return a table of Arrow, or a column as a table, in Arrow's own format for streams."""
    import pyarrow as pa  # type: ignore[import-untyped]  # only where a table comes

    table = value if name == "Table" else pa.table({"": value})
    columns = [column.unify_dictionaries().combine_chunks() for column in table.columns]
    # One batch, without rows, too: what a column of a dictionary may hold stands in it.
    columns = [column.chunk(0) if hasattr(column, "chunks") else column for column in columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=table.schema))
    return bytes(sink.getvalue().to_pybytes())


#: Tags of tables and columns of Polars and Arrow: their content is in the format of these, of Polars by columns.
FILES = ("polars DataFrame", "polars LazyFrame", "polars Series", "pyarrow Table", "pyarrow ChunkedArray")


def table_of(kind: str, held: Any) -> object:
    """Return what a tag of `FILES` stands for. Raises `ValueError`, and `ImportError` without the library."""
    library, _, name = kind.partition(" ")
    try:
        if library == "polars":
            import polars  # only where a table comes

            frame = polars.DataFrame([polars.read_ipc_stream(io.BytesIO(file)).to_series() for file in held])
            return frame.lazy() if name == "LazyFrame" else frame.to_series() if name == "Series" else frame
        import pyarrow as pa

        table = pa.ipc.open_stream(held).read_all()
        return table if name == "Table" else table.column(0)
    except ImportError:
        raise
    except Exception as error:  # whatever these raise for a damaged file
        raise ValueError(str(error)) from error


#: Types whose derived classes are sent as these.
_DERIVED: tuple[Any, ...] = (float, str, int, dict, list, tuple, set, frozenset, bytes, range)


def _type_of(dtype: Any) -> object:
    """The name of a column's type; of one of categories these, in their order, and whether they are ordered."""
    categories = getattr(dtype, "categories", None)
    return str(dtype) if categories is None else [categories.tolist(), str(categories.dtype), bool(dtype.ordered)]


def _besides(value: Any) -> str:
    """What a table or a Series of pandas is besides its values: attributes, and the names, types and levels of axes."""
    axes = [
        [list(map(str, axis.names)), _type_of(axis.dtype), [level.tolist() for level in getattr(axis, "levels", ())]]
        for axis in value.axes
    ]
    return repr([_attribute(getattr(value, "attrs", {})), axes])


def _attribute(value: Any) -> object:
    """What a user has put beside values; of an object of another kind its kind, since it may show where it lies."""
    if isinstance(value, dict):
        return [[_attribute(key), _attribute(one)] for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_attribute, value)]
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *sorted(repr(_attribute(one)) for one in value)]
    if hasattr(value, "tolist"):
        return [str(value.dtype), value.tolist()]
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    return _time(value) if hasattr(value, "isoformat") else type(value).__qualname__


def _time(value: Any) -> str:
    """A time as text, with which of two equal ones it is where a clock is set back."""
    return "%s%s" % (value.isoformat(), FOLD if getattr(value, "fold", 0) else "")


def _nearest(value: Any) -> float:
    """The float nearest to an exact number."""
    try:
        return float(value)
    except OverflowError:  # of a fraction
        return float("inf" if value > 0 else "-inf")
    except ValueError:  # a signalling NaN
        return float("nan")


def _pack_numpy(value: Any, out: bytearray) -> None:
    """A NumPy array or scalar: numbers as they lie in memory, anything else as lists."""
    if hasattr(value, "mask"):  # None where an entry is masked
        pack(value.tolist(), out)
    elif value.dtype.kind in "biufc" and value.dtype.itemsize <= 16 and value.dtype.char not in "gG" and value.ndim:
        shape = list(value.shape)
        little = value.astype(value.dtype.newbyteorder("<"))
        order = "F" if value.ndim == 2 and value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        out += b"A"
        pack([little.dtype.str, shape, little.tobytes(order), order], out)
    elif value.dtype.kind in "mM":
        pack(Tagged("numpy " + value.dtype.str, value.astype("int64").tolist()), out)
    elif value.dtype.names:
        pack(Tagged("records " + repr(value.dtype.names), value.tolist()), out)
    elif value.dtype.char in ("g", "G") and not value.ndim:  # longer than a float: what tolist() returns is the same
        near = float(value) if value.dtype.char == "g" else complex(value)
        pack(Tagged("numpy " + value.dtype.name, [near, str(value)]), out)
    else:
        pack(value.tolist(), out)


class Reader:
    """Reads the encoding of `pack`, one value after the other."""

    def __init__(
        self, held: bytes, make: Callable[[str, object], object], array_of: Callable[[str, object, bytes, str], object]
    ) -> None:
        self.held, self.at, self.make, self.array_of = held, 0, make, array_of

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises `ValueError` where there are fewer."""
        if count > len(self.held) - self.at:
            raise ValueError("the message is cut off")
        self.at += count
        return self.held[self.at - count : self.at]

    def length(self) -> int:
        """Return the next length."""
        length: int = LENGTH.unpack(self.take(8))[0]
        return length

    def value(self) -> Any:
        """Return the next value. Raises `ValueError` for what is no encoding of one."""
        tag = self.take(1)
        if tag == b"d":
            return FLOAT.unpack(self.take(8))[0]
        if tag == b"i":
            return WHOLE.unpack(self.take(8))[0]
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag == b"s":
            return self.take(self.length()).decode("utf-8", "surrogatepass")
        if tag == b"b":
            return self.take(self.length())
        if tag == b"I":
            return int(self.take(self.length()).decode(), 16)
        if tag == b"c":
            return complex(FLOAT.unpack(self.take(8))[0], FLOAT.unpack(self.take(8))[0])
        if tag in _SEQUENCES:
            return _SEQUENCES[tag](self.value() for _ in range(self.length()))
        if tag == b"D":
            return {self.value(): self.value() for _ in range(self.length())}
        if tag == b"A":
            return self.array_of(*self.value())
        if tag == b"O":
            return self.make(self.take(self.length()).decode("utf-8", "surrogatepass"), self.value())
        raise ValueError("unknown tag %r" % tag)


_CONSTANTS = {b"N": None, b"T": True, b"F": False}
_SEQUENCES = {b"l": list, b"t": tuple, b"S": frozenset}


def packed(value: object) -> bytes:
    """Return the encoding of a value."""
    out = bytearray()
    pack(value, out)
    return bytes(out)


def send(stream: IO[bytes], held: bytes) -> None:
    """Write one message. Raises `ValueError` for one that the other side would not read."""
    if len(held) > LONGEST:
        raise ValueError("a message of %d bytes is too long" % len(held))
    stream.write(LENGTH.pack(len(held)) + held)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one message; None where the other side has ended. Raises `ValueError` for one that is too long."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    left = LENGTH.unpack(head)[0]
    if left > LONGEST:
        raise ValueError("a message of %d bytes is too long" % left)
    held = bytearray()
    while left:  # in blocks: what is said to come takes no memory before it has come
        block = stream.read(min(left, BLOCK))
        if not block:
            return None
        held += block
        left -= len(block)
    return bytes(held)


def immutable(value: object) -> bool:
    """Whether a function cannot change a value that it is given."""
    if isinstance(value, (tuple, frozenset)):
        return all(immutable(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, complex, str, bytes))


def floats(values: list[Any]) -> bytes | None:
    """Return a list of floats, little-endian, as they lie in memory; None where one is something else."""
    if not all(type(value) is float or type(value).__name__ == "float64" for value in values):
        return None
    held = array.array("d", values)
    if sys.byteorder == "big":
        held.byteswap()
    return held.tobytes()
