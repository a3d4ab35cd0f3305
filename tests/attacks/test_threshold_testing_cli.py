"""`dpwitness attack threshold_testing`."""

import json

import numpy as np
import pytest

from dpwitness.cli import main
from dpwitness.reconstruction.threshold_testing.command import visits
from dpwitness.reconstruction.threshold_testing.theory import copies_for


def run(capsys, *arguments):
    code = main(["attack", "threshold_testing", *arguments])
    return code, capsys.readouterr()


def test_it_runs_without_data_on_an_embedded_histogram(capsys):
    code, printed = run(capsys, "--epsilon", "1", "--repeat", "3", "--seed", "1", "--json")
    result = json.loads(printed.out)
    assert code == 0
    assert result["cells"] == len(visits()) == 78
    assert 0 < result["fraction_right"]["mean"] < 1
    assert result["epsilon2"] is None
    assert result["epsilon2_infinite"]


def test_the_embedded_histogram_counts_everybody():
    from statsmodels.datasets import randhie

    visitors = randhie.load_pandas().data["mdvis"]
    assert visits().sum() == len(visitors)
    assert visits()[0] == (visitors == 0).sum()


@pytest.mark.campaign
def test_the_adaptive_attack_reads_it_all(capsys):
    code, printed = run(capsys, "--epsilon", "0.5", "--adaptive", "--repeat", "2", "--seed", "2")
    assert code == 0
    assert "adaptive weighing" in printed.out
    assert "1.0000 ± 0.0000 of 78" in printed.out


def test_query_noise_and_copies(capsys):
    options = ["--epsilon", "1", "--epsilon2", "0.5", "--copies", "5", "--repeat", "1", "--seed", "3", "--json"]
    result = json.loads(run(capsys, *options)[1].out)
    assert result["epsilon2"] == 0.5
    assert result["queries_per_cell"] == 5 * 78


def test_the_same_seed_gives_the_same_result(capsys):
    results = []
    for _ in range(2):
        result = json.loads(run(capsys, "--epsilon", "1", "--repeat", "4", "--seed", "4", "--json")[1].out)
        del result["seconds"]
        results.append(result)
    assert results[0] == results[1]


def test_threads_change_nothing_and_the_result_is_saved(capsys, tmp_path):
    saved = []
    for workers in ("1", "3"):
        path = tmp_path / workers
        options = ["--epsilon", "1", "--repeat", "7", "--seed", "4", "--workers", workers, "--save", str(path)]
        assert run(capsys, *options)[0] == 0
        saved.append(json.loads(path.read_text()) | {"seconds": 0})
    assert saved[0] == saved[1]
    assert saved[0]["repeat"] == 7
    assert not saved[0]["out_of_time"]


def test_when_the_time_is_over_the_attacks_so_far_count(capsys):
    options = ["--epsilon", "1", "--repeat", "1000000", "--workers", "1", "--max-time", "50ms", "--seed", "4"]
    code, printed = run(capsys, *options, "--json")
    result = json.loads(printed.out)
    assert code == 0
    assert result["out_of_time"]
    assert 1 <= result["repeat"] < 1_000_000
    assert "attacks, then the time was over" in run(capsys, *options)[1].out


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_it_draws_true_against_guessed(capsys, tmp_path, kind):
    file = tmp_path / f"plot.{kind}"
    assert run(capsys, "--epsilon", "1", "--repeat", "1", "--seed", "5", "--plot", str(file))[0] == 0
    assert file.stat().st_size > 1000


def test_a_plot_costs_no_result_where_the_attack_was_stopped(capsys, tmp_path):
    (tmp_path / "mine.py").write_text("def system():\n    return lambda signs: signs[0] >= 0\n")
    data, saved, plot = (tmp_path / name for name in ("data.csv", "saved.json", "plot.svg"))
    data.write_text("count\n" + "7\n5\n" * 20)
    options = ("--oracle", f"{tmp_path / 'mine.py'}:system", "--data", str(data), "--budget", "5")
    code, printed = run(capsys, *options, "--plot", str(plot), "--save", str(saved), "--json")
    assert code == 0
    assert json.loads(printed.out)["stopped"] == json.loads(saved.read_text())["stopped"] is not None
    assert printed.err == "dpwitness: no plot: the attack stopped before it had guessed the counts\n"
    assert not plot.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("count\n3\n-1\n", "cell 2 holds -1"),
        ("count\n3\n1.5\n", "cell 2 holds 1.5"),
        ("cell,count\n1,3\n2,\n", "line 3: there is no value"),
        ("", "is empty"),
        ("count\n7\n", "at least 2 cells"),
    ],
)
def test_what_is_no_histogram_is_one_clear_line(capsys, tmp_path, content, message):
    file = tmp_path / "data.csv"
    file.write_text(content)
    code, printed = run(capsys, "--epsilon", "1", "--data", str(file))
    assert code == 2
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", "0"],
        ["--epsilon", "-1"],
        ["--epsilon", "1", "--epsilon2", "0"],
        ["--epsilon", "1", "--epsilon2", "nan"],
        ["--epsilon", "1", "--delta", "1"],
        ["--epsilon", "1", "--repeat", "0"],
        ["--epsilon", "1", "--copies", "0"],
        ["--epsilon", "1", "--plot", "plot.txt"],
        ["--epsilon", "1", "--plot", "no/such/folder/plot.svg"],
        ["--epsilon", "1", "--column", "x"],
        ["--epsilon", "1", "--data", "no-such-file.csv"],
    ],
)
def test_bad_options_are_one_clear_line(capsys, options):
    code, printed = run(capsys, *options)
    assert code == 2
    assert printed.err.count("\n") == 1


