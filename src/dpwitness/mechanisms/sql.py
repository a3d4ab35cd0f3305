"""A database query as a mechanism: each run inserts the records into a table, runs the query, and rolls back."""

import os
import sqlite3
import sys
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, class_and_text
from dpwitness.errors import DPWitnessError, InvalidOutcome, InvalidParameter, MechanismError
from dpwitness.frames import frames_of
from dpwitness.mechanisms.mechanism import LONGEST_ROW
from dpwitness.mechanisms.outcomes import ExceptionOutcome
from dpwitness.mechanisms.python import PythonMechanism
from dpwitness.neighbours import Data, shown
from dpwitness.neighbours.domains import is_missing, plain

#: A connection of a driver of PEP 249; drivers have no common type.
Connection = Any


def sql(
    connection: Callable[[], Connection], query: str | Callable[[Connection], object], *, table: str | Sequence[str]
) -> "SqlFunction":
    """Return a mechanism that runs a query on a table of its input's records.

    Each run inserts the records of its input into the table, runs the query, and rolls the transaction back. The
    outcome is the result of the query: a single value, a list of values for one column, else a list of named tuples.
    Rows have the order in which the database returns them; without ORDER BY this is an arbitrary order, which is part
    of the outcome and is tested too.

    Parameters
    ----------
    connection
        A function without parameters that makes a connection of any driver of PEP 249 (sqlite3, psycopg, duckdb), not
        in autocommit mode. It is called once in each process. It may create the table, views and functions if it
        commits them. A connection of sqlite3 needs `check_same_thread=False`.
    query
        One statement, or a function of the connection that returns the outcome. It must neither commit nor roll back.
    table
        The name of an empty table, as the database stores it, or its parts, such as ("public", "people"). Records that
        are dicts, columns or rows of a DataFrame are inserted by the names of their fields, other records by position.
        NaN in arrays, columns and DataFrames becomes NULL; NaN in a list of records stays NaN.

    Returns
    -------
    SqlFunction
        An object that can be checked like any function.

    Raises
    ------
    InvalidParameter
        If an argument has another type, or `table` is empty.
    """
    if not callable(connection) or hasattr(connection, "rollback"):  # sqlite3's connections are callable
        raise InvalidParameter(
            f"connection={brief(connection)} must be a function without parameters that makes a connection (PEP 249)"
        )
    if not callable(query) and not (isinstance(query, str) and query.strip()):
        raise InvalidParameter(f"query={brief(query)} must be a text, or a function of a connection")
    parts = table if isinstance(table, list | tuple) else (table,)
    if not parts:
        raise InvalidParameter("table=() must be the name of a table")
    return SqlFunction(connection, query, ".".join(map(quoted, parts)))


