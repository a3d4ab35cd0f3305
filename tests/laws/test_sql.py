"""A query of a database as a mechanism: what is inserted, what comes back, that nothing stays, and what is refused."""

import pickle
import sqlite3
import threading
from contextlib import suppress
from itertools import count

import cloudpickle
import numpy as np
import pandas as pd
import pytest

import dpwitness as dpw
from dpwitness.errors import InvalidOutcome, InvalidParameter, MechanismError, MechanismRaised, MechanismTimeout
from dpwitness.mechanisms.mechanism import PairedRuns
from dpwitness.mechanisms.resolve import as_mechanism
from dpwitness.mechanisms.signature import Signature
from dpwitness.mechanisms.sql import Rows, SqlMechanism, checked_query, quoted

COLUMNS = ["id", "x"]
PEOPLE = [{"id": 1, "x": 2.5}, {"id": 2, "x": None}, {"id": 2, "x": -1.0}]


def memory(query, **settings):
    return dpw.sql("sqlite", query, table="people", domain=COLUMNS, **settings)


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
        ("VALUES (1), (2)", [1, 2]),
    ],
)
def test_the_outcome_is_the_result(query, outcome):
    found = memory(query)(PEOPLE)
    assert found == outcome
    assert type(found) is type(outcome)


def test_rows_have_the_names_of_columns():
    row = memory("SELECT id, sum(x) AS total, count(*) FROM people GROUP BY id ORDER BY id")(PEOPLE)[1]
    assert (row.id, row.total) == (2, -1.0)
    assert row._fields == ("id", "total", "_2")


def test_rows_that_are_dicts():
    def named():
        connection = connected()
        connection.row_factory = lambda cursor, row: dict(zip([one[0] for one in cursor.description], row, strict=True))
        return connection

    assert dpw.sql(named, "SELECT id, x AS y FROM people", table="people")(PEOPLE[:1]) == [(1, 2.5)]
    with pytest.raises(InvalidOutcome, match="two columns of the result have the name 'x', of which rows that are"):
        dpw.sql(named, "SELECT x, id, x FROM people", table="people")(PEOPLE)
    assert memory("SELECT x, id, x FROM people")(PEOPLE[:1]) == [(2.5, 1, 2.5)]


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
        ("ab", "a table takes a list of records"),
        ([{"id": 1, "x": 2}, {"x": 2, "id": 1}], "the same fields in one order"),
        ([{"id": 1, "y": 2}], r'table "people" does not take the rows \[\[1, 2\]\] \(OperationalError: .*y'),
        ([(1, 2, 3)], r"does not take the rows \[\[1, 2, 3\]\]"),
        ([(1, 2**70)], "does not take the rows .*OverflowError"),
        ([(1, "\ud800")], "does not take the rows .*UnicodeEncodeError"),
        ([(1, object)], "does not take the rows"),
        ([(1, 2), (3,)], "does not take the rows"),
    ],
)
def test_what_the_table_does_not_take_is_one_line(data, message):
    with pytest.raises(MechanismError, match=message) as caught:
        memory("SELECT count(*) FROM people")(data)
    assert "\n" not in str(caught.value)


