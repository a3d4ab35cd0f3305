"""Checks of queries and views of real databases: SQLite, DuckDB, and PostgreSQL, which is started here."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import dpwitness as dpw

DOMAIN = {"person_id": dpw.integers(1, 1000), "age": dpw.integers(0, 120)}
RECORDS = dpw.records(DOMAIN, size=(0, 12))
PERSONS = dpw.records(DOMAIN, size=(0, 12), unit="person_id", at_most=3)
OTHERS = [{"person_id": k, "age": 40 + k} for k in range(10, 15)]
ONE = [{"person_id": 7, "age": 80}]
#: Neighbours, so that a check tests what it is given and searches for no pair.
ROW = dpw.pairs((OTHERS, OTHERS + ONE))
PERSON = dpw.pairs((OTHERS, OTHERS + 3 * ONE))
#: Where the tests' PostgreSQL listens: what a new process, too, connects to.
ADDRESS = "DPWITNESS_TEST_POSTGRESQL"
TABLE = "CREATE TABLE people (person_id integer, age integer)"
#: Each shows one fault; the noise of the right one is for three records of a person.
VIEWS = {
    "enough_noise": "SELECT count(*) + laplace(3.0) AS n FROM people",
    "for_one_row": "SELECT count(*) + laplace(1.0) AS n FROM people",
    "rounded": "SELECT round(count(*) / 4.0) AS n FROM people",  # 1 of five rows, 2 of six
    "only_of_many": "SELECT count(*) + laplace(3.0) AS n FROM people HAVING count(*) > 5",
}


def connect_sqlite():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.create_function("laplace", 1, lambda scale: float(np.random.laplace(0.0, scale)))  # noqa: NPY002
    connection.execute(TABLE)
    for name, query in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    return connection


def connect_duckdb():
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(TABLE)
    connection.execute(
        "CREATE MACRO laplace(scale) AS "
        "(SELECT -scale * sign(u) * ln(1 - 2 * abs(u)) FROM (SELECT random() - 0.5 AS u) AS draw)"
    )
    for name, query in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    return connection


def connect_postgresql():
    import psycopg

    return psycopg.connect(os.environ[ADDRESS])


def binaries():
    """The folder of PostgreSQL's programs: Debian's is in no path. Skips where there is none."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    found += [Path(path) for path in [shutil.which("initdb")] if path]
    if not found:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return found[-1].parent


@pytest.fixture(scope="module")
def postgresql():
    """A server of PostgreSQL, on a socket in a folder of its own."""
    psycopg = pytest.importorskip(
        "psycopg", reason="no driver of PostgreSQL is installed: pip install 'psycopg[binary]'"
    )
    programs = binaries()
    user = {}
    if os.getuid() == 0:  # it refuses to run as root
        import pwd

        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    folder = tempfile.mkdtemp(prefix="dpw", dir="/tmp")  # the path of a socket is short
    if user:
        os.chown(folder, user["user"], user["group"])
    settings = {"cwd": folder, "check": True, "capture_output": True, **user}
    data, address = f"{folder}/data", f"host={folder} user=tester dbname=postgres"
    subprocess.run([programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync"], **settings)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=20"
    start = [programs / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"]
    subprocess.run(start, **{**settings, "capture_output": False, "stdout": subprocess.DEVNULL})
    before = os.environ.get(ADDRESS)
    os.environ[ADDRESS] = address
    try:
        with psycopg.connect(address) as connection:
            connection.execute(TABLE)
            connection.execute(
                "CREATE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS "
                "'SELECT -scale * sign(u) * ln(1 - 2 * abs(u)) FROM (SELECT random() - 0.5 AS u) AS draw'"
            )
            for name, query in VIEWS.items():
                connection.execute(f"CREATE VIEW {name} AS {query}")
        yield address
    finally:
        if before is None:
            del os.environ[ADDRESS]
        else:
            os.environ[ADDRESS] = before
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **settings)
        shutil.rmtree(folder, ignore_errors=True)


DATABASES = {"sqlite": connect_sqlite, "duckdb": connect_duckdb, "postgresql": connect_postgresql}


@pytest.fixture(params=DATABASES)
def query(request):
    """A function from a query to the mechanism."""
    connect = DATABASES[request.param]
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    if request.param == "postgresql":
        request.getfixturevalue("postgresql")
    return lambda query: dpw.sql(connect, query, table="people")


@pytest.fixture
def view(query):
    """A function from the name of a view to the mechanism that reads it."""
    return lambda name: query(f"SELECT n FROM {name}")


def test_the_pairs_are_neighbours_by_person():
    assert PERSONS.contains(PERSON.given[0])
    assert RECORDS.contains(ROW.given[0])
    assert not RECORDS.contains(PERSON.given[0])


#: Views, pairs and whether they refute; what a view computes is the same in each database, where noise is its own.
FAULTS = [("for_one_row", PERSON, True), ("enough_noise", PERSON, False)]
OF_ANY = [("only_of_many", ROW, True), ("rounded", ROW, True), ("for_one_row", ROW, False)]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("query", "name", "pair", "refuted"),
    [*(("sqlite", *one) for one in OF_ANY), *((kind, *one) for kind in DATABASES for one in FAULTS)],
    indirect=["query"],
)
def test_a_fault_of_a_view_is_found_and_enough_noise_is_not_refuted(view, name, pair, refuted):
    limits = {"runs": 5_000 if refuted else 500, "search_runs": 0, "seed": 1, "workers": 1, "bits": False}
    assert dpw.check(view(name), claim=1.0, neighbours=pair, **limits).refuted == refuted


def test_nothing_stays_and_identifiers_and_values_are_the_drivers_own(view):
    mechanism = view("rounded")
    rows = [{"person_id": 1, "age": None}, {"person_id": 2, "age": 50}]
    assert mechanism(rows) == mechanism(rows) == 1
    assert mechanism([]) == 0
    with pytest.raises(dpw.MechanismError, match='table "people" does not take the rows') as caught:
        mechanism([{"person_id": 1, "no % such": 2}])
    assert "\n" not in str(caught.value)
    assert mechanism(rows) == 1


def test_a_function_that_commits_is_refused(query):
    def commits(connection):
        connection.commit()
        return 0

    refused = r'table "people" holds 5 rows after the rollback|^commits: the rollback failed'
    mechanism = query(commits)
    with pytest.raises(dpw.MechanismError, match=refused):
        mechanism(OTHERS)
    if mechanism._connect is connect_postgresql:
        with connect_postgresql() as connection:
            connection.execute("DELETE FROM people")


def test_postgresql_refuses_what_would_commit(postgresql):
    psycopg = pytest.importorskip("psycopg", reason="no driver of PostgreSQL is installed")
    committing = psycopg.connect(postgresql, autocommit=True)
    with committing, pytest.raises(dpw.InvalidParameter, match="is in autocommit mode"):
        dpw.sql(lambda: committing, "SELECT 1", table="people")([])
    with psycopg.connect(postgresql) as connection:
        mechanism = dpw.sql(connect_postgresql, "SELECT age / 0 FROM people", table=("public", "people"))
        with pytest.raises(psycopg.errors.DivisionByZero):
            mechanism([{"person_id": 1, "age": 2}])
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (0,)
