"""--records: real data from a file, and what the mechanism gets of it."""

import json
from types import SimpleNamespace

import click
import pytest
from command_lines import refusal, run

import dpwitness as dpw
from dpwitness.cli.inputs import relation_of_records
from dpwitness.cli.options import inputs
from dpwitness.cli.values import given_input

MINE = """
def oldest(rng, people):
    return float(people["age"].max() if len(people) else 0.0) + rng.laplace(0.0, 1.0)


def private_count(rng, people):
    return len(people) + rng.laplace(0.0, 1.0)
"""
PEOPLE = "age,member\n30,0\n41,1\n25,0\n"
FAST = ("--seed", 1, "--runs", 400, "--quiet", "--max-time", "30s", "--workers", 1)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "names.csv").write_text("name,age\nAnn,30\nBob,41\n")
    (tmp_path / "header.csv").write_text("age\n")
    (tmp_path / "semicolons.csv").write_text("age;sex\n1;0\n")
    (tmp_path / "infinite.csv").write_text("age\n1\ninf\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.campaign
@pytest.mark.usefixtures("asked_here")  # the subject is the pair
def test_the_pair_is_found_from_a_file(capsys, place):
    """Leaving out the oldest moves the greatest age by 11 or more, and the noise has scale 1."""
    options = ("--records", "people.csv", "--adjacency", "either", "--domain", "age=0:120")
    code, out, _ = run(capsys, "check", "mine.py:oldest", "--epsilon", 1, *options, *FAST, "--save", "found.json")
    assert code == 1
    assert " ".join(options) in out.replace("'", "")  # of the command that repeats it
    relation = json.loads((place / "found.json").read_text())["witness"]["relation"]
    assert relation["domain"]["dict"]["age"] == {"integers": [0, 120], "clipped": False, "missing": False}
    assert run(capsys, "replay", "found.json", "--mechanism", "mine.py:oldest", *FAST, "--seed", 2)[0] == 1


@pytest.mark.parametrize(
    ("options", "described"),
    [
        ("", "records({'zip': categories('02138', '10001'), 'age': integers(30, 41), 'member': integers(0, 1)}, "
             "adjacency='add-remove', form='dataframe')"),
        ("--form list --domain zip=02138,10001,10002 --adjacency either",
         "records({'zip': categories('02138', '10001', '10002'), 'age': integers(30, 41), 'member': integers(0, 1)}, "
         "adjacency=None)"),
        ("--form columns --domain age=0.5:99 --adjacency replace-one --size 4",
         "records({'zip': categories('02138', '10001'), 'age': numbers(0.5, 99), 'member': integers(0, 1)}, "
         "adjacency='replace-one', size=4, form='columns')"),
    ],
)  # fmt: skip
def test_options_describe_a_relation_whose_columns_are_typed_as_a_whole(place, options, described):
    (place / "people.csv").write_text("zip,age,member\n02138,30,0\n10001,41,1\n")
    command = click.Command("check", params=inputs())
    given = command.make_context("check", ["--records", "people.csv", *options.split()]).params
    assert str(relation_of_records(SimpleNamespace(**given))) == described


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--adjacency either", "--adjacency needs --records FILE.csv"),
        ("--records no.csv", "cannot read no.csv"),
        ("--records header.csv", "header.csv holds no records"),
        (
            "--records people.csv --queries 3",
            "--queries is not given with --records, which says which inputs are neighbours",
        ),
        ("--records people.csv --domain sex=f,m", "columns of the file: age, member"),
        ("--records people.csv --domain Age=0:120", "columns of the file: age"),
        ("--records people.csv --domain age=a:b", "must hold two finite numbers"),
        ("--records people.csv --domain age=0:9 --domain age=0:99", "--domain age=… is given 2 times"),
        ("--records people.csv --domain age=0:20", "where age is"),
        ("--records people.csv --domain age=5:1", "--domain 'age=5:1': integers from low=5"),
        ("--records people.csv --size 0", "size=0"),
        ("--records semicolons.csv", "semicolons.csv has one column, 'age;sex': separate columns by commas"),
        ("--records infinite.csv", "column 'age': there are infinite numbers; leave these out"),
        ("--records names.csv --form array", "column 'name' of names.csv holds text"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(capsys, options, message):
    assert message in refusal(capsys, "check", "mine.py:oldest", "--epsilon", 1, *options.split())


def test_pairs_are_any_json_of_finite_numbers_and_few_levels():
    assert given_input('[{"age": 30}, {"age": null}]') == [{"age": 30}, {"age": None}]
    assert given_input('"Ann met Bob"') == "Ann met Bob"
    for text in ('{"a": NaN}', '{"a": ' * 40 + "1" + "}" * 40, '{"a": 1e999}', "{'a': 1}"):
        with pytest.raises(dpw.BadInput, match="--pair"):
            given_input(text)
