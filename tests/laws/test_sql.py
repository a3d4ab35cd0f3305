"""A query of a database as a mechanism: what is inserted, what comes back, that nothing stays, and what is refused."""

import sqlite3
import threading
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import dpwitness as dpw
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismError, MechanismRaised
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.sql import SqlMechanism, quoted

PEOPLE = [{"id": 1, "x": 2.5}, {"id": 2, "x": None}, {"id": 2, "x": -1.0}]


def connected(path=":memory:", **settings):
    connection = sqlite3.connect(path, check_same_thread=False, **settings)
    connection.execute("CREATE TABLE IF NOT EXISTS people (id, x)")
    connection.commit()
    return connection


def memory(query):
    return dpw.sql(connected, query, table="people")


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("SELECT count(*) FROM people", 3),
        ("SELECT x FROM people", [2.5, None, -1.0]),
        ("SELECT x FROM people WHERE id > 9", []),
        ("SELECT id, sum(x) AS total FROM people GROUP BY id ORDER BY id", [(1, 2.5), (2, -1.0)]),
        ("SELECT 'a', x'00ff'", [("a", b"\x00\xff")]),
        ("WITH t AS (SELECT max(id) AS top FROM people) SELECT top FROM t;", 2),
        ("  -- the largest\n /* of all */ SELECT max(x) FROM people ; ", 2.5),
    ],
)
def test_the_outcome_is_the_result(query, outcome):
    found = memory(query)(PEOPLE)
    assert found == outcome
    assert type(found) is type(outcome)


@pytest.mark.parametrize(
    "data",
    [
        PEOPLE,
        [(1, 2.5), (2, None), (2, -1.0)],
        [[np.int64(1), np.float64(2.5)], [2, None], [2, -1.0]],
        pd.DataFrame(PEOPLE),
        pd.DataFrame({"x": pd.array([2.5, None, -1.0], "Float64"), "id": [1, 2, 2]}),
        {"x": np.array([2.5, np.nan, -1.0]), "id": [1, 2, 2]},
        np.array([[1, 2.5], [2, np.nan], [2, -1.0]]),
    ],
)
def test_records_of_any_form_are_rows(data):
    assert memory("SELECT id, x FROM people")(data) == [(1, 2.5), (2, None), (2, -1.0)]
    assert memory("SELECT count(*) FROM people")(data[:0] if not isinstance(data, dict) else {"x": [], "id": []}) == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "a table takes a list of records"),
        ([{"id": 1, "x": 2}, {"x": 2, "id": 1}], "the same fields in one order"),
        ([{"id": 1, "y": 2}], r'table "people" does not take the rows \[\[1, 2\]\] \(OperationalError: .*y'),
        ([(1, 2**70)], "does not take the rows .*OverflowError"),
        ([(1, "\ud800")], "does not take the rows .*UnicodeEncodeError"),
    ],
)
def test_what_the_table_does_not_take_is_one_line(data, message):
    with pytest.raises(MechanismError, match=message) as caught:
        memory("SELECT count(*) FROM people")(data)
    assert "\n" not in str(caught.value)


def test_names_are_quoted_and_values_are_parameters():
    odd = 'a "b" -- %s ?é'

    def connect():
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute(f"CREATE TABLE {quoted(odd)} ({quoted(odd)}, {quoted('select')})")
        return connection

    function = dpw.sql(connect, f"SELECT {quoted(odd)} FROM {quoted(odd)}", table=odd)
    assert function([{odd: "'; DROP TABLE x; --", "select": 1}]) == "'; DROP TABLE x; --"