@pytest.mark.campaign
def test_real_files_are_read(capsys, data_folder):
    options = ["--epsilon", "1", "--repeat", "1", "--seed", "6", "--json", "--adaptive"]
    result = json.loads(run(capsys, "--data", str(data_folder / "hepth.csv"), *options)[1].out)
    assert result["cells"] == 4096
    assert result["small_cells"] == 1153
    assert np.isclose(result["fraction_right"]["mean"], 1.0, atol=0.01)


SYSTEM = """
import sqlite3


def system(rng):
    people = sqlite3.connect(":memory:")
    people.execute("create table people (cell integer)")
    rows = [(cell,) for cell, count in enumerate(%s) for _ in range(count)]
    people.executemany("insert into people values (?)", rows)
    z = rng.laplace(0, 5)

    def reaches(signs):
        cases = " ".join(f"when {cell} then {sign}" for cell, sign in enumerate(signs) if sign)
        if not cases:
            return 0 >= z
        return people.execute(f"select sum(case cell {cases} else 0 end) >= ? from people", (z,)).fetchone()[0]

    return reaches
"""
COUNTS = [0, 2, 2, 3, 3, 5, 5, 7, 9, 12, 4, 4, 6, 2, 3, 0, 3, 8, 2, 5, 11, 2, 3, 4] * 3


@pytest.fixture
def database(tmp_path):
    """An SQL database behind the noisy interface, and the true counts in a file."""
    (tmp_path / "mine.py").write_text(SYSTEM % COUNTS)
    (tmp_path / "truth.csv").write_text("\n".join(["count", *map(str, COUNTS)]))
    return f"{tmp_path / 'mine.py'}:system", str(tmp_path / "truth.csv")


@pytest.mark.campaign
def test_a_database_is_attacked(capsys, database):
    oracle, truth = database
    code, printed = run(capsys, "--oracle", oracle, "--cells", "72", "--seed", "2", "--json")
    found = json.loads(printed.out)
    assert code == 0
    assert found["recovered"] == COUNTS  # up to a factor, and they have none in common
    assert found["up_to_factor"]
    assert found["right"] is None
    assert found["claimed"] == 72
    assert min(found["probability"]) > 0.99
    compared = json.loads(run(capsys, "--oracle", oracle, "--data", truth, "--seed", "2", "--json")[1].out)
    assert compared["right"] == compared["right_up_to_factor"] == 72
    assert compared["questions"] == found["questions"]
    assert "readable up to a factor" in run(capsys, "--oracle", oracle, "--cells", "72", "--seed", "2")[1].out


@pytest.mark.campaign
def test_questions_go_out_and_answers_come_in(capsys, tmp_path):
    file = tmp_path / "questions.jsonl"
    options = ["--cells", "72", "--ask", str(file)]
    assert run(capsys, *options, "--seed", "3")[0] == 0
    counts = np.array(COUNTS)
    for _ in range(400):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            asked = row["question"]
            row["answer"] = int(counts[asked["plus"]].sum() - counts[asked["minus"]].sum() >= 3.5)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        code, printed = run(capsys, *options, "--json")
        found = json.loads(printed.out)
        if "waiting" not in found:
            break
    assert code == 0
    assert found["recovered"] == COUNTS
    assert found["questions"] == len(rows)