class SqlFunction:
    """A query of a table that can be checked like any function; each process makes its own connection."""

    def __init__(self, connect: Any, query: Any, table: str) -> None:
        self._connect, self._query, self._table = connect, query, table
        text = " ".join(query.split()) if isinstance(query, str) else str(getattr(query, "__name__", "query"))
        self.__name__ = self.__qualname__ = text if len(text) <= 60 else f"{text[:59]}…"
        self._forget_connection()

    def _forget_connection(self) -> None:
        self._connection: Connection = None
        self._lock, self._pid = threading.Lock(), os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        return SqlFunction, (self._connect, self._query, self._table)

    def mapped(self, change: Callable[[Any], Any]) -> "SqlFunction":
        """A copy whose functions are replaced by `change(function)`."""
        query = self._query if isinstance(self._query, str) else change(self._query)
        return SqlFunction(change(self._connect), query, self._table)

    def __call__(self, records: Data) -> object:
        """Insert the records, run the query, and roll back.

        Raises `MechanismError` for records that the table does not take, and for a table that holds rows before the
        first run or after a run.
        """
        columns, rows = rows_of(records)
        if self._pid != os.getpid():  # after a fork, the connection is the parent's
            self._forget_connection()
        with self._lock:
            if self._connection is None:
                self._connection = self._opened()
            begin = getattr(self._connection, "begin", None)
            if callable(begin):  # DuckDB commits each statement otherwise
                begin()
            try:
                self._insert(columns, rows)
                return self._result()
            finally:
                self._roll_back()

    def _opened(self) -> Connection:
        """A new connection. Raises `InvalidParameter` if connecting fails, `MechanismError` for a table with rows."""
        try:
            connection = self._connect()
        except Exception as error:
            raise InvalidParameter(f"connection={brief(self._connect)} raised {class_and_text(error)}") from error
        if not hasattr(connection, "rollback"):
            raise InvalidParameter(
                f"connection={brief(self._connect)} returned {brief(connection)}, which is not a connection"
            )
        weakref.finalize(self, _close, connection)
        mode = getattr(connection, "autocommit", None)
        legacy = isinstance(connection, sqlite3.Connection) and mode not in (True, False)
        if mode is True or (legacy and connection.isolation_level is None):
            raise InvalidParameter(
                f"connection={brief(connection)} is in autocommit mode, in which nothing is rolled back: give a "
                "connection without autocommit"
            )
        if left := self._count(connection):
            raise MechanismError(
                f"table {self._table} holds {left} rows: give an empty table, such as a copy of its structure; no "
                "row was changed"
            )
        return connection

    def _count(self, connection: Connection) -> int:
        try:
            cursor = _cursor(connection)
            cursor.execute(f"SELECT count(*) FROM {self._table}")
            return int(cursor.fetchall()[0][0])
        except Exception as error:
            raise MechanismError(
                f"table {self._table} cannot be read ({class_and_text(error)}): create it in the function that makes "
                "the connection, and commit it"
            ) from error

    def _insert(self, columns: Sequence[str] | None, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        style = _paramstyle(self._connection)
        marks = ["?" if style == "qmark" else "%s" if "format" in style else f":{k + 1}" for k in range(len(rows[0]))]
        target = self._table if columns is None else f"{self._table} ({', '.join(map(quoted, columns))})"
        if "format" in style:  # where % marks a value
            target = target.replace("%", "%%")
        try:
            _cursor(self._connection).executemany(f"INSERT INTO {target} VALUES ({', '.join(marks)})", rows)
        except Exception as error:
            raise MechanismError(
                f"table {self._table} does not take the rows {shown([*map(list, rows)])} ({class_and_text(error)})"
            ) from error

    def _result(self) -> object:
        """The result of the query. Raises any error of the database, and `InvalidOutcome` for too many rows."""
        if not isinstance(self._query, str):
            return self._query(self._connection)
        cursor = _cursor(self._connection)
        cursor.execute(self._query)
        names = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchmany(LONGEST_ROW + 1) if names else []
        if len(rows) > LONGEST_ROW:
            raise InvalidOutcome(
                f"{self.__name__} gave more than {LONGEST_ROW} rows, which are taken for a result without end: add "
                "LIMIT, or aggregate"
            )
        if len(names) == 1:
            return rows[0][0] if len(rows) == 1 else [row[0] for row in rows]
        return list(map(_row_type(tuple(names))._make, rows))

    def _roll_back(self) -> None:
        """Undo the transaction. Raises `MechanismError` if that fails, or if rows are left."""
        try:
            self._connection.rollback()
        except Exception as error:
            self._connection = None
            raise MechanismError(
                f"{self.__name__}: the rollback failed ({class_and_text(error)}); a query must neither commit, roll "
                "back nor close the connection"
            ) from error
        if left := self._count(self._connection):
            self._connection = None
            raise MechanismError(
                f"table {self._table} holds {left} rows after the rollback: {self.__name__} commits, or there are no "
                "transactions; remove these rows, and give a query that does not commit"
            )

    def interrupt(self) -> None:
        """Stop the running query, if the driver can."""
        end = getattr(self._connection, "interrupt", None) or getattr(self._connection, "cancel", None)
        if self._lock.locked() and callable(end):
            with suppress(Exception):
                end()


def _close(connection: Connection) -> None:
    with suppress(Exception):  # drivers raise errors of their own for a lost connection
        connection.close()


def _cursor(connection: Connection) -> Any:
    """An object that executes statements: the connection itself for DuckDB, whose cursors are further connections."""
    own = hasattr(connection, "begin") and hasattr(connection, "executemany")
    return connection if own else connection.cursor()


def _paramstyle(connection: Connection) -> str:
    """The driver's style of parameters in a statement (PEP 249); "qmark" if the driver states no style."""
    name = type(connection).__module__.partition(".")[0].lstrip("_")
    return str(getattr(sys.modules.get(name), "paramstyle", "qmark"))


@cache
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


def quoted(name: object) -> str:
    """A name quoted as an SQL identifier. Raises `InvalidParameter` unless it is a text that is not empty."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidParameter(f"{brief(name)} must be the name of a table or a column: a text that is not empty")
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def rows_of(data: Data) -> tuple[tuple[str, ...] | None, list[tuple[Any, ...]]]:
    """The names of a dataset's columns, None for records without field names, and its rows.

    Raises `MechanismError` for an input that is not a dataset of records.
    """
    frames = frames_of(data)
    if frames is not None:
        data = frames.columns(data)
    if isinstance(data, Mapping):
        columns = [column.tolist() if hasattr(column, "tolist") else list(column) for column in data.values()]
        return tuple(map(str, data)), [tuple(map(_null_if_missing, row)) for row in zip(*columns, strict=True)]
    if isinstance(data, np.ndarray) and data.ndim:
        table = data.reshape(len(data), -1).tolist() if data.size else []
        return None, [tuple(map(_null_if_missing, row)) for row in table]
    if not isinstance(data, list):
        raise MechanismError(f"a table takes a list of records, an array, columns or a DataFrame, not {shown(data)}")
    if data and all(isinstance(record, Mapping) for record in data):
        names = tuple(map(str, data[0]))
        if any(tuple(map(str, record)) != names for record in data):
            raise MechanismError(f"records of one table must have the same fields in one order, not {shown(data)}")
        return names, [tuple(map(plain, record.values())) for record in data]
    return None, [tuple(map(plain, r if isinstance(r, list | tuple) else (r,))) for r in data]


def _null_if_missing(value: object) -> object:
    return None if is_missing(value) else plain(value)


class SqlMechanism(PythonMechanism):
    """A database query; each run is a transaction."""

    in_process = False  # noise is drawn in the database
    converts = False  # a list and an array make the same rows

    @override
    def _exception(self, error: BaseException, *where: Any) -> ExceptionOutcome:
        # A table that cannot be filled or emptied is not an outcome.
        if isinstance(error, DPWitnessError):
            raise error
        return super()._exception(error, *where)

    @override
    def release(self) -> None:
        function: Any = self.signature.function
        function.interrupt()
