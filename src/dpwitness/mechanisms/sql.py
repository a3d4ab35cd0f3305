"""A query of a database as a mechanism: the records are the rows of a table, in a transaction that is rolled back.

The rows are inserted once for a batch of runs of one input, so that a run costs what the query costs. Nothing is ever
committed: the table must be empty before, and it is empty after.
"""

import copy
import inspect
import os
import re
import sqlite3
import sys
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from typing_extensions import override

from dpwitness.checks import brief, is_failure, items
from dpwitness.errors import DPWitnessError, InvalidOutcome, InvalidParameter, MechanismError, MechanismTimeout
from dpwitness.frames import frames_of
from dpwitness.mechanisms.draws import Draws
from dpwitness.mechanisms.failures import raised
from dpwitness.mechanisms.mechanism import LONGEST_ROW
from dpwitness.mechanisms.outcomes import SINGLE_VALUES, ExceptionOutcome, Row
from dpwitness.mechanisms.python import Outputs, PythonMechanism, Side, VectorisedMechanism
from dpwitness.mechanisms.signature import GENERATOR_NAMES
from dpwitness.neighbours import Data, shown

#: A connection of PEP 249, and what it gives for a query; drivers have no common types.
Connection = Any
#: Words that a query may begin with: none of them ends a transaction.
READING: Final = ("select", "with", "values", "table", "from")
COMMENT: Final = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.DOTALL)
#: States of a connection of libpq in which a transaction is open; a lost connection has another one.
OPEN: Final = (1, 2, 3)
#: Letters of a query that name it for people.
NAMED: Final = 60
#: How a driver marks the values of a statement: for value k of a column, and whether they come by name.
PARAMETERS: Final[Mapping[str, tuple[Callable[[int], str], bool]]] = {
    "qmark": (lambda k: "?", False),
    "numeric": (lambda k: f":{k + 1}", False),
    "named": (lambda k: f":v{k}", True),
    "format": (lambda k: "%s", False),
    "pyformat": (lambda k: f"%(v{k})s", True),
}


def sql(
    connection: Connection,
    query: str | Callable[[Connection], object],
    *,
    table: str | Sequence[str],
    domain: Mapping[str, object] | Sequence[str] | None = None,
    setup: str | None = None,
    functions: Mapping[str, Callable[..., object]] | None = None,
) -> "SqlFunction":
    """Return a mechanism that runs a query; its input becomes the rows of a table.

    The records of an input are inserted into the table, in a transaction. The query runs once for each run, and
    everything is rolled back. The outcome is the result of the query: a single value, a list of values if there is one
    column, else a list of named tuples. Rows have the order in which the database gives them; without ORDER BY this
    order is the database's own, and is tested too.

    Parameters
    ----------
    connection
        A connection of any driver of PEP 249 (sqlite3, psycopg, duckdb), not in autocommit mode and without an open
        transaction; or a function without parameters that makes one, which is needed for other processes; or "sqlite"
        or None for a database of SQLite in memory, which needs `domain`.
    query
        One statement that reads. Or a function of the connection that returns the rows, or any other outcome; it must
        neither commit nor roll back.
    table
        The name of an empty table, as the database stores it, or its parts, such as ("public", "people"). Records that
        are dicts, columns or rows of a DataFrame are inserted by the names of their fields, others by position. NaN in
        arrays, columns and DataFrames becomes NULL; NaN in a list of records stays NaN.
    domain
        The names of the columns of the table that is made in SQLite: a list of names, or a domain of dicts as for
        `records`.
    setup
        Statements that are run once in the database of SQLite, such as CREATE VIEW.
    functions
        Functions for queries of SQLite by name, such as noise. A function whose first parameter is called rng gets the
        generator of the run; then a seed repeats the runs.

    Returns
    -------
    SqlFunction
        It is accepted wherever a function is, for example by `check`.

    Raises
    ------
    InvalidParameter
        If the connection, the query or the table cannot be used.
    """
    if functions is not None and not isinstance(functions, Mapping):
        raise InvalidParameter(f"functions={brief(functions)} must hold functions by names, such as laplace")
    columns = domain if domain is None or isinstance(domain, Mapping) else items("domain", domain)
    return SqlFunction(connection, query, table, columns, setup, dict(functions or {}))