@pytest.mark.campaign
def test_a_file_begun_with_an_oracle_is_gone_on_with_without_it(capsys, database, tmp_path):
    kept = ["--cells", "72", "--ask", str(tmp_path / "kept.jsonl"), "--json"]
    asked = json.loads(run(capsys, *kept, "--oracle", database[0], "--seed", "2")[1].out)
    code, printed = run(capsys, *kept)
    assert code == 0
    assert json.loads(printed.out)["recovered"] == asked["recovered"] == COUNTS


def test_a_budget_that_is_too_small_claims_nothing(capsys, database):
    oracle, _ = database
    found = json.loads(
        run(capsys, "--oracle", oracle, "--cells", "72", "--budget", "60", "--seed", "2", "--json")[1].out
    )
    assert found["claimed"] == 0
    assert found["recovered"] is None
    assert "--budget 60 is used up" in found["stopped"]


def test_the_support_known(capsys, tmp_path):
    (tmp_path / "counts.csv").write_text("".join(f"{line}\n" for line in ("count", *range(25), 3, 3, 90)))
    options = ["--epsilon", "2", "--support", "20", "--repeat", "5", "--seed", "6", "--json"]
    result = json.loads(run(capsys, *options, "--data", str(tmp_path / "counts.csv"))[1].out)
    assert result["epsilon1"] == 2
    assert result["support"] == 20
    assert result["claimed"] > 0
    assert result["claimed_wrong"] == 0
    # Of visits to a doctor, where not every count up to 20 occurs, nothing is claimed.
    assert json.loads(run(capsys, *options)[1].out)["claimed"] == 0


def test_the_support_known_of_a_system_of_ones_own(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nCOUNTS = np.arange(24).repeat(2)\n"
        "def system(rng):\n    z = 3 + rng.laplace()\n    return lambda signs: signs @ COUNTS >= z\n"
    )
    options = ["--oracle", f"{tmp_path / 'mine.py'}:system", "--cells", "48", "--support", "23", "--epsilon1", "1"]
    code, printed = run(capsys, *options, "--seed", "1")
    assert code == 0
    assert "fresh sums" not in printed.out
    assert "Theorem 5.12, if every count up to 23 occurs and ε₁ is right" in printed.out


def test_copies_by_beta_and_the_share(capsys):
    options = ["--epsilon", "1", "--epsilon2", "1", "--beta", "0.05", "--share", "0.25", "--repeat", "1", "--json"]
    result = json.loads(run(capsys, *options)[1].out)
    assert result["epsilon1"] == 0.25
    assert result["copies"] == copies_for(0.05, 78**2, epsilon2=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--epsilon is needed"),
        (["--ask", "q.csv"], "--cells is needed"),
        (["--ask", "q.csv", "--cells", "4", "--epsilon", "1"], "--epsilon is of the simulated system"),
        (["--epsilon", "1", "--cells", "4"], "--cells is of your own system"),
        (["--epsilon", "1", "--budget", "4"], "--budget"),
        (["--epsilon", "1", "--share", "1"], "--share 1 must"),
        (["--epsilon", "1", "--support", "4", "--share", "0.5"], "--share has no meaning"),
        (["--epsilon", "1", "--support", "4"], "support=4 must exceed"),
        (["--epsilon", "1", "--adaptive", "--beta", "0.1"], "--beta is of Algorithms 3 and 4"),
        (["--epsilon", "1", "--adaptive", "--delta", "0.1"], "--delta is of Algorithms 3 and 4"),
        (["--epsilon", "1", "--adaptive", "--copies", "3"], "--copies says nothing where queries have no noise"),
        (["--epsilon", "1", "--adaptive", "--epsilon2", "1e-9"], "epsilon2=1e-09 is too small"),
        (["--epsilon", "1", "--beta", "0.05", "--epsilon2", "1e-12"], "beta=0.05 takes more than 10^12 copies"),
        (["--ask", "q.csv", "--cells", "4", "--epsilon2", "1e-300"], "--epsilon2 1e-300 must be at least 1e-12"),
        (["--ask", "q.csv", "--cells", "4", "--epsilon2", "1e-3"], "more than 10,000,000 questions at once"),
        (["--ask", "q.csv", "--cells", "1e13"], "--cells 10000000000000 must be from 2 to 10000000"),
        (["--ask", "q.csv", "--cells", "4", "--repeat", "7"], "--repeat is of the simulated system"),
        (["--ask", "q.csv", "--cells", "4", "--copies", "0"], "--copies 0 must be from 1 to 10^12"),
        (["--ask", "q.csv", "--cells", "4", "--delta", "7"], "--delta is of Algorithms 3 and 4"),
    ],
)
def test_options_that_do_not_fit_are_one_clear_line(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *options)
    assert code == 2
    assert message in printed.err
    assert printed.err.count("\n") == 1