def test_nothing_stays_in_the_users_own_database(tmp_path):
    path = tmp_path / "people.db"
    connection = connected(path)
    function = dpw.sql(lambda: connection, "SELECT count(*) FROM people", table="people")
    assert function(PEOPLE) == 3
    with pytest.raises(MechanismError):
        function([(1,)])
    assert function([]) == 0
    assert not connection.in_transaction
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM people").fetchone() == (0,)
        other.execute("INSERT INTO people VALUES (1, 2)")
    with pytest.raises(MechanismError, match=r'table "people" holds 1 rows: give an empty table'):
        dpw.sql(lambda: connected(path), "SELECT count(*) FROM people", table="people")(PEOPLE)
    assert connection.execute("SELECT * FROM people").fetchall() == [(1, 2)]


@pytest.mark.parametrize(
    ("connection", "table", "told"),
    [
        (lambda: connected(isolation_level=None), "people", "autocommit"),
        (lambda: 3, "people", "3"),
        (lambda: 1 / 0, "people", "ZeroDivisionError"),
        (connected, "none", "no such table: none"),
    ],
)
def test_connections_that_cannot_be_used_are_refused(connection, table, told):
    with pytest.raises(InvalidParameter if table == "people" else MechanismError, match=told):
        dpw.sql(connection, "SELECT 1", table=table)([])
    with closing(connected()) as made, pytest.raises(InvalidParameter, match="connection="):
        dpw.sql(made, "SELECT 1", table=table)


def commits(connection):
    connection.commit()
    return 1


@pytest.mark.parametrize("query", [commits, "COMMIT"])
@pytest.mark.parametrize("errors", ["raise", "outcome"])
def test_a_query_that_commits_is_refused(tmp_path, query, errors):
    with pytest.raises(MechanismError, match='table "people" holds 3 rows'):
        as_mechanism(dpw.sql(connected, query, table="people"), PEOPLE, errors=errors)
    function = dpw.sql(lambda: connected(tmp_path / "given.db"), query, table="people")
    given = {"neighbours": [(PEOPLE, PEOPLE[:2])], "claim": 1.0, "workers": 1, "seed": 1, "errors": errors}
    with pytest.raises(MechanismError, match='table "people" holds'):
        dpw.check(function, **given)


@pytest.mark.parametrize(
    "changes",
    [
        "DELETE FROM people RETURNING id",
        "WITH a AS (SELECT 1) UPDATE people SET x = x + 1 RETURNING x",
        "WITH a AS (SELECT 3) INSERT INTO people SELECT *, 1 FROM a RETURNING id",
    ],
)
def test_what_a_run_changes_the_next_one_does_not_see(changes):
    function = memory(changes)
    assert function(PEOPLE) == function(PEOPLE)
    assert function._connection.execute("SELECT count(*) FROM people").fetchone() == (0,)


def test_a_result_without_end_is_refused():
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"
    with pytest.raises(InvalidOutcome, match="10000 rows"):
        memory(endless)([])


@pytest.mark.parametrize("raises", [False, True])
def test_a_lost_connection_is_no_outcome(raises):
    def closes(connection):
        connection.close()
        if raises:
            raise ConnectionError("gone")
        return 1

    function = dpw.sql(connected, closes, table="people")
    mechanism = SqlMechanism(Signature.of(function, {}), errors="outcome")
    with pytest.raises(MechanismError, match=r"^closes: .*ProgrammingError"):
        mechanism.outcomes(PEOPLE, np.random.default_rng(1), 4)


def test_a_run_that_hangs_is_interrupted():
    started = threading.Event()

    def watched():
        connection = connected()
        connection.create_function("start", 0, started.set)
        return connection

    query = "WITH RECURSIVE t(n) AS (SELECT start() UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
    mechanism = SqlMechanism(Signature.of(dpw.sql(watched, query, table="people"), {}))
    failed = []

    def hang():
        with pytest.raises(MechanismRaised, match="interrupted"):
            mechanism.outcomes(PEOPLE, np.random.default_rng(1), 1)
        failed.append(True)

    thread = threading.Thread(target=hang, daemon=True)
    thread.start()
    assert started.wait(60)
    mechanism.release()
    thread.join(60)
    assert failed