def quoted(name: object) -> str:
    """An identifier as SQL writes it. Raises `InvalidParameter` for what is none."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidParameter(f"{brief(name)} must be the name of a table or a column: a text that is not empty")
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def checked_query(query: object) -> Any:
    """One statement that reads, or a function. Raises `InvalidParameter`."""
    if callable(query):
        return query
    if not isinstance(query, str):
        raise InvalidParameter(f"query={brief(query)} must be a text, or a function of a connection")
    text = query.strip().rstrip("; \t\r\n")
    if ";" in text:
        raise InvalidParameter(f"query={brief(query)} holds a semicolon: give one statement, without any")
    rest = text
    while comment := COMMENT.match(rest):
        rest = rest[comment.end() :]
    words = re.match(r"\W*(\w*)", rest)
    if words is None or words[1].lower() not in READING:
        raise InvalidParameter(
            f"query={brief(query)} must read and nothing else: begin with {', '.join(map(str.upper, READING))}"
        )
    return text


@dataclass(frozen=True, slots=True)
class Rows:
    """Records as the values of rows, with the names of their columns where they have any."""

    columns: tuple[str, ...] | None
    values: list[tuple[Any, ...]]

    @classmethod
    def of(cls, data: Data) -> "Rows":
        """The rows that an input is. Raises `MechanismError` for what is no dataset of records."""
        frames = frames_of(data)
        if frames is not None:
            columns = frames.columns(data)
            return cls(tuple(map(str, columns)), _rows([*columns.values()]))
        if isinstance(data, Mapping):
            return cls(tuple(map(str, data)), _rows([_listed(column) for column in data.values()]))
        if isinstance(data, np.ndarray) and data.ndim in (1, 2):
            return cls(None, _rows([column.tolist() for column in data.reshape(len(data), -1).T]) if data.size else [])
        if not isinstance(data, list):
            raise MechanismError(
                f"a table takes a list of records, an array, columns or a DataFrame, not {shown(data)}"
            )
        if data and all(isinstance(record, Mapping) for record in data):
            names = tuple(map(str, data[0]))
            if any(tuple(map(str, record)) != names for record in data):
                raise MechanismError(f"records of one table must have the same fields in one order, not {shown(data)}")
            return cls(names, [tuple(map(_plain, record.values())) for record in data])
        return cls(None, [tuple(map(_plain, r if isinstance(r, list | tuple) else (r,))) for r in data])


def _listed(column: Any) -> list[object]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _rows(columns: list[list[object]]) -> list[tuple[Any, ...]]:
    """Rows of columns; NULL for what is missing."""
    return list(zip(*[[_present(value) for value in column] for column in columns], strict=True))


def _present(value: object) -> object:
    value = _plain(value)
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    return None if missing else value


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


class SqlFunction:
    """A query of a table, made by `sql`; accepted wherever a function is.

    It can be sent to another process if the connection is made by a function, or is SQLite in memory.
    """

    def __init__(
        self,
        connection: Connection,
        query: str | Callable[[Connection], object],
        table: str | Sequence[str],
        domain: Iterable[object] | None,
        setup: str | None,
        functions: dict[str, Callable[..., object]],
    ) -> None:
        self._query = checked_query(query)
        parts = [table] if isinstance(table, str) else list(table) if isinstance(table, list | tuple) else [table]
        if not parts:
            raise InvalidParameter("table=() must be the name of a table")
        self._table = ".".join(map(quoted, parts))
        text = " ".join(self._query.split()) if isinstance(self._query, str) else getattr(query, "__name__", "query")
        self.__name__ = self.__qualname__ = text if len(text) <= NAMED else f"{text[: NAMED - 1]}…"
        memory = connection is None or (isinstance(connection, str) and connection == "sqlite")
        names = None if domain is None else [*domain]
        if memory and not names:
            raise InvalidParameter('connection="sqlite" makes the table: give domain=, the names of its columns')
        if not memory and (names is not None or setup is not None):
            raise InvalidParameter("domain= and setup= are for a database in memory: make the table by the connection")
        if not memory and not callable(connection) and not hasattr(connection, "rollback"):
            raise InvalidParameter(
                f"connection={brief(connection)} must be a connection of a DBAPI driver (PEP 249), a function that "
                'makes one, or "sqlite"'
            )
        if setup is not None and not isinstance(setup, str):
            raise InvalidParameter(f"setup={brief(setup)} must be SQL statements, a text")
        for name, function in functions.items():
            if not isinstance(name, str) or not name.isidentifier() or not callable(function):
                raise InvalidParameter(f"functions={brief(functions)} must hold functions by names, such as laplace")
        columns = ", ".join(map(quoted, names or []))
        self._statements = f"CREATE TABLE {self._table} ({columns}); {setup or ''}" if memory else None
        self._functions = functions
        self._generator = any(map(_takes_generator, functions.values()))
        self._given = None if memory or (callable(connection) and not hasattr(connection, "rollback")) else connection
        self._make = None if memory or self._given is not None else connection
        self._start()
        own = [inspect.Parameter("records", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        if self._generator:
            own.append(inspect.Parameter("rng", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        self.__signature__ = inspect.Signature(own)
        if self._given is not None:
            _require_threads(self._given)
            self._opened()

    def _start(self) -> None:
        """What belongs to this process alone."""
        self._connection: Connection = None
        self._lock, self._pid = threading.RLock(), os.getpid()
        self._rng: np.random.Generator | None = None
        self._error: BaseException | None = None  # of a function that SQLite called
        self._busy = self._interrupted = False

    def __getstate__(self) -> dict[str, object]:
        """Everything but the connection. Raises `TypeError` where another process cannot make one."""
        if self._given is not None:
            raise TypeError("a connection cannot be sent: give a function that makes one")
        local = {"_connection", "_lock", "_pid", "_rng", "_error", "_busy", "_interrupted"}
        return {name: value for name, value in vars(self).items() if name not in local}

    def __setstate__(self, state: dict[str, object]) -> None:
        """In another process, or in this one as a copy."""
        vars(self).update(state)
        self._start()

    def mapped(self, change: Callable[[Any], Any]) -> "SqlFunction":
        """The same, unconnected, with what `change` makes of each function that it holds. Raises as `__getstate__`."""
        other = copy.copy(self)
        other._functions = {name: change(function) for name, function in self._functions.items()}
        other._make = None if self._make is None else change(self._make)
        other._query = self._query if isinstance(self._query, str) else change(self._query)
        return other

    def __call__(self, records: Data, rng: np.random.Generator | None = None) -> object:
        """Insert the records, run once, roll back."""
        with self.loaded(records) as batch:
            return batch.run(rng)

    @contextmanager
    def loaded(self, records: Data) -> Iterator["Batch"]:
        """While the table holds the records, in a transaction of its own.

        Raises `MechanismError` for records that the table does not take, and for a table that has rows before or after.
        """
        rows = Rows.of(records)
        with self._lock:
            batch = Batch(self, self._opened(), rows)
            require_transactions(batch.connection)  # what the user has open must not be rolled back by what follows
            self._interrupted, self._busy = False, True
            try:
                batch.begin()
                yield batch
                batch.require_rows()
            except BaseException:
                self._end(batch, quiet=True)
                raise
            finally:
                self._busy = False
            self._end(batch, quiet=False)

    def _end(self, batch: "Batch", *, quiet: bool) -> None:
        """Roll back, and see that nothing is left; `quiet`: something else is being raised, which counts more."""
        try:
            batch.rollback()
            left = batch.count()
            batch.rollback()
        except MechanismError:
            self._connection = None
            if quiet:
                return
            raise
        if left and not quiet:
            raise MechanismError(
                f"table {self._table} holds {left} rows after the rollback: {self.__name__} commits, or there are no "
                "transactions; remove these rows, and let it not commit"
            )

    def _opened(self) -> Connection:
        """The connection of this process, checked, with the functions registered."""
        if self._pid != os.getpid():  # a fork has the connection of its parent
            self._start()
        if self._connection is None:
            connection: Connection = self._given
            if self._statements is not None:
                connection = sqlite3.connect(":memory:", check_same_thread=False)
            elif self._make is not None:
                connection = _made(self._make)
            self._register(connection)
            if self._statements is not None:
                try:
                    connection.executescript(self._statements)
                except sqlite3.Error as error:
                    raise InvalidParameter(f"setup=: {_first_line(error)}") from error
            require_transactions(connection)
            self._connection = connection
            if self._given is None:
                weakref.finalize(self, _close, connection)
        return self._connection

    def _register(self, connection: Connection) -> None:
        if self._functions and not hasattr(connection, "create_function"):
            raise InvalidParameter(
                "functions= are for SQLite: make those of other databases by CREATE FUNCTION, or in the connection"
            )
        for name, function in self._functions.items():
            try:
                connection.create_function(name, -1, self._called(function))
            except (TypeError, sqlite3.Error) as error:  # duckdb has a method of this name with other parameters
                raise InvalidParameter(f"functions= are for SQLite: {_first_line(error)}") from error

    def _called(self, function: Callable[..., object]) -> Callable[..., object]:
        """What SQLite calls: it hands over the generator, and keeps what is raised, which SQLite does not tell."""
        generator = _takes_generator(function)

        def call(*values: object) -> object:
            try:
                return _plain(function(self._rng, *values) if generator else function(*values))
            except BaseException as error:
                self._error = error
                raise

        return call

    def run(self, connection: Connection, rng: np.random.Generator | None) -> object:
        """Run the query on the rows that are in the table; raises what the database raises."""
        self._rng, self._error = rng, None
        try:
            if self._interrupted:
                raise MechanismTimeout(f"{self.__name__} was ended")
            if not isinstance(self._query, str):
                return _settled(self._query(connection))
            cursor = cursor_of(connection)
            cursor.execute(self._query)
            found = cursor.fetchmany(LONGEST_ROW + 1)
            if len(found) > LONGEST_ROW:
                raise InvalidOutcome(
                    f"{self.__name__} gave more than {LONGEST_ROW} rows, which are taken for a result without end: "
                    "add LIMIT, or aggregate"
                )
            return outcome_of(found, [column[0] for column in cursor.description or ()])
        except DPWitnessError:
            raise
        except Exception as error:
            if self._interrupted:
                raise MechanismTimeout(f"{self.__name__} was ended while it ran") from error
            if self._error is not None:
                raise self._error from None
            raise

    def interrupt(self) -> None:
        """End a batch that is running, and its query at once where the driver can."""
        if not self._busy:
            return
        self._interrupted, connection = True, self._connection
        end = getattr(connection, "interrupt", None) or getattr(connection, "cancel", None)
        if callable(end):
            with suppress(Exception):
                end()


def _close(connection: Connection) -> None:
    with suppress(Exception):  # whatever a driver raises for a connection that is gone
        connection.close()


def _takes_generator(function: Callable[..., object]) -> bool:
    try:
        return next(iter(inspect.signature(function).parameters), "") in GENERATOR_NAMES
    except (TypeError, ValueError):
        return False


def _made(make: Callable[[], Connection]) -> Connection:
    try:
        connection = make()
    except Exception as error:
        raise InvalidParameter(f"connection={brief(make)} raised {_first_line(error)}") from error
    if not hasattr(connection, "rollback"):
        raise InvalidParameter(f"connection={brief(make)} returned {brief(connection)}, which is no connection")
    return connection


def _require_threads(connection: Connection) -> None:
    """Raise `InvalidParameter` for a connection that only the thread which made it can use: runs have one of theirs."""
    if not isinstance(connection, sqlite3.Connection):
        return
    failed: list[Exception] = []

    def look() -> None:
        try:
            connection.execute("SELECT 1")
        except sqlite3.Error as error:
            failed.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    if failed:
        raise InvalidParameter(
            f"connection={brief(connection)} cannot be used by another thread ({_first_line(failed[0])[:80]}): give a "
            "function that makes one, or make it with check_same_thread=False"
        )


def require_transactions(connection: Connection) -> None:
    """Raise `InvalidParameter` for a connection that commits by itself, or has something open that is not ours."""
    try:
        mode, opened = getattr(connection, "autocommit", -1), getattr(connection, "in_transaction", False) is True
        status = getattr(getattr(connection, "info", None), "transaction_status", 0)
    except Exception as error:  # of a closed one
        raise InvalidParameter(f"connection={brief(connection)} cannot be used ({_first_line(error)})") from error
    if mode is True or (
        mode == -1 and isinstance(connection, sqlite3.Connection) and connection.isolation_level is None
    ):
        raise InvalidParameter(
            f"connection={brief(connection)} is in autocommit mode, in which nothing is rolled back: make it without"
        )
    if (opened and mode == -1) or (isinstance(status, int) and status in OPEN):
        raise InvalidParameter(
            f"connection={brief(connection)} has an open transaction, which would be rolled back: end it before"
        )


def cursor_of(connection: Connection) -> Any:
    """What executes statements in the connection's own transaction: a cursor of DuckDB's is another connection."""
    own = hasattr(connection, "begin") and hasattr(connection, "executemany")
    return connection if own else connection.cursor()


def style_of(connection: Connection) -> str:
    """The paramstyle of the connection's driver."""
    for kind in type(connection).__mro__:
        name = kind.__module__.partition(".")[0]
        for module in (name, name.lstrip("_")):
            style = getattr(sys.modules.get(module), "paramstyle", None)
            if style in PARAMETERS:
                return str(style)
    return "qmark"


