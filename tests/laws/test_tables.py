"""Tables of Polars and Arrow: as inputs, in files, and as outcomes."""

import json
from itertools import islice

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpwitness as dpw
from dpwitness.errors import InvalidNeighbours, InvalidOutcome
from dpwitness.neighbours import Pair, copier, input_from_json, input_to_json
from dpwitness.neighbours.difference import difference
from dpwitness.neighbours.inputs import shown
from dpwitness.neighbours.pair import unlike

FRAME = pl.DataFrame(
    {
        "age": pl.Series([31, 47, 31], dtype=pl.Int8),
        "sex": pl.Series(["f", "m", None], dtype=pl.Enum(["f", "m", "x"])),
        "city": pl.Series(["Bern", None, "Basel"], dtype=pl.Categorical),
        "seen": pl.Series([1_000, 2_000, None]).cast(pl.Datetime("ns", "Europe/Berlin")),
    }
)
ALL = {
    "polars": FRAME,
    "polars-lazy": FRAME.lazy(),
    "arrow": FRAME.to_arrow(),
    "dataframe": pd.DataFrame({"age": [31, 47]}),
}
TABLES = [name for name in ALL if name != "dataframe"]


def test_a_table_of_arrow_is_handed_out_without_metadata():
    """In it pandas keeps how many rows there are, and takes its index for nothing where these are not as many."""
    people = pa.Table.from_pandas(pd.DataFrame({"age": [30, 41, 77]}, index=pd.RangeIndex(3, name="person")))
    relation = dpw.records(dpw.like(people), adjacency="add-remove")
    for pair in islice(relation.candidates(relation.take(people)), 20):
        assert [side.schema.metadata for side in pair.sides] == [None, None]
        assert relation.contains(pair, people)


def eager(data):
    return data.collect() if isinstance(data, pl.LazyFrame) else data


def ages(data):
    column = eager(data)["age"]
    return column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize("given", ALL)
def test_records_in_one_library_are_handed_out_in_another(given, form):
    example = ALL[given] if given == "dataframe" else ALL[given].select(["age"])
    relation = dpw.records({"age": dpw.integers(0, 99)}, form=form)
    data = relation.take(example)
    assert type(data) is type(ALL[form])
    assert ages(data) == ages(example)


def test_a_missing_number_is_null_and_nan_stays_in_data():
    domain = {"x": dpw.numbers(0, 1, missing=True)}

    def seen(relation):
        columns = [eager(side)["x"].to_list() for pair in relation.candidates() for side in pair.sides]
        values = [value for column in columns for value in column]
        return None in values, any(value != value for value in values if value is not None)

    assert seen(dpw.records(domain, form="polars")) == (True, False)
    assert seen(dpw.records(domain, base=pl.DataFrame({"x": [0.5, None]}))) == (True, False)
    given = dpw.records(domain, form="polars")
    data = given.take(pl.DataFrame({"x": [0.5, float("nan"), None]}))
    assert repr(data["x"].to_list()) == "[0.5, nan, None]"


@pytest.mark.parametrize("form", TABLES)
def test_what_a_run_does_to_a_table_stays_with_that_run(form):
    data = ALL[form]
    hand = copier(data)
    before = shown(data)
    first = hand()
    if form == "polars":
        first[0, "age"] = 99
        first.drop_in_place("sex")
        column = hand()["age"]
        column[0] = 98
        assert not hand()["age"].to_numpy().flags.writeable
    if form != "arrow":  # in which nothing can be set
        first.note = "kept"
        assert not hasattr(hand(), "note")
    assert shown(hand()) == before


def test_a_category_more_is_another_type():
    data = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0]), ["a"])})
    other = pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0]), ["a", "b"])})
    assert unlike(Pair(data, other)).startswith("the type of column 'c'")
    assert difference(data, other) != "the same as D"
    relation = dpw.records({"c": dpw.categories("a", "b")}, form="arrow")
    assert not relation.contains(
        Pair(data, pa.table({"c": pa.DictionaryArray.from_arrays(pa.array([0, 0]), ["a", "b"])}))
    )


def test_two_columns_of_one_name_are_refused_before_any_run():
    """A whole check was made before, and its report raised the error."""
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(InvalidNeighbours, match="several columns are called 'a'"):
        dpw.pairs((twice, twice.iloc[:0]))


@pytest.mark.parametrize("table", [pl.DataFrame(), pl.LazyFrame()])
def test_a_table_without_columns_comes_back(table):
    again = input_from_json(json.loads(json.dumps(input_to_json(table))))
    assert type(again) is type(table)
    assert difference(again, table) == "the same as D"


def test_categories_with_a_name_and_tables_of_arrow_are_nothing_that_a_file_holds():
    named = pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Categorical(pl.Categories("letters")))})
    for table in (named, pa.table({"a": [1, 2]})):
        assert set(input_to_json(table)) == {"object"}
    plain = named.cast(pl.Categorical)
    assert input_from_json(input_to_json(plain)).schema == plain.schema


def of(kind, *values, table="polars", **more):
    """A table of one column as a file has it."""
    return {"table": table, "columns": [["a", kind, list(values)]], **more}


HOSTILE = [
    of("Int8", 1, table="duckdb"), of("Int8", 1, more=1), of("Int8", 300), of("Int8", "x"),
    {"table": "polars", "columns": [["a", "Int8", [1]], ["b", "Int8", [1, 2]]]},
    {"table": "polars", "columns": [["a", "Int8", [1]], ["a", "Int8", [1]]]},
    of({"read_csv": ["/etc/passwd"]}, 1), of({"Datetime": ["us", "../../etc/passwd"]}, 1),
    of({"Datetime": ["us", None]}, 2**70), of({"Decimal": [10, 2]}, "1"),
    of("Date", 2**40), of("int8", 1, table="arrow"),
]  # fmt: skip


@pytest.mark.parametrize("written", HOSTILE, ids=str)
def test_files_that_hold_no_table_are_refused_in_one_line(written):
    with pytest.raises(InvalidNeighbours) as caught:
        input_from_json(written)
    assert "\n" not in str(caught.value)


OBJECTS = pl.DataFrame({"o": pl.Series([[1], [2]], dtype=pl.Object)})


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: dpw.like(pa.table([[1], [2]], names=["a", "a"])), "columns are called 'a'"),
        (lambda: dpw.like(FRAME.lazy().select("absent")), "LazyFrame cannot be collected"),
        (lambda: dpw.like(FRAME["age"]), "DataFrame of pandas or Polars"),
        (lambda: dpw.pairs((OBJECTS, OBJECTS[:1])), "column 'o' of the .* Python objects"),
        *(
            (lambda form=form: dpw.records({"a": dpw.like(["x", 1.5, b"y"]).fields}, form=form), "no type of column")
            for form in ("polars", "arrow")
        ),
    ],
)
def test_what_makes_no_table_is_refused_in_one_line(make, named):
    with pytest.raises((InvalidNeighbours, InvalidOutcome), match=named) as caught:
        make()
    assert "\n" not in str(caught.value)
