"""`dpwitness attack table_builder`, of either thing that it recovers."""

import json

import pytest

from dpwitness.cli import main


@pytest.fixture
def ages(tmp_path):
    path = tmp_path / "ages.csv"
    rows = [(17 + i, 40 + 7 * i) for i in range(12)] + [(40, 0), (41, 1), (42, 3), (43, 9)]
    path.write_text("age,count\n" + "".join(f"{age},{count}\n" for age, count in rows))
    return str(path)


def result(capsys, *command):
    assert main([*command, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("system", ["bounded", "keyed"])
def test_histogram_is_recovered(ages, capsys, system):
    command = ["attack", "table_builder", "--data", ages, "--system", system, "--seed", "1", "--partitions", "200"]
    found = result(capsys, *command)
    # Sixteen values, each wrong with probability 4e-4 (equation 5, r = 2, k = 200).
    assert found["right"] == 16
    assert found["recovered"] == found["true"]
    assert found["suppressed_right"] == found["suppressed"] == 2
    assert found["published"][-4:-1] == [0, 0, 0]
    assert found["partitions"] == 200
    assert found["base_partitions"] == 500
    assert found["queries"] == 16 + 2 * 500 + 16 * 400
    assert found["probably_right"] == pytest.approx(sum(found["probability"]))
    assert found["probably_right"] > 15.9
    assert 15.9 < found["expected_right"] < 16
    again = result(capsys, *command)
    assert {**found, "seconds": 0} == {**again, "seconds": 0}


def test_embedded_data_and_a_sub_population(capsys):
    found = result(capsys, "attack", "table_builder", "--where", "hlthp=1", "--partitions", "20", "--seed", "2")
    assert found["attribute"] == "mdvis"
    assert sum(found["true"]) == 302  # people in poor health in randhie
    assert found["where"] == {"hlthp": [1]}


@pytest.mark.campaign
def test_parameter_is_found(ages, capsys):
    # Proposition 2: 200 sums fail with probability 2e-6 at r = 3.
    found = result(
        capsys,
        "attack",
        "table_builder",
        "--recover",
        "perturbation",
        "--data",
        ages,
        "--perturbation",
        "3",
        "--seed",
        "1",
    )
    assert found["recovered"] == [3]
    assert found["sums"] == 200
    found = result(capsys, "attack", "table_builder", "--recover", "perturbation", "--perturbation", "3", "--seed", "1")
    assert found["recovered"] == [3]


@pytest.mark.campaign
def test_parameter_is_found_without_totals(capsys):
    # Four noises of r = 2 give it away in 2·C(7, 4) = 70 of 5⁴ cases: 100 sums fail with probability 7e-6.
    command = ["attack", "table_builder", "--recover", "perturbation", "--system", "without-totals"]
    found = result(capsys, *command, "--sums", "100", "--seed", "1")
    assert found["answers_a_sum"] == 4
    assert found["sums"] == 100
    assert found["recovered"] == [2]
    assert found["theory_probability"] == pytest.approx(1 - (1 - 70 / 625) ** 100)


@pytest.mark.campaign
@pytest.mark.parametrize(("system", "largest"), [("bounded", 2), ("exact", 0)])
def test_a_parameter_is_right_where_no_answer_is_wrong_by_more(capsys, system, largest):
    command = ["attack", "table_builder", "--recover", "perturbation", "--system", system, "--seed", "1"]
    found = result(capsys, *command)
    assert (found["recovered"], found["right"]) == ([largest], 1)


@pytest.mark.parametrize("law", ["maximum-entropy", "normal", "laplace"])
def test_other_noise(ages, capsys, law):
    found = result(capsys, "attack", "table_builder", "--data", ages, "--noise", law, "--scale", "0.9", "--seed", "1")
    assert found["right"] == 16  # less noise than uniform


@pytest.mark.campaign
def test_reports_and_plots(ages, tmp_path, capsys):
    for name, first in (("histogram", "RECOVERED: "), ("perturbation", "FOUND: ")):
        path = tmp_path / f"{name}.svg"
        assert (
            main(["attack", "table_builder", "--recover", name, "--data", ages, "--seed", "1", "--plot", str(path)])
            == 0
        )
        assert capsys.readouterr().out.startswith(first)
        assert path.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--perturbation", "0"], "r=0 must be a whole number of at least 1"),
        (["--perturbation", "-2"], "r=-2"),
        (["--perturbation", "5", "--suppression", "4"], "suppression s=4 must be at least the perturbation r=5"),
        (["--column", "height"], "no attribute 'height'; the attributes are age"),
        (["--where", "height=1"], "no attribute 'height'"),
        (["--where", "age"], "must be NAME=VALUE"),
        (["--partitions", "0"], "at least 1"),
        (["--perturbation", "1e9"], "at most 10000"),
        (["--base", "0"], "base=0"),
        (["--scale", "2"], "--scale"),
        (["--sums", "5"], "--sums says nothing of --recover histogram"),
        (["--recover", "perturbation", "--base-partitions", "5"], "--base-partitions says nothing of --recover pert"),
        (["--recover", "perturbation", "--sums", "0"], "--sums 0 must lie between"),
        (["--max-time", "0.001ms"], "--max-time 1e-06: the attack takes longer than 1e-06 s; allow more time"),
        (["--noise", "normal", "--scale", "0"], "scale=0.0"),
        (["--noise", "maximum-entropy", "--scale", "1e308"], "variance=inf"),
        (["--seed", "-1"], "--seed -1"),
        (["--retries", "7"], "--retries is of an attack on your own system"),
        (["--plot", "x.txt"], ".svg"),
        (["--plot", "nowhere/x.svg"], "no folder"),
    ],
)
def test_bad_input_is_one_line_and_2(ages, capsys, options, message):
    assert main(["attack", "table_builder", "--data", ages, *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err


@pytest.mark.parametrize("name", ["histogram", "perturbation"])
def test_a_table_with_missing_values_is_refused(tmp_path, capsys, name):
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n17,F\n18,\n")
    assert main(["attack", "table_builder", "--recover", name, "--data", str(path)]) == 2
    assert "line 3: the value of 'sex' is missing" in capsys.readouterr().err


@pytest.mark.campaign
def test_check_takes_a_claim_where_there_is_no_epsilon(capsys):
    assert main(["check", "bounded_noisy_counts", "--claim", "1", "--seed", "1", "--json", "--quiet"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "violated"
    assert main(["check", "bounded_noisy_counts"]) == 2
    assert "--epsilon" in capsys.readouterr().err
    assert main(["check", "bounded_noisy_counts", "--claim", "1", "--set", "perturbation=9"]) == 2
    assert "suppression must be at least perturbation" in capsys.readouterr().err