def outcome_of(rows: Sequence[Any], names: list[str]) -> object:
    """The outcome that a result is: a single value, a list of values, or a list of named tuples.

    Raises `InvalidOutcome` for rows that are dicts, where two columns have one name: they hold the last one alone.
    """
    if len(set(names)) < len(names) and any(isinstance(row, Mapping) for row in rows):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidOutcome(
            f"two columns of the result have the name {twice!r}, of which rows that are dicts hold one: give AS names"
        )
    values = [tuple(row.values()) if isinstance(row, Mapping) else tuple(row) for row in rows]
    if len(names) == 1:
        column = [row[0] for row in values]
        return column[0] if len(column) == 1 else column
    return list(map(_row_of(tuple(names))._make, values))


@cache
def _row_of(names: tuple[str, ...]) -> Any:
    """The type of rows with these columns."""
    return namedtuple("Row", names, rename=True)


def _settled(found: object) -> object:
    """What a user's function returns, rows of a driver among it, which no later run changes."""
    if isinstance(found, list):
        return [tuple(row) if type(row) not in SINGLE_VALUES and hasattr(row, "keys") else row for row in found]
    return found


@dataclass(slots=True)
class Batch:
    """Runs of one input: the table holds its rows until the end.

    `before`: what a query that only reads may not change. `first`: no run has ended since the rows were inserted.
    """

    function: SqlFunction
    connection: Connection
    rows: Rows
    before: tuple[int, int] | None = None
    first: bool = True

    def begin(self) -> None:
        """Begin a transaction and insert the rows. Raises `MechanismError`."""
        table = self.function._table
        begin = getattr(self.connection, "begin", None)
        if there := self.count(begin if callable(begin) else None):
            raise MechanismError(
                f"table {table} holds {there} rows: give an empty one, such as a copy of its structure; nothing of it "
                "was changed"
            )
        try:
            self._insert(table)
        except Exception as error:
            values = shown([*map(list, self.rows.values)])
            raise MechanismError(f"table {table} does not take the rows {values} ({_first_line(error)})") from error
        self.before = self._state() if isinstance(self.function._query, str) else None
        self.first = True

    def _insert(self, table: str) -> None:
        rows = self.rows
        if not rows.values:
            return
        style = style_of(self.connection)
        mark, named = PARAMETERS[style]
        columns = "" if rows.columns is None else f" ({', '.join(map(quoted, rows.columns))})"
        target = f"{table}{columns}"
        if "format" in style:  # where % marks a value
            target = target.replace("%", "%%")
        marks = ", ".join(map(mark, range(len(rows.values[0]))))
        values: Sequence[Any] = rows.values
        if named:
            values = [{f"v{k}": value for k, value in enumerate(row)} for row in rows.values]
        cursor_of(self.connection).executemany(f"INSERT INTO {target} VALUES ({marks})", values)

    def count(self, begin: Callable[[], object] | None = None) -> int:
        """How many rows the table has; `begin` is called before. Raises `MechanismError`."""
        try:
            if begin is not None:
                begin()
            cursor = cursor_of(self.connection)
            cursor.execute(f"SELECT count(*) FROM {self.function._table}")
            (row,) = cursor.fetchall()
            return int(next(iter(row.values())) if isinstance(row, Mapping) else row[0])
        except Exception as error:
            raise MechanismError(f"table {self.function._table} cannot be read ({_first_line(error)})") from error

    def run(self, rng: np.random.Generator | None) -> object:
        """Run the query once. Raises `MechanismError` where the first run changed what the others read."""
        found = self.function.run(self.connection, rng)
        if self.first:
            self.first = False
            if not self.require_rows():
                self.again()
        return found

    def require_rows(self) -> bool:
        """Raise `MechanismError` where a run changed what later ones read; return whether that could be seen.

        A function may change rows, but not lose all: it may have read an empty table even in the run that did that.
        """
        try:
            state = self._state()
        except MechanismError:  # of a transaction that failed, or of a role that may not read the table
            return False
        name, count = self.function.__name__, len(self.rows.values)
        if self.before is not None and state != self.before:
            raise MechanismError(
                f"{name} changes the database, so that later runs on the same input read other rows: give a query that "
                "reads and nothing else"
            )
        if count and not state[0]:
            raise MechanismError(
                f"{name} rolled back or deleted all {count} rows of table {self.function._table}, so that what is read "
                "after that is an empty table: let it not delete them nor call rollback(), and raise nothing within "
                "`with connection:`, which rolls back, too"
            )
        return True

    def _state(self) -> tuple[int, int]:
        """The rows of the table, and how many rows the connection has changed, where SQLite says so."""
        return self.count(), getattr(self.connection, "total_changes", 0)

    def again(self) -> None:
        """The same rows in a new transaction, after an error that may have ended the one before."""
        self.rollback()
        self.begin()

    def rollback(self) -> None:
        """Undo everything. Raises `MechanismError`."""
        try:
            self.connection.rollback()
        except Exception as error:
            # DuckDB raises where no transaction is open; whether anything is left is seen by what follows.
            if not callable(getattr(self.connection, "begin", None)):
                raise MechanismError(
                    f"{self.function.__name__}: the rollback failed ({_first_line(error)}); a lost connection is no "
                    "outcome: see why it was closed"
                ) from error