def test_names_are_quoted_and_values_are_parameters():
    odd = 'a "b" -- %s ?é'
    function = dpw.sql("sqlite", f"SELECT {quoted(odd)} FROM {quoted(odd)}", table=odd, domain=[odd, "select"])
    assert function([{odd: "'; DROP TABLE x; --", "select": 1}]) == "'; DROP TABLE x; --"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM people", "must read and nothing else"),
        ("COMMIT", "must read and nothing else"),
        ("", "must read and nothing else"),
        ("-- SELECT 1\nINSERT INTO people VALUES (1, 2)", "must read and nothing else"),
        ("SELECT 1; COMMIT", "holds a semicolon"),
        ("SELECT ';'", "holds a semicolon"),
        (7, "must be a text, or a function"),
    ],
)
def test_a_query_reads_and_nothing_else(query, message):
    with pytest.raises(InvalidParameter, match=message):
        checked_query(query)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("sqlite", "SELECT 1"), {"table": "t"}, "give domain="),
        (("sqlite", "SELECT 1"), {"table": "", "domain": ["a"]}, "'' must be the name"),
        (("sqlite", "SELECT 1"), {"table": (), "domain": ["a"]}, "must be the name"),
        (("sqlite", "SELECT 1"), {"table": "a\0b", "domain": ["a"]}, "must be the name"),
        (("sqlite", "SELECT 1"), {"table": 3, "domain": ["a"]}, "3 must be the name"),
        (("sqlite", "SELECT 1"), {"table": "t", "domain": [1]}, "1 must be the name"),
        (("people.db", "SELECT 1"), {"table": "t"}, "connection='people.db' must be a connection"),
        ((lambda: 3, "SELECT 1"), {"table": "t", "domain": ["a"]}, "are for a database in memory"),
        (("sqlite", "SELECT 1"), {"table": "t", "domain": ["a"], "functions": {"f": 3}}, "must hold functions by"),
        (("sqlite", "SELECT 1"), {"table": "t", "domain": ["a"], "functions": 3}, "functions=3 must hold functions by"),
        (("sqlite", "SELECT 1"), {"table": "t", "domain": 3}, "domain=3 must be a list"),
        (("sqlite", "SELECT 1"), {"table": "t", "domain": ["a"], "setup": 3}, "setup=3 must be SQL"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_line(arguments, settings, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        dpw.sql(*arguments, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"setup": "CREATE VIEW v AS SELECT"}, "setup=: OperationalError: incomplete input"),
        ({"functions": {"f": len, "_": None}}, "must hold functions"),
    ],
)
def test_a_database_that_cannot_be_made_is_said_in_one_line(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        memory("SELECT 1", **settings)(PEOPLE)


def connected(path=":memory:", **settings):
    connection = sqlite3.connect(path, check_same_thread=False, **settings)
    connection.execute("CREATE TABLE people (id, x)")
    connection.commit()
    return connection


def test_nothing_stays_in_the_users_own_database(tmp_path):
    path = tmp_path / "people.db"
    connection = connected(path)
    function = dpw.sql(connection, "SELECT count(*) FROM people", table="people")
    assert function(PEOPLE) == 3
    with pytest.raises(MechanismError):
        function([(1,)])
    assert function([]) == 0
    assert not connection.in_transaction
    assert sqlite3.connect(path).execute("SELECT count(*) FROM people").fetchone() == (0,)
    connection.execute("INSERT INTO people VALUES (1, 2)")
    with pytest.raises(InvalidParameter, match="has an open transaction, which would be rolled back"):
        function(PEOPLE)
    connection.commit()
    with pytest.raises(MechanismError, match=r'table "people" holds 1 rows: give an empty one'):
        function(PEOPLE)
    assert connection.execute("SELECT * FROM people").fetchall() == [(1, 2)]


def test_connections_that_commit_by_themselves_are_refused():
    with pytest.raises(InvalidParameter, match="is in autocommit mode, in which nothing is rolled back"):
        dpw.sql(connected(isolation_level=None), "SELECT 1", table="people")
    with pytest.raises(InvalidParameter, match="cannot be used by another thread"):
        dpw.sql(sqlite3.connect(":memory:"), "SELECT 1", table="people")
    with pytest.raises(InvalidParameter, match="which is no connection"):
        dpw.sql(lambda: 3, "SELECT 1", table="people")([])
    with pytest.raises(InvalidParameter, match=r"raised ZeroDivisionError: division by zero"):
        dpw.sql(lambda: 1 / 0, "SELECT 1", table="people")([])
    with pytest.raises(
        MechanismError, match=r"table \"none\" cannot be read \(OperationalError: no such table: none\)"
    ):
        dpw.sql(connected, "SELECT 1", table="none")([])


def test_a_function_that_commits_is_found():
    def commits(connection):
        connection.commit()
        return 1

    with pytest.raises(MechanismError, match='table "people" holds 3 rows after the rollback'):
        dpw.sql(connected, commits, table="people")(PEOPLE)


def counted(connection):
    return connection.execute("SELECT count(*) FROM people").fetchone()[0]


def rolls_back(connection):
    found = counted(connection)
    connection.rollback()
    return found


def raises_within(connection):
    with suppress(KeyError), connection:
        raise KeyError
    return counted(connection)


def deletes(connection):
    found = counted(connection)
    connection.execute("DELETE FROM people")
    return found


@pytest.mark.parametrize("errors", ["raise", "outcome"])
@pytest.mark.parametrize("at", [1, 7])
@pytest.mark.parametrize("loses", [rolls_back, raises_within, deletes])
def test_a_function_that_loses_the_rows_in_any_run_is_refused(loses, at, errors):
    runs = count()

    def sometimes(connection):
        return (loses if next(runs) % 8 == at % 8 else counted)(connection)

    function = dpw.sql(connected, sometimes, table="people")
    mechanism = SqlMechanism(Signature.of(function, {}), errors=errors)
    mechanism.fill(PEOPLE, np.random.default_rng(1), np.empty((1, 1)), 0)
    with pytest.raises(MechanismError, match=r'^sometimes rolled back or deleted all 3 rows of table "people", so'):
        mechanism.fill(PEOPLE, np.random.default_rng(1), np.empty((7, 1)), 0)
    assert function([]) == 0  # nothing has stayed
    assert dpw.sql(connected, loses, table="people")([]) == 0  # nothing to lose


@pytest.mark.parametrize(
    "changes",
    [
        "WITH a AS (SELECT 1) DELETE FROM people RETURNING id",
        "WITH a AS (SELECT 1) UPDATE people SET x = x + 1 RETURNING x",
        "WITH a AS (SELECT 3) INSERT INTO people SELECT *, 1 FROM a RETURNING id",
    ],
)
def test_a_query_that_begins_as_one_that_reads_and_changes_rows_is_refused(changes):
    mechanism = as_mechanism(memory("SELECT count(*) FROM people"), PEOPLE, errors="outcome")
    rows = np.empty((4, 1))
    mechanism.fill(PEOPLE, np.random.default_rng(1), rows, 0)
    assert np.all(rows == 3)
    for errors in ("raise", "outcome"):
        with pytest.raises(MechanismError, match=r"^WITH a .* changes the database, so that later runs on the same"):
            as_mechanism(memory(changes), PEOPLE, errors=errors)


def test_a_query_that_changes_rows_in_a_later_run_is_refused():
    connection = connected()
    made = count()

    def wipe():
        if next(made) == 2:
            connection.execute("DELETE FROM people WHERE id = 1")
        return 0

    connection.create_function("wipe", 0, wipe)
    mechanism = SqlMechanism(Signature.of(dpw.sql(connection, "SELECT wipe()", table="people"), {}))
    with pytest.raises(MechanismError, match=r"^SELECT wipe\(\) changes the database, so that later runs on the same"):
        mechanism.fill(PEOPLE, np.random.default_rng(1), np.empty((4, 1)), 0)


def test_a_function_of_the_connection_is_a_query():
    assert dpw.sql(connected, counted, table="people")(PEOPLE) == 3


def test_a_result_without_end_is_refused():
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"
    with pytest.raises(InvalidOutcome, match="gave more than 10000 rows, which are taken for a result without end"):
        memory(endless)([])


def noisy(rng, scale):
    return rng.laplace(0.0, scale)


def failing(value):
    raise ValueError(f"no noise for {value}")


def mechanism_of(function, data, neighbour, **settings):
    return as_mechanism(function, data, neighbour=neighbour, **settings)


def runs(mechanism, data, neighbour, n=5, seed=1, *, coupled=True):
    rng = np.random.Generator(np.random.SFC64(seed))
    return mechanism.pair_outcomes(PairedRuns.d_first(dpw.pairs((data, neighbour)).given[0], n, coupled=coupled), rng)


def test_a_seed_repeats_runs_whose_noise_takes_the_generator_and_both_sides_share_it():
    function = memory("SELECT count(*) + noise(2.0) FROM people", functions={"noise": noisy})
    mechanism = mechanism_of(function, PEOPLE, PEOPLE[:1])
    assert mechanism.reproducible
    first = runs(mechanism, PEOPLE, PEOPLE[:1])
    assert np.array_equal(first, runs(mechanism, PEOPLE, PEOPLE[:1]))
    assert np.allclose(first[0] - first[1], 2.0)
    assert len(np.unique(first[0])) == 5
    apart = runs(mechanism, PEOPLE, PEOPLE[:1], coupled=False)
    assert not np.any(np.isclose(apart[0] - apart[1], 2.0))


def test_rows_are_inserted_once_for_many_runs():
    statements = []

    def watched():
        connection = connected()
        connection.set_trace_callback(statements.append)
        return connection

    mechanism = mechanism_of(dpw.sql(watched, "SELECT count(*) FROM people", table="people"), PEOPLE, PEOPLE[:1])
    statements.clear()
    runs(mechanism, PEOPLE, PEOPLE[:1], 100)
    assert sum("INSERT" in one for one in statements) == 4  # three rows, and one
    assert sum(one == "SELECT count(*) FROM people" for one in statements) == 200
    assert sum(one == "ROLLBACK" for one in statements) >= 2
    assert not any("COMMIT" in one for one in statements)


def test_errors_of_a_query_are_one_line_or_outcomes():
    function = memory("SELECT noise(1) FROM people", functions={"noise": failing})
    with pytest.raises(MechanismRaised, match=r"raised ValueError \(no noise for 1\) on run 0") as caught:
        mechanism_of(function, PEOPLE, [])
    assert "\n" not in str(caught.value)
    mechanism = mechanism_of(function, PEOPLE, [], errors="outcome")
    rows = runs(mechanism, PEOPLE, [])
    assert mechanism.label(rows[0, 0, 0]) == "raises ValueError"
    assert np.all(np.isnan(rows[1]))  # no row, so that nothing is called
    with pytest.raises(MechanismRaised, match=r"raised OperationalError \(no such column: y\)"):
        mechanism_of(memory("SELECT y FROM people"), PEOPLE, [])


@pytest.mark.parametrize("raises", [False, True])
def test_a_lost_connection_is_no_outcome(raises):
    def closes(connection):
        connection.close()
        if raises:
            raise ConnectionError("gone")
        return 1

    function = dpw.sql(connected, closes, table="people")
    mechanism = SqlMechanism(Signature.of(function, {}), errors="outcome")
    with pytest.raises(MechanismError, match=r"^closes: the rollback failed \(ProgrammingError: Cannot operate on a "):
        mechanism.fill(PEOPLE, np.random.default_rng(1), np.empty((4, 1)), 0)
    connection = connected()
    function = dpw.sql(connection, "SELECT 1", table="people")
    connection.close()
    with pytest.raises(
        InvalidParameter, match=r"^connection=.* cannot be used \(ProgrammingError: Cannot operate on a"
    ):
        function(PEOPLE)


def test_what_can_be_sent_to_another_process_is():
    function = memory("SELECT count(*) + noise(0) FROM people", functions={"noise": noisy})
    assert function(PEOPLE, np.random.default_rng(0)) == 3.0
    assert cloudpickle.loads(cloudpickle.dumps(function))(PEOPLE, np.random.default_rng(0)) == 3.0
    made = cloudpickle.loads(cloudpickle.dumps(dpw.sql(connected, "SELECT count(*) FROM people", table="people")))
    assert made(PEOPLE) == 3
    with pytest.raises(TypeError, match="a connection cannot be sent: give a function that makes one"):
        pickle.dumps(dpw.sql(connected(), "SELECT count(*) FROM people", table="people"))


def test_a_run_that_hangs_is_interrupted():
    started = threading.Event()

    def noise(rng):
        started.set()
        return 0.0

    query = "WITH RECURSIVE t(n) AS (SELECT noise() UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
    mechanism = mechanism_of(memory("SELECT noise()", functions={"noise": noise}), PEOPLE, [])
    mechanism.signature.function._query = query
    failed = []

    def hang():
        try:
            runs(mechanism, PEOPLE, [], 1)
        except MechanismTimeout as error:
            failed.append(str(error))

    thread = threading.Thread(target=hang, daemon=True)
    started.clear()
    thread.start()
    assert started.wait(60)
    mechanism.release()
    thread.join(60)
    assert "was ended while it ran" in failed[0]


def test_missing_numbers_of_lists_are_handed_over_and_of_columns_are_null():
    nan = float("nan")
    assert Rows.of([{"x": nan}]).values[0][0] != Rows.of([{"x": nan}]).values[0][0]
    assert Rows.of(pd.DataFrame({"x": [nan, 1.0]})).values == [(None,), (1.0,)]