class SqlMechanism(VectorisedMechanism):
    """A query: all runs of a side come together, since a table holds the rows of one input."""

    in_process = False  # it draws in the database
    shard = 32
    #: The rows are inserted once for all runs of a call.
    timed_seconds = 0.05

    @override
    def _draws(self, rng: np.random.Generator, runs: int, *, shared: bool = False) -> Draws:
        return PythonMechanism._draws(self, rng, runs, shared=shared)

    @override
    def _run_all(self, side: Side, start: int, row: Row) -> Outputs:
        function: Any = self.signature.function
        outputs: list[Any] = []
        generator, begin = side.draws.generator, side.draws.begin
        single = SINGLE_VALUES if self._outcome is None else ()
        with function.loaded(side.data) as batch:
            for i in range(side.runs):
                if begin is not None:
                    begin(i)
                try:
                    output = batch.run(generator)
                except MechanismError:
                    raise
                except BaseException as error:
                    if not is_failure(error):
                        raise
                    if self.errors != "outcome":
                        raise raised(self.name, error, start + i, side.data) from error
                    outputs.append(row.written(ExceptionOutcome(type(error).__qualname__)))
                    batch.again()
                else:
                    outputs.append(output if type(output) in single else self._held(output, start + i, row))
        return outputs

    @override
    def release(self) -> None:
        function: Any = self.signature.function
        function.interrupt()
